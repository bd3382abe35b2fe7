package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
)

// TestOnePull has viewers everywhere in meshes with redundant links: each relay pulls each track once.
func TestOnePull(t *testing.T) {
	for _, top := range []sim.Topology{sim.Ring(3), sim.Ring(4), sim.Ring(5), sim.Chord(5), sim.Mesh(4), sim.Mesh(5)} {
		t.Run(fmt.Sprintf("%d relays, %d links", top.Relays, len(top.Links)), func(t *testing.T) {
			in(t, sim.Config{Topology: top, Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
				must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
				c.Run(time.Second)
				var viewers []*sim.Viewer
				for i := range c.Relays {
					viewers = append(viewers, patient(t, c, "show", i))
				}
				c.Run(5 * time.Second)
				for i, n := range upstreams(c) {
					if n != 1 {
						t.Errorf("relay %d pulls %d times: %+v", i, n, c.Relays[i].Up().Origin().Tracks())
					}
				}
				for _, v := range viewers {
					uninterrupted(t, v, 4, frame)
				}
			})
		})
	}
}
