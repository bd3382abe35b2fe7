package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

const credential = "/.cluster/0123456789abcdef"

func lanPeer(t *testing.T, change func(*Found)) Entry {
	t.Helper()
	f := Found{
		Address: "moqt://10.0.0.2:4443", Path: credential, Fingerprint: strings.Repeat("a", 64),
		Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:4443"), netip.MustParseAddrPort("[fd00::2]:4443")},
	}
	if change != nil {
		change(&f)
	}
	e, err := NewFound(f)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestFound is what is dialed (L8) and by which name the peer goes.
func TestFound(t *testing.T) {
	cost := uint64(5)
	for name, test := range map[string]struct {
		change   func(*Found)
		key, url string
	}{
		"addresses": {nil, "moqt://10.0.0.2:4443/", "moqt://10.0.0.2:4443" + credential},
		"node":      {func(f *Found) { f.Address = "https://B.example:443//x/" }, "https://b.example/x", "https://b.example" + credential},
		"query":     {func(f *Found) { f.Address = "https://b.example/?jwt=x"; f.Cost = &cost }, "https://b.example/", "https://b.example" + credential},
	} {
		e := lanPeer(t, test.change)
		if e.Key() != test.key || e.URL().String() != test.url || !e.IsFound() {
			t.Errorf("%s: key %s, URL %s", name, e.Key(), e.URL())
		}
		if got := e.WithToken("secret").URL().String(); got != test.url {
			t.Errorf("%s: the shared token goes along: %s", name, got)
		}
		for _, shown := range []string{
			e.Name(), e.Key(), fmt.Sprintf("%v %+v %#v", e, e, e), e.scrub("dial " + e.URL().String() + ": refused"),
			e.scrub("CONNECT " + credential + ": 403"),
		} {
			if strings.Contains(shown, credential) {
				t.Errorf("%s: the credential is shown: %s", name, shown)
			}
		}
	}
	if c, ok := lanPeer(t, func(f *Found) { f.Cost = &cost }).Price(); c != 5 || !ok {
		t.Errorf("price %d, %v", c, ok)
	}
	for address, want := range map[string]error{"us-west": ErrBareHost, "gopher://a/": ErrScheme, "tcp://a:1/": ErrNotDialable, "https:///": ErrHost} {
		if _, err := NewFound(Found{Address: address, Path: credential}); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestFoundChanges are the details whose change means another dial (L11).
func TestFoundChanges(t *testing.T) {
	base, one := lanPeer(t, nil), uint64(2)
	list, err := Parse([]any{"moqt://10.0.0.2:4443/"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	configured := list.Entries[0]
	if !base.Same(lanPeer(t, nil)) || base.Same(configured) || configured.Same(base) {
		t.Error("equal entries differ, or a configured one is the same as one that was found")
	}
	for name, change := range map[string]func(*Found){
		"credential":  func(f *Found) { f.Path += "0" },
		"fingerprint": func(f *Found) { f.Fingerprint = "" },
		"addresses":   func(f *Found) { f.Addrs = f.Addrs[:1] },
		"order":       func(f *Found) { f.Addrs[0], f.Addrs[1] = f.Addrs[1], f.Addrs[0] },
		"price":       func(f *Found) { f.Cost = &one },
	} {
		if base.Same(lanPeer(t, change)) {
			t.Errorf("another %s is the same dial", name)
		}
	}
}

// TestFoundRedirect follows a GOAWAY on the same host with credential and pin; to another host neither goes along.
func TestFoundRedirect(t *testing.T) {
	from := lanPeer(t, nil)
	to, err := CheckRedirect(RedirectSameHost, from, "moqt://10.0.0.2:5555/x")
	if err != nil || to.URL().String() != "moqt://10.0.0.2:5555"+credential || to.Fingerprint() != from.Fingerprint() || len(to.Addrs()) != 0 || to.Key() != from.Key() {
		t.Errorf("%s, %q, %v, %v", to.URL(), to.Fingerprint(), to.Addrs(), err)
	}
	to, err = CheckRedirect(RedirectFollow, from, "moqt://10.0.0.3:5555/x")
	if err != nil || strings.Contains(to.URL().String(), credential) || to.IsFound() {
		t.Errorf("%s, %v", to.URL(), err)
	}
}
