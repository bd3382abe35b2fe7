package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
)

// diamond is a publisher at relay 0 and a viewer at relay 3. The way by relay 1 is cheaper than that by relay 2.
func diamond(webTransport bool) sim.Config {
	top := sim.Diamond()
	dear := uint64(5)
	for i := range top.Links {
		top.Links[i].WebTransport = webTransport
		if top.Links[i].From == 2 || top.Links[i].To == 2 {
			top.Links[i].Cost = &dear
		}
	}
	return sim.Config{Topology: top, Net: netsim.Link{Delay: 10 * time.Millisecond}}
}

// TestFailover lets the relay that serves go, in each way there is. The viewer allows groups to be 30 s behind, so it must
// not miss a single frame.
func TestFailover(t *testing.T) {
	const between = 40*time.Millisecond + 20*time.Millisecond // frames, and what a detour and a request cost
	for _, tt := range []struct {
		name  string
		fault func(t *testing.T, c *sim.Cluster)
		gap   time.Duration
	}{
		{"close", func(_ *testing.T, c *sim.Cluster) { c.Relays[1].Stop() }, between + 120*time.Millisecond},
		{"drain", func(_ *testing.T, c *sim.Cluster) { c.Relays[1].Drain(5 * time.Second) }, between},
		{"crash", func(_ *testing.T, c *sim.Cluster) { c.Relays[1].Crash() }, 11 * time.Second},
	} {
		for _, webTransport := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/webtransport=%v", tt.name, webTransport), func(t *testing.T) {
				in(t, diamond(webTransport), func(t *testing.T, c *sim.Cluster) {
					must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
					v := must(c.Watch(sim.ViewerConfig{
						Content: sim.Video("show"), Access: sim.Access{Relay: 3}, MaxAge: 30 * time.Second,
					}))(t)
					c.Run(5*time.Second + 517*time.Millisecond) // in the middle of a group
					if up := c.Relays[1].Up().Origin().Counters().Upstreams; up != 1 {
						t.Fatalf("the cheap relay has %d upstream subscriptions", up)
					}
					tt.fault(t, c)
					c.Run(20 * time.Second)
					if up := c.Relays[2].Up().Origin().Counters().Upstreams; up != 1 {
						t.Fatalf("the other relay has %d upstream subscriptions", up)
					}
					v.Stop()
					all := v.Watches()
					if len(all) != 1 {
						t.Fatalf("subscribed %d times, first ended: %v", len(all), all[0].Err)
					}
					checkWatch(t, &all[0], 23, tt.gap)
				})
			})
		}
	}
}
