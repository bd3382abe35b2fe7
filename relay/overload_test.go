package relay

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/overload"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/paths"
)

// TestOverload: a relay that is late refuses clients with a reason and takes in peers; those who are there stay; and it
// recovers.
func TestOverload(t *testing.T) {
	ca := newAuthority(t)
	k, keys := newKey(t, "k")
	r := deciding(t, serve.Config{Keys: keys, MTLSPublish: []string{"**"}, MTLSSubscribe: []string{"**"}, MTLSPeer: true}, func(c *Config) {
		c.ClientRoots = ca.roots
		secureWeb(c, ca)
	})
	path := "/?jwt=" + sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All})
	for _, carrier := range sessionCarriers {
		r.follow(overload.Verdict{Joins: math.Inf(1)}, 0)
		there := dial(t, r, carrier, path)
		if got := settled(t, there); got.code != 0 {
			t.Fatalf("%s: %+v", carrier, got)
		}
		r.follow(overload.Verdict{Full: true, Joins: math.Inf(1), Patience: time.Second}, time.Second)
		want := outcome{lite.CodeApplication + http.StatusServiceUnavailable, "overloaded"}
		if byStatus(carrier) {
			want = outcome{code: http.StatusServiceUnavailable}
		}
		if got := knock(t, r, carrier, path); got != want {
			t.Errorf("%s: a client got %+v", carrier, got)
		}
		if got := settled(t, dialWith(t, r, carrier, "/", with(ca.client(t, "relay.example", time.Now().Add(time.Hour))))); got.code != 0 {
			t.Errorf("%s: a peer got %+v", carrier, got)
		}
		if got := settled(t, there); got.code != 0 {
			t.Errorf("%s: who was there got %+v", carrier, got)
		}
	}
	turnedAway(t, r, "lateness")
	r.follow(overload.Verdict{Joins: math.Inf(1)}, 0)
	if got := knock(t, r, "quic", path); got.code != 0 {
		t.Errorf("after it, a client got %+v", got)
	}
	if r.cache.Stats().Shed != 0 {
		t.Error("groups were shed where there are none")
	}
}

// TestJoinsArePaced: while joining is slowed down, clients wait for their turn, and those who would wait for too long are
// refused at once.
func TestJoinsArePaced(t *testing.T) {
	r := start(t, func(c *Config) { c.Internal = "127.0.0.1:0" })
	r.follow(overload.Verdict{Joins: 2}, 50*time.Millisecond)
	begin := time.Now()
	const many = joinBurst + 3
	for range many {
		if got := knock(t, r, "quic", "/"); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("%d joins took %v", many, took)
	}
	if r.pressure.delayed.Load() == 0 {
		t.Error("no join was delayed")
	}
	for r.pressure.joins.Allow() { // what is left of the burst
	}
	for range 2*int(longestJoin/time.Second) + 1 { // fill the line
		r.pressure.joins.Reserve()
	}
	if c, err := client.Dial(t.Context(), where(r, "quic", "/"), trusting); err == nil {
		c.Close()
		t.Error("somebody came in past the line")
	}
	turnedAway(t, r, "lateness")
}

// TestLatenessIsWatched: the relay looks at how late it is by itself.
func TestLatenessIsWatched(t *testing.T) {
	r := start(t, func(c *Config) { c.Lateness = time.Nanosecond }) // which nobody meets
	waitFor(t, 30*time.Second, "the relay to find itself late", r.pressure.full.Load)
}
