package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
	"github.com/moqmesh/moqmesh/route"
)

// oldest is the lowest group of a subscription; false if none has come.
func oldest(w *sim.Watch) (seq uint64, ok bool) {
	for n := range w.Groups {
		if !ok || n < seq {
			seq, ok = n, true
		}
	}
	return seq, ok
}

// TestLiveEdge has a route die between the subscription and its first group, while the next source holds a hundred old
// groups: the viewer begins at the live edge, as far back as it allows, and not with the hundred.
func TestLiveEdge(t *testing.T) {
	for name, end := range map[string]func(c *sim.Cluster, empty *client.Client){
		"publisher leaves": func(_ *sim.Cluster, empty *client.Client) { empty.Close() },
		"relay stops":      func(c *sim.Cluster, _ *client.Client) { c.Relays[1].Stop() },
		"relay crashes":    func(c *sim.Cluster, _ *client.Client) { c.Relays[1].Crash() },
	} {
		t.Run(name, func(t *testing.T) {
			in(t, diamond(false), func(t *testing.T, c *sim.Cluster) {
				show := sim.Video("show")
				show.Info.MaxAge = 2 * time.Minute
				c.Run(time.Until(epoch.Add(2 * time.Minute)))
				must(c.Publish(sim.PublisherConfig{Content: show, Access: sim.Access{Relay: 2}, Cost: cost(50), Backfill: 100}))(t)
				empty := must(c.Dial(context.Background(), sim.Access{Relay: 1}, client.Config{Role: client.RolePublisher}))(t)
				b := must(empty.Publish("show"))(t)
				must(b.Track("video", show.Info))(t)
				if err := b.Announce(route.Cost{}); err != nil {
					t.Fatal(err)
				}
				c.Run(time.Second)
				const maxAge = 3 * time.Second
				v := must(c.Watch(sim.ViewerConfig{Content: show, Access: sim.Access{Relay: 3}, MaxAge: maxAge}))(t)
				c.Run(time.Second)
				if n := len(v.Watches()); n != 1 || len(v.Watches()[0].Groups) != 0 {
					t.Fatalf("subscribed %d times, and already there: %v", n, v.Watches())
				}
				died := time.Now()
				end(c, empty)
				c.Run(15 * time.Second)
				v.Stop()
				all := v.Watches()
				first, ok := oldest(&all[0])
				// A group lasts for a second; one that has begun counts from its newest frame.
				if edge := uint64(died.Sub(epoch) / time.Second); !ok || first+uint64(maxAge/time.Second)+1 < edge {
					t.Errorf("the first group is %d (%v), the live edge was %d", first, ok, edge)
				}
				if len(all) != 1 {
					t.Errorf("subscribed %d times", len(all))
				}
				for _, f := range all[0].Faults {
					t.Error(f)
				}
			})
		})
	}
}

// TestOriginRestart takes the relay where a broadcast is published away for 15 s; its publisher comes back 5 s after it. The
// other relay links itself again, and viewers go on with what is live then, not with what was cached before.
func TestOriginRestart(t *testing.T) {
	for name, end := range map[string]func(*sim.Relay){"stop": (*sim.Relay).Stop, "crash": (*sim.Relay).Crash} {
		t.Run(name, func(t *testing.T) {
			cfg := sim.Config{Topology: sim.Chain(2), Net: netsim.Link{Delay: 10 * time.Millisecond}}
			cfg.Topology.Links[0].From, cfg.Topology.Links[0].To = 1, 0 // the edge dials
			in(t, cfg, func(t *testing.T, c *sim.Cluster) {
				watchers := listen(t, c)
				show := sim.Video("show")
				p := must(c.Publish(sim.PublisherConfig{Content: show}))(t)
				v := must(c.Watch(sim.ViewerConfig{Content: show, Access: sim.Access{Relay: 1}, MaxAge: 30 * time.Second}))(t)
				c.Run(20 * time.Second)
				end(c.Relays[0])
				p.Crash()
				c.Run(15 * time.Second)
				if names := watchers[1].Names(); len(names) != 0 {
					t.Errorf("15 s later the edge still announces %v", names)
				}
				if err := c.Relays[0].Start(); err != nil {
					t.Fatal(err)
				}
				back := time.Now().Add(5 * time.Second)
				c.Run(time.Until(back))
				must(c.Publish(sim.PublisherConfig{Content: show}))(t)
				if !c.Await(25*time.Second, c.Linked) {
					t.Fatal("not linked 30 s after the restart")
				}
				if !c.Await(time.Second, everywhere(watchers, "show")) {
					t.Error("not announced everywhere a second after that")
				}
				c.Run(5 * time.Second)
				v.Stop()
				all := v.Watches()
				last := &all[len(all)-1]
				if first, ok := oldest(last); len(all) < 2 || !ok || first < uint64(back.Sub(epoch)/time.Second) {
					t.Errorf("subscribed %d times, the last time from group %d (%v) on; the publisher came back at %v", len(all), first, ok, back.Sub(epoch))
				}
				if late := time.Since(last.Last); late > time.Second {
					t.Errorf("the last frame came %v ago", late)
				}
				for i := range all {
					for _, f := range all[i].Faults {
						t.Error(f)
					}
				}
			})
		})
	}
}
