package relay

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
)

// TestGoawayHandsOver (C12): a peer that names another address of the same host gets a successor at once, and serves
// beside it for the handover at most; one that names none is kept until it closes.
func TestGoawayHandsOver(t *testing.T) {
	first, second := start(t, nil), start(t, nil)
	const handover = 2 * time.Second
	spoke := start(t, func(c *Config) {
		c.Peers = peers(t, first.url())
		c.Cluster.Handover = handover
	})
	status := func() cluster.Status { return spoke.Peers()[0] }
	waitFor(t, 5*time.Second, "linked", func() bool { return first.sessions.len() == 1 && status().State == cluster.StateConnected })
	first.sessions.list()[0].Goaway(second.url())
	begin := time.Now()
	waitFor(t, 5*time.Second, "linked with the successor", func() bool { return second.sessions.len() == 1 })
	if took := time.Since(begin); took > handover*3/4 || first.sessions.len() != 1 {
		t.Errorf("handed over after %v, the old session has ended: %v", took, first.sessions.len() == 0)
	}
	waitFor(t, 5*time.Second, "old session over", func() bool { return first.sessions.len() == 0 })
	if took := time.Since(begin); took < handover-100*time.Millisecond {
		t.Errorf("the old session was cut after %v", took)
	}
	if s := status(); s.State != cluster.StateConnected || len(s.Sessions) != 1 {
		t.Errorf("status %+v", s)
	}
	second.sessions.list()[0].Goaway("")
	waitFor(t, 5*time.Second, "draining", func() bool { return status().State == cluster.StateDraining })
	time.Sleep(handover + 200*time.Millisecond)
	if s := status(); s.State != cluster.StateDraining || second.sessions.len() != 1 || first.sessions.len() != 0 {
		t.Errorf("a peer that drains is not kept, or dialed anew: %+v", s)
	}
	second.sessions.closeAll(0, "gone")
	waitFor(t, 5*time.Second, "back at the configured address", func() bool { return first.sessions.len() == 1 })
}

// TestGoawayElsewhere: an address that must not be followed ends the session; the configured one is dialed again.
func TestGoawayElsewhere(t *testing.T) {
	hub := start(t, nil)
	spoke := start(t, func(c *Config) { c.Peers = peers(t, hub.url()) })
	waitFor(t, 5*time.Second, "linked", func() bool { return hub.sessions.len() == 1 })
	old := hub.sessions.list()[0].id
	hub.sessions.list()[0].Goaway("moqt://elsewhere.example/")
	waitFor(t, 5*time.Second, "dialed again", func() bool {
		all := hub.sessions.list()
		return len(all) == 1 && all[0].id != old
	})
	if s := spoke.Peers()[0]; s.LastError == "" {
		t.Errorf("status %+v", s)
	}
}
