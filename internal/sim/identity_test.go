package sim_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/internal/sim"
)

// TestOwnID (C22a): a dial to ourselves, and a link to a relay with a copied id, are closed, said once, shown as the
// peer's last error, and tried again at the ceiling of the back-off only.
func TestOwnID(t *testing.T) {
	both := sim.Topology{Relays: 2, Links: []sim.Link{{From: 0, To: 1}}}
	self := sim.Topology{Relays: 1, Links: []sim.Link{{From: 0, To: 0}}}
	web := sim.Topology{Relays: 2, Links: []sim.Link{{From: 0, To: 1, WebTransport: true}}}
	for name, topology := range map[string]sim.Topology{"copied id": both, "copied id, WebTransport": web, "ourselves": self} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := must(sim.New(sim.Config{Topology: topology, Relay: func(_ int, cfg *sim.RelayConfig) { cfg.ID = 7 }}))(t)
				defer c.Stop()
				c.Run(10*time.Minute + 15*time.Second)
				r := c.Relays[0].Up()
				peers := r.Peers()
				if len(peers) != 1 {
					t.Fatalf("%d peers", len(peers))
				}
				p := peers[0]
				if p.State != cluster.StateWaiting || !strings.Contains(p.LastError, "our own id") || !strings.Contains(p.LastError, "10.0.0.1:") {
					t.Errorf("status %+v", p)
				}
				if p.Attempts != 21 {
					t.Errorf("%d dials in ten minutes, want one every 30 s", p.Attempts)
				}
				said := 0
				for line := range strings.Lines(c.Log()) {
					if strings.Contains(line, "WARN") {
						said++
					}
				}
				if said != 2 { // by the one that dials and by the one that is dialed
					t.Errorf("%d warnings, want 2: %s", said, c.Log())
				}
				for _, node := range r.State().Nodes() {
					t.Errorf("%s counts as a node", node.Node)
				}
			})
		})
	}
}
