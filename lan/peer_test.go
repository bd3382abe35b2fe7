package lan

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var byValue = cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})

func addrs(texts ...string) (out []netip.Addr) {
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// TestCandidates is the order of L7.
func TestCandidates(t *testing.T) {
	got := candidates(addrs("127.0.0.1", "::1", "fe80::1", "fd00::2", "10.0.0.10", "10.0.0.9", "0.0.0.0", "224.0.0.1",
		"::", "ff02::1", "2001:db8::1", "::ffff:10.0.0.9", "169.254.1.1"))
	want := addrs("10.0.0.9", "10.0.0.10", "169.254.1.1", "2001:db8::1", "fd00::2", "127.0.0.1", "::1")
	if diff := cmp.Diff(want, got, byValue); diff != "" {
		t.Error(diff)
	}
	var many []netip.Addr
	for i := range 100 {
		many = append(many, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
	}
	if got := candidates(many); len(got) != maxCandidates {
		t.Errorf("%d candidates", len(got))
	}
}

// TestPeerOf is L7 and L8: what is dialed.
func TestPeerOf(t *testing.T) {
	pin, nonce := strings.Repeat("a", 64), strings.Repeat("0", 32)
	open := group{app: "default"}
	base := record{app: "default", instance: "i1", port: 4443, nonce: nonce, fingerprint: pin}
	with := func(node string) record { r := base; r.node = node; return r }
	port := func(texts ...string) (out []netip.AddrPort) {
		for _, a := range addrs(texts...) {
			out = append(out, netip.AddrPortFrom(a, 4443))
		}
		return out
	}
	for name, test := range map[string]struct {
		record record
		addrs  []netip.Addr
		prefer string
		want   Peer
		err    error
	}{
		"addresses": {
			record: base, addrs: addrs("fd00::1", "10.0.0.2"),
			want: Peer{ID: "i1", Instance: "i1", Address: "moqt://10.0.0.2:4443", Path: "/.cluster/" + nonce, Addrs: port("10.0.0.2", "fd00::1"), Fingerprint: pin},
		},
		"IPv6": {
			record: base, addrs: addrs("fd00::1"),
			want: Peer{ID: "i1", Instance: "i1", Address: "moqt://[fd00::1]:4443", Path: "/.cluster/" + nonce, Addrs: port("fd00::1"), Fingerprint: pin},
		},
		"keeps its name": {
			record: base, addrs: addrs("10.0.0.1", "10.0.0.2"), prefer: "10.0.0.2",
			want: Peer{ID: "i1", Instance: "i1", Address: "moqt://10.0.0.2:4443", Path: "/.cluster/" + nonce, Addrs: port("10.0.0.1", "10.0.0.2"), Fingerprint: pin},
		},
		"name is gone": {
			record: base, addrs: addrs("10.0.0.1"), prefer: "10.0.0.2",
			want: Peer{ID: "i1", Instance: "i1", Address: "moqt://10.0.0.1:4443", Path: "/.cluster/" + nonce, Addrs: port("10.0.0.1"), Fingerprint: pin},
		},
		"node": {
			record: with("https://b.example/x?cost=3&jwt=STOLEN"), addrs: addrs("10.0.0.1"),
			want: Peer{ID: "https://b.example/x?cost=3&jwt=STOLEN", Instance: "i1", Address: "https://b.example/x", Path: "/.cluster/" + nonce, Cost: new(uint64(3)), Fingerprint: pin},
		},
		"link-local only": {record: base, addrs: addrs("fe80::1"), err: errNoCandidate},
	} {
		prefer, _ := netip.ParseAddr(test.prefer)
		got, err := open.peerOf(&test.record, test.addrs, prefer)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, err)
		}
		if test.err != nil {
			continue
		}
		if diff := cmp.Diff(test.want, got, byValue); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, format := range []string{"%v", "%+v", "%#v"} {
			if text := fmt.Sprintf(format, got); strings.Contains(text, nonce) {
				t.Errorf("%s: the credential is printed: %s", name, text)
			}
		}
	}
}

// TestWeDial is L6: exactly one of two dials, and nobody itself.
func TestWeDial(t *testing.T) {
	for _, test := range []struct {
		own, other string
		want       bool
	}{
		{"0a", "0b", true},
		{"0b", "0a", false},
		{"0a", "0a", false},
		{"ff", "https://a/", true},
		{"https://a/", "https://a/?cost=1", true},
		{"https://B/", "https://a/", true},
	} {
		if got := weDial(test.own, test.other); got != test.want {
			t.Errorf("%s and %s: %v", test.own, test.other, got)
		}
	}
}
