package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

func TestRecovery(t *testing.T) {
	q, other := question{1}, question{2}
	g := auth.Grant{Root: "r", Expires: at(1000)}
	short := auth.Grant{Root: "r", Expires: at(5)}
	fresh := func(f func(c *recovery)) *recovery {
		c := newRecovery()
		f(c)
		return c
	}
	granted := func(c *recovery) { c.granted(epoch, epoch, q, g) }
	for name, tt := range map[string]struct {
		c      *recovery
		at     float64
		want   bool
		denied bool
	}{
		"nothing":                     {newRecovery(), 1, false, false},
		"20 s ago":                    {fresh(granted), 20, true, false},
		"30 s ago":                    {fresh(granted), 30, true, false},
		"31 s ago":                    {fresh(granted), 31, false, false},
		"the clock went back":         {fresh(granted), -1, false, false},
		"another question":            {fresh(func(c *recovery) { c.granted(epoch, epoch, other, g) }), 1, false, false},
		"expired":                     {fresh(func(c *recovery) { c.granted(epoch, epoch, q, short) }), 5, false, false},
		"not quite expired":           {fresh(func(c *recovery) { c.granted(epoch, epoch, q, short) }), 4, true, false},
		"refused since":               {fresh(func(c *recovery) { granted(c); c.denied(at(1), q) }), 2, false, true},
		"refused long ago":            {fresh(func(c *recovery) { granted(c); c.denied(at(1), q) }), 32, false, false},
		"another one refused since":   {fresh(func(c *recovery) { granted(c); c.denied(at(1), other) }), 2, true, false},
		"refused and granted again":   {fresh(func(c *recovery) { granted(c); c.denied(at(1), q); c.granted(at(3), at(2), q, g) }), 4, true, false},
		"granted before the refusal":  {fresh(func(c *recovery) { c.denied(at(1), q); c.granted(at(2), at(0.5), q, g) }), 3, false, true},
		"a hit does not make it last": {fresh(func(c *recovery) { granted(c); c.recall(at(29), q) }), 31, false, false},
		"granted again":               {fresh(func(c *recovery) { granted(c); c.granted(at(29), at(29), q, g) }), 31, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, ok := tt.c.recall(at(tt.at), q)
			if got := ok && !m.denied; got != tt.want || m.denied != tt.denied {
				t.Errorf("recalled: %v, denied: %v", got, m.denied)
			}
		})
	}
}

func TestRecoveryIsBounded(t *testing.T) {
	c := newRecovery()
	key := func(i int) question { return questionOf(auth.Request{Path: fmt.Sprint(i)}) }
	for i := range recoverySize {
		c.granted(epoch, epoch, key(i), auth.Grant{})
	}
	if _, ok := c.recall(epoch, key(0)); !ok { // used: the next one goes first
		t.Fatal("0 is gone")
	}
	for i := range 100 {
		c.denied(epoch, key(recoverySize+2*i))
		c.granted(epoch, epoch, key(recoverySize+2*i+1), auth.Grant{})
	}
	if c.size() != recoverySize || c.order.Len() != recoverySize {
		t.Errorf("%d entries", c.size())
	}
	for i, want := range map[int]bool{0: true, 1: false, 200: false, 201: true, recoverySize: false, recoverySize + 1: true} {
		if m, ok := c.recall(epoch.Add(time.Second), key(i)); ok && !m.denied != want {
			t.Errorf("%d: %v", i, ok)
		}
	}
}

// TestQuestion: everything that a policy could depend on makes another question; what changes from one connection of a
// viewer to the next does not.
func TestQuestion(t *testing.T) {
	base := auth.Request{
		ID: "1", Event: auth.EventConnect, Node: "n", Transport: auth.TransportQUIC, Remote: "192.0.2.1:1000", Local: "192.0.2.9:443",
		ServerName: "a", ALPN: "h3", Path: "/p", Query: "jwt=x", Role: auth.RoleSubscriber,
		SetupToken: &auth.SetupToken{Value: []byte{1}}, TLS: &auth.Identity{Fingerprint: "f", Name: "n"},
	}
	seen := map[question]string{questionOf(base): "base"}
	for name, change := range map[string]func(*auth.Request){
		"transport":      func(r *auth.Request) { r.Transport = auth.TransportHTTP },
		"family":         func(r *auth.Request) { r.Remote = "[2001:db8::1]:1000" },
		"server name":    func(r *auth.Request) { r.ServerName = "b" },
		"alpn":           func(r *auth.Request) { r.ALPN = "moq-lite-06" },
		"path":           func(r *auth.Request) { r.Path = "/q" },
		"query":          func(r *auth.Request) { r.Query = "jwt=y" },
		"shifted":        func(r *auth.Request) { r.Path, r.Query = "/pj", "wt=x" },
		"role":           func(r *auth.Request) { r.Role = auth.RoleBoth },
		"token":          func(r *auth.Request) { r.SetupToken = &auth.SetupToken{Value: []byte{2}} },
		"token kind":     func(r *auth.Request) { r.SetupToken = &auth.SetupToken{Kind: 1, Value: []byte{1}} },
		"no token":       func(r *auth.Request) { r.SetupToken = nil },
		"certificate":    func(r *auth.Request) { r.TLS = &auth.Identity{Fingerprint: "g", Name: "n"} },
		"no certificate": func(r *auth.Request) { r.TLS = nil },
	} {
		r := base
		change(&r)
		q := questionOf(r)
		if was, dup := seen[q]; dup {
			t.Errorf("%s is the same question as %s", name, was)
		}
		seen[q] = name
	}
	same := base
	same.ID, same.Event, same.Remote, same.Local = "2", auth.EventRevalidate, "192.0.2.77:2000", "192.0.2.8:443"
	if questionOf(same) != questionOf(base) {
		t.Error("another connection of the same viewer is another question")
	}
	mapped := base
	mapped.Remote = "[::ffff:192.0.2.1]:5"
	if questionOf(mapped) != questionOf(base) {
		t.Error("IPv4 in IPv6 clothes is another family")
	}
}
