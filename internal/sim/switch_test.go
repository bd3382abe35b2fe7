package sim_test

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
)

// patient is a viewer that allows groups to be 30 s behind, so that it must miss nothing as long as there is a path.
func patient(t *testing.T, c *sim.Cluster, name string, relay int) *sim.Viewer {
	t.Helper()
	return must(c.Watch(sim.ViewerConfig{
		Content: sim.Video(name), Access: sim.Access{Relay: relay}, MaxAge: 30 * time.Second,
	}))(t)
}

// uninterrupted stops a viewer and checks that it has seen everything over one subscription.
func uninterrupted(t *testing.T, v *sim.Viewer, groups int, stall time.Duration) {
	t.Helper()
	v.Stop()
	all := v.Watches()
	if len(all) != 1 {
		t.Errorf("subscribed %d times", len(all))
		for i := range all {
			t.Log(&all[i])
		}
		return
	}
	checkWatch(t, &all[0], groups, stall)
}

// upstreams are the upstream subscriptions of every relay.
func upstreams(c *sim.Cluster) (all []int) {
	for _, r := range c.Relays {
		n := 0
		if up := r.Up(); up != nil {
			n = up.Origin().Counters().Upstreams
		}
		all = append(all, n)
	}
	return all
}

// frame is the time between two frames, with what delay and jitter may add.
const frame = 40*time.Millisecond + 40*time.Millisecond

// TestTakeover starts the relay on a cheaper way while a broadcast is being watched: it takes over in the middle of a group,
// without a pause and without a frame lost or doubled (F18, X17).
func TestTakeover(t *testing.T) {
	in(t, diamond(false), func(t *testing.T, c *sim.Cluster) {
		c.Relays[1].Stop()
		c.Run(time.Second)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		v := patient(t, c, "show", 3)
		c.Run(4 * time.Second)
		if got := upstreams(c); got[2] != 1 || got[3] != 1 {
			t.Fatalf("upstream subscriptions before: %v", got)
		}
		if err := c.Relays[1].Start(); err != nil {
			t.Fatal(err)
		}
		c.Run(16 * time.Second)
		if got := upstreams(c); got[1] != 1 || got[2] != 0 || got[3] != 1 {
			t.Errorf("upstream subscriptions after: %v", got)
		}
		uninterrupted(t, v, 18, frame)
	})
}

// TestReprice has two publishers of one broadcast on different relays. The one that serves makes itself dearer than the
// other, which takes over (R17, X26).
func TestReprice(t *testing.T) {
	in(t, sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		a := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 101, Backfill: 5}))(t)
		must(c.Publish(sim.PublisherConfig{
			Content: sim.Video("show"), Hop: 102, Backfill: 5, Access: sim.Access{Relay: 2}, Cost: cost(10),
		}))(t)
		v := patient(t, c, "show", 1)
		w := must(c.Listen(sim.Access{Relay: 1}))(t)
		c.Run(4 * time.Second)
		if now, _ := w.Announced("show"); len(now.Hops) == 0 || now.Hops[0] != 101 {
			t.Fatalf("announced %+v, want the way to 101", now)
		}
		changed := time.Now()
		a.Reprice(cost(20))
		c.Run(time.Second)
		if got := upstreams(c); got[0] != 0 || got[2] != 1 {
			t.Errorf("upstream subscriptions after: %v", got)
		}
		told := w.Told("show", changed)
		if len(told) != 1 || !told[0].Changed || told[0].Hops[0] != 102 {
			t.Errorf("after it was re-priced:%s", messages(told, changed))
		} else if after := told[0].At.Sub(changed); after < 600*time.Millisecond || after > 700*time.Millisecond {
			t.Errorf("the change was announced after %v", after) // held by both relays on the way (R34)
		}
		c.Run(5 * time.Second)
		uninterrupted(t, v, 8, frame)
	})
}

