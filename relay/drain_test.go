package relay

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
)

// TestDrain (config 6): everybody is told to go, also who comes later; a relay that drains dials nobody; whoever is
// left at the deadline is closed as overdue.
func TestDrain(t *testing.T) {
	for _, carrier := range sessionCarriers {
		t.Run(carrier, func(t *testing.T) { testDrain(t, carrier) })
	}
}

func testDrain(t *testing.T, carrier string) {
	hub := start(t, nil)
	early := start(t, func(c *Config) { c.Peers = peers(t, where(hub, carrier, "/")) })
	waitFor(t, 5*time.Second, "linked", func() bool { return hub.sessions.len() == 1 })
	const window = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), window)
	defer cancel()
	begin, done := time.Now(), make(chan error, 1)
	go func() { done <- hub.Shutdown(ctx) }()
	state := func(r *Relay) cluster.State { return r.Peers()[0].State }
	waitFor(t, 2*time.Second, "told to go", func() bool { return state(early) == cluster.StateDraining })
	late := start(t, func(c *Config) { c.Peers = peers(t, where(hub, carrier, "/")) })
	waitFor(t, 2*time.Second, "late one told to go", func() bool { return state(late) == cluster.StateDraining })
	if m := hub.State().Metrics(); m.DrainingSessions != 2 {
		t.Errorf("%d draining sessions", m.DrainingSessions)
	}
	if err := <-done; err != nil || time.Since(begin) < window {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	for _, r := range []*Relay{early, late} {
		waitFor(t, 5*time.Second, "session over", func() bool { return state(r) != cluster.StateDraining })
		if got := r.Peers()[0].LastError; !strings.Contains(got, "0x10") && !strings.Contains(got, "drain deadline") {
			t.Errorf("closed with %q", got)
		}
	}
}

// TestDrainWithoutWindow: nobody is told, all are closed at once.
func TestDrainWithoutWindow(t *testing.T) {
	hub := start(t, nil)
	spoke := start(t, func(c *Config) { c.Peers = peers(t, hub.url()) })
	waitFor(t, 5*time.Second, "linked", func() bool { return hub.sessions.len() == 1 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	if err := hub.Shutdown(ctx); err != nil || time.Since(begin) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	waitFor(t, 5*time.Second, "session over", func() bool { return spoke.Peers()[0].LastError != "" })
	if got := spoke.Peers()[0].LastError; !strings.Contains(got, "going away") {
		t.Errorf("closed with %q", got)
	}
}

// TestDrainingRelayDialsNobody: it would only have to leave again.
func TestDrainingRelayDialsNobody(t *testing.T) {
	hub := start(t, nil)
	spoke := start(t, func(c *Config) { c.Peers = peers(t, hub.url()) })
	waitFor(t, 5*time.Second, "linked", func() bool { return hub.sessions.len() == 1 })
	spoke.sessions.drain()
	hub.sessions.closeAll(0, "gone")
	waitFor(t, 5*time.Second, "tried", func() bool { return strings.Contains(spoke.Peers()[0].LastError, "drains") })
	if n := hub.sessions.len(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}
