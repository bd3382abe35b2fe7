package lan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// testSecret is 00 01 ... 1f.
const testSecret = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

func secretOf(t *testing.T, text string) *Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestProofs holds the proofs against those of the Rust relay.
func TestProofs(t *testing.T) {
	fp := strings.Repeat("ab", 32)
	secret := secretOf(t, " "+strings.ToUpper(testSecret)+"\n")
	for _, test := range []struct {
		record       record
		advert, dial string
	}{
		{
			record{app: "default", instance: "0123456789abcdef", port: 4443, nonce: "00112233445566778899aabbccddeeff", fingerprint: fp},
			"6757bc1d857865a8e4f77e31ae6c3ffda7f9c03348c4df9bceb0c8dfffa55087",
			"ee39669e612d1b7c76e08cfc886554c4881d9416359a5a6c1be00f87ac8d7415",
		},
		{
			record{app: "default", instance: "0123456789abcdef", port: 4443, nonce: "00112233445566778899aabbccddeeff", node: "https://us-west.example.com/"},
			"9b0926aa9922fee745e244dad6c13e23f37c1c04112c0c70e62d9bea4fb93ffe",
			"17095196a9e46a85c143b0b4e6235a048ea923b9a8744cead27a639a153f381c",
		},
		{
			record{app: "rack7", instance: "fedcba9876543210", port: 443, nonce: "ffeeddccbbaa99887766554433221100", fingerprint: fp, node: "https://us-west.example.com/?cost=5"},
			"943990eef953a72466de75a83ea7b934b4e48e9c3467309a2ea47fc44ceb5755",
			"db43779602aad0acb1bd0bfc4652f5dd20577228f82e7dbcf50e71d920810002",
		},
	} {
		g := group{app: test.record.app, secret: secret}
		r := test.record
		g.seal(&r)
		if r.advert != test.advert {
			t.Errorf("%s: advertise proof %s", r.instance, r.advert)
		}
		if got := g.credential(&r); got != test.dial {
			t.Errorf("%s: credential %s", r.instance, got)
		}
	}
}

// TestAcceptance is L5: who sees whom, and that each part of a record is under the proof.
func TestAcceptance(t *testing.T) {
	base := record{app: "default", instance: "0123456789abcdef", port: 4443, nonce: strings.Repeat("0", 32), fingerprint: strings.Repeat("a", 64)}
	ours := group{app: "default", secret: secretOf(t, testSecret)}
	other := group{app: "default", secret: secretOf(t, strings.Repeat("1", 64))}
	open := group{app: "default"}
	sealed := func(g group) record { r := base; g.seal(&r); return r }
	for name, test := range map[string]struct {
		group  group
		record record
		want   bool
	}{
		"open sees open":     {open, sealed(open), true},
		"open sees secret":   {open, sealed(ours), false},
		"secret sees open":   {ours, sealed(open), false},
		"secret sees itself": {ours, sealed(ours), true},
		"secret sees other":  {ours, sealed(other), false},
	} {
		if got := test.group.accepts(&test.record); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, forge := range map[string]func(*record){
		"app":         func(r *record) { r.app = "other" },
		"instance":    func(r *record) { r.instance = "1123456789abcdef" },
		"port":        func(r *record) { r.port++ },
		"nonce":       func(r *record) { r.nonce = strings.Repeat("1", 32) },
		"fingerprint": func(r *record) { r.fingerprint = strings.Repeat("b", 64) },
		"no pin":      func(r *record) { r.fingerprint = "" },
		"node":        func(r *record) { r.node = "https://evil.example/" },
		"proof":       func(r *record) { r.advert = strings.ToUpper(r.advert) },
	} {
		r := sealed(ours)
		if forge(&r); ours.accepts(&r) {
			t.Errorf("a record with another %s is accepted", name)
		}
	}
}

func TestParseSecret(t *testing.T) {
	for _, text := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("g", 64), strings.Repeat("0 ", 32)} {
		if _, err := ParseSecret(text); !errors.Is(err, ErrSecret) {
			t.Errorf("%q: %v", text, err)
		}
	}
	s := secretOf(t, testSecret)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, s); strings.Contains(text, "1f") || strings.Contains(text, "31") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