// TestTwoPublishers ends the serving one of two publishers of one broadcast, each way. Viewers of the other and of third
// relays go on, and the name never vanishes (F1, F39, X28, X57).
func TestTwoPublishers(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*sim.Publisher)
		gap  time.Duration
	}{
		{"withdraw", (*sim.Publisher).Withdraw, frame},
		{"stop", (*sim.Publisher).Stop, frame + 80*time.Millisecond}, // two round trips on each of two links, to ask the other
		{"crash", (*sim.Publisher).Crash, 14 * time.Second},          // a client's session: idle timeout and keep-alive
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, sim.Config{Topology: sim.Mesh(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
				var viewers []*sim.Viewer
				watchers := listen(t, c)
				a := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 101, Backfill: 2}))(t)
				b := must(c.Publish(sim.PublisherConfig{
					Content: sim.Video("show"), Hop: 102, Backfill: 20, Access: sim.Access{Relay: 1}, Cost: cost(5),
				}))(t)
				for i := range c.Relays {
					viewers = append(viewers, patient(t, c, "show", i))
				}
				c.Run(6*time.Second + 300*time.Millisecond)
				if got := c.Relays[0].Up().Origin().Counters().Readers; got != 3 {
					t.Fatalf("relay 0 serves %d readers, want its viewer and two relays", got)
				}
				left := time.Now()
				tt.end(a)
				c.Run(20 * time.Second)
				for i, v := range viewers {
					uninterrupted(t, v, 20, tt.gap)
					for _, m := range watchers[i].Told("show", left) {
						if !m.Active {
							t.Errorf("relay %d announced:%s", i, messages(watchers[i].Told("show", left), left))
						}
					}
				}
				b.Stop()
				if !c.Await(time.Second, everywhere(watchers)) {
					t.Error("the name is still there without a publisher")
				}
			})
		})
	}
}

// TestReconnectOverlap lets a publisher come back while its old session is still there, as after a change of address: the
// new session takes over at once, the end of the old one is not noticed (F20, E53).
func TestReconnectOverlap(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*sim.Publisher)
	}{
		{"stop", (*sim.Publisher).Stop},
		{"crash", (*sim.Publisher).Crash},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
				watchers := listen(t, c)
				old := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 99}))(t)
				v := patient(t, c, "show", 2)
				c.Run(3500 * time.Millisecond)
				began := time.Now()
				must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 99}))(t)
				c.Run(200 * time.Millisecond)
				tt.end(old)
				c.Run(20 * time.Second)
				for i, w := range watchers {
					if told := w.Told("show", began); len(told) != 0 {
						t.Errorf("relay %d announced:%s", i, messages(told, began))
					}
				}
				uninterrupted(t, v, 20, frame)
			})
		})
	}
}

// TestPublisherRestart takes the only publisher away for five seconds: the name goes and comes, viewers go on with what is
// live then.
func TestPublisherRestart(t *testing.T) {
	in(t, sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		w := must(c.Listen(sim.Access{Relay: 2}))(t)
		v := patient(t, c, "show", 2)
		began := time.Now()
		first := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		c.Run(3500 * time.Millisecond)
		first.Stop()
		c.Run(5 * time.Second)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		c.Run(5 * time.Second)
		v.Stop()
		told := w.Told("show", began)
		if len(told) != 3 || !told[0].Active || told[1].Active || !told[2].Active {
			t.Errorf("announced:%s", messages(told, began))
		}
		all := v.Watches()
		if len(all) != 2 {
			t.Fatalf("subscribed %d times", len(all))
		}
		for i := range all {
			checkWatch(t, &all[i], 3, frame)
		}
	})
}

