package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
	"github.com/moqmesh/moqmesh/lite/message"
)

// TestMeshOfEachVersion announces twenty names in a full mesh of four relays that speak one version among each other, and
// withdraws them (faults 1): whatever a version can say of loops, and whatever relays have declined of what others still
// withdraw, every link lives, every relay hears of each name, and of its end once.
func TestMeshOfEachVersion(t *testing.T) {
	for v := message.Lite01; v <= message.Lite06; v++ {
		t.Run(v.String(), func(t *testing.T) {
			cfg := sim.Config{
				Topology: sim.Mesh(4), Net: netsim.Link{Delay: 10 * time.Millisecond},
				Relay: func(_ int, r *sim.RelayConfig) { r.Dial = []message.Version{v} },
			}
			in(t, cfg, func(t *testing.T, c *sim.Cluster) {
				watchers := listen(t, c)
				var names []string
				for i := range 20 {
					names = append(names, fmt.Sprintf("room/%02d", i))
				}
				began, before := time.Now(), dials(c)
				a := must(c.Announce(sim.Access{Relay: 0}, names))(t)
				if !c.Await(5*time.Second, everywhere(watchers, names...)) {
					t.Fatal("not announced everywhere after 5 s")
				}
				c.Run(5 * time.Second)
				left := time.Now()
				a.Stop()
				c.Run(10 * time.Second)
				for i, w := range watchers {
					if n := len(w.Names()); n != 0 {
						t.Errorf("relay %d still has %d names", i, n)
					}
					if told := w.Told(names[7], left); len(told) != 1 {
						t.Errorf("relay %d announced:%s\nbefore:%s", i, messages(told, left), messages(w.Told(names[7], began), began))
					}
				}
				if n := dials(c) - before; n != 0 {
					t.Errorf("%d dials: links were lost", n)
				}
			})
		})
	}
}