// TestRelayRestart stops the relay in the middle of a chain for three seconds, with and without a stable id. Everything
// comes back by itself: links, names, viewers.
func TestRelayRestart(t *testing.T) {
	for _, id := range []uint64{2, 0} {
		for _, tt := range []struct {
			name string
			end  func(*sim.Relay)
			wait bool
		}{
			{"stop", (*sim.Relay).Stop, false},
			{"crash", (*sim.Relay).Crash, true},
		} {
			t.Run(tt.name, func(t *testing.T) {
				cfg := sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}
				cfg.Relay = func(i int, r *sim.RelayConfig) {
					if i == 1 {
						r.ID = hops(2, 0)[1-id/2]
					}
				}
				in(t, cfg, func(t *testing.T, c *sim.Cluster) {
					watchers := listen(t, c)
					must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
					v := patient(t, c, "show", 2)
					c.Run(3500 * time.Millisecond)
					tt.end(c.Relays[1])
					c.Run(3 * time.Second)
					if err := c.Relays[1].Start(); err != nil {
						t.Fatal(err)
					}
					if tt.wait {
						c.Run(11 * time.Second) // until those who only listen have noticed
					}
					if !c.Await(30*time.Second, c.Linked) {
						t.Fatal("not linked 30 s later")
					}
					if !c.Await(3*time.Second, everywhere(watchers, "show")) {
						t.Error("not announced everywhere after that")
					}
					c.Run(5 * time.Second)
					v.Stop()
					all := v.Watches()
					if last := &all[len(all)-1]; time.Since(last.Last) > time.Second {
						t.Errorf("the last frame came %v ago", time.Since(last.Last))
					}
					for i := range all {
						checkWatch(t, &all[i], 3, 13*time.Second)
					}
				})
			})
		}
	}
}

// TestTwoSessions links two relays twice, each dialing the other. Names are announced once and content is pulled once; the
// loss of either session is not noticed by anybody (R25, E53).
func TestTwoSessions(t *testing.T) {
	top := sim.Chain(3)
	top.Links = append(top.Links, sim.Link{From: 0, To: 1})
	in(t, sim.Config{Topology: top, Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		w := must(c.Listen(sim.Access{Relay: 2}))(t)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 99}))(t)
		v := patient(t, c, "show", 2)
		c.Run(4 * time.Second)
		if got := c.Relays[0].Up().Origin().Counters().Readers; got != 1 {
			t.Errorf("relay 0 serves the track %d times", got)
		}
		began := time.Now()
		for _, r := range []int{0, 1} { // relay 1 dials relay 0, and relay 0 relay 1 alone
			c.Relays[r].Unplug(true)
			c.Run(15 * time.Second)
			c.Relays[r].Unplug(false)
			if !c.Await(30*time.Second, c.Linked) {
				t.Fatal("not linked again")
			}
			c.Run(2 * time.Second)
		}
		if told := w.Told("show", began); len(told) != 0 {
			t.Errorf("announced:%s", messages(told, began))
		}
		uninterrupted(t, v, 30, 11*time.Second)
	})
}

// TestHiddenPublisher has a cheap publisher and a dear one on opposite sides of a ring. The relays between them tell each
// other of the cheap one only, whichever way it comes by. When it leaves, all that they know is stale at once; their tracks
// wait until they are told of the other, which takes a hold. The relay where it was knows of nobody: its viewers must
// subscribe again.
func TestHiddenPublisher(t *testing.T) {
	in(t, sim.Config{Topology: sim.Ring(4), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 101, Cost: cost(10), Backfill: 2}))(t)
		cheap := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 102, Access: sim.Access{Relay: 2}}))(t)
		c.Run(2 * time.Second)
		var viewers []*sim.Viewer
		for i := range c.Relays {
			viewers = append(viewers, patient(t, c, "show", i))
		}
		c.Run(4*time.Second + 300*time.Millisecond)
		cheap.Stop()
		c.Run(5 * time.Second)
		for i, v := range viewers {
			if i != 2 {
				uninterrupted(t, v, 8, 700*time.Millisecond)
			}
		}
		if n := len(viewers[2].Watches()); n != 2 {
			t.Errorf("the viewer next to the cheap publisher subscribed %d times", n)
		}
	})
}
