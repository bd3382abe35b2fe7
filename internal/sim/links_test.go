package sim_test

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
)

// dials counts the dials of all relays.
func dials(c *sim.Cluster) (n uint64) {
	for _, r := range c.Relays {
		if up := r.Up(); up != nil {
			n += up.State().Metrics().Own.Dials
		}
	}
	return n
}

// TestShortCut cuts a link for less than the idle timeout, with a viewer behind it: nothing happens but a pause.
func TestShortCut(t *testing.T) {
	in(t, sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		watchers := listen(t, c)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		v := patient(t, c, "show", 2)
		c.Run(3 * time.Second)
		before, began := dials(c), time.Now()
		c.Cut(0, 1)
		c.Run(6 * time.Second)
		c.Mend(0, 1)
		c.Run(15 * time.Second)
		if dials(c) != before {
			t.Error("relays dialed again")
		}
		for i, w := range watchers {
			if told := w.Told("show", began); len(told) != 0 {
				t.Errorf("relay %d announced:%s", i, messages(told, began))
			}
		}
		uninterrupted(t, v, 21, 12*time.Second) // quic-go probes at growing intervals
	})
}

// TestPartition cuts a chain in the middle for half a minute, both ways and one way, and mends it.
func TestPartition(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  func(c *sim.Cluster)
	}{
		{"both ways", func(c *sim.Cluster) { c.Cut(1, 2) }},
		{"towards the viewer", func(c *sim.Cluster) { c.CutOneWay(1, 2) }},
		{"towards the publisher", func(c *sim.Cluster) { c.CutOneWay(2, 1) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, sim.Config{Topology: sim.Chain(4), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
				watchers := listen(t, c)
				must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
				near, far := patient(t, c, "show", 1), patient(t, c, "show", 3)
				c.Run(3 * time.Second)
				tt.cut(c)
				if !c.Await(14*time.Second, everywhere(watchers[2:])) {
					t.Error("still announced beyond the cut after 14 s")
				}
				c.Run(16 * time.Second)
				if got := upstreams(c); got[0] != 1 || got[1] != 1 || got[2] != 0 || got[3] != 0 {
					t.Errorf("upstream subscriptions while the link is cut: %v", got)
				}
				c.Mend(1, 2)
				if !c.Await(30*time.Second, everywhere(watchers, "show")) {
					t.Fatal("not announced everywhere 30 s after the link was mended")
				}
				c.Run(5 * time.Second)
				far.Stop()
				all := far.Watches()
				if len(all) != 2 {
					t.Fatalf("the viewer beyond the cut subscribed %d times", len(all))
				}
				checkWatch(t, &all[0], 2, 11*time.Second)
				checkWatch(t, &all[1], 4, frame)
				uninterrupted(t, near, 30, frame)
			})
		})
	}
}

// TestCutInRing cuts the link that serves, in a ring: viewers go on by the other way.
func TestCutInRing(t *testing.T) {
	in(t, sim.Config{Topology: sim.Ring(5), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		watchers := listen(t, c)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		var viewers []*sim.Viewer
		for i := range c.Relays {
			viewers = append(viewers, patient(t, c, "show", i))
		}
		c.Run(5 * time.Second)
		began := time.Now()
		c.Cut(0, 1)
		c.Run(25 * time.Second)
		for i, w := range watchers {
			for _, m := range w.Told("show", began) {
				if !m.Active {
					t.Errorf("relay %d announced:%s", i, messages(w.Told("show", began), began))
				}
			}
		}
		for _, v := range viewers {
			uninterrupted(t, v, 28, 11*time.Second)
		}
	})
}

// TestSilentRelay isolates a relay of a ring for half a minute without stopping it, and lets it come back: its own
// viewers lose the broadcast meanwhile and get it again, the others go on.
func TestSilentRelay(t *testing.T) {
	in(t, sim.Config{Topology: sim.Ring(4), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		watchers := listen(t, c)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		other, own := patient(t, c, "show", 2), patient(t, c, "show", 1)
		c.Run(4 * time.Second)
		c.Relays[1].Isolate()
		c.Run(30 * time.Second)
		c.Relays[1].Rejoin()
		if !c.Await(30*time.Second, everywhere(watchers, "show")) {
			t.Fatal("not announced everywhere 30 s after the relay came back")
		}
		c.Run(10 * time.Second)
		uninterrupted(t, other, 40, 11*time.Second)
		own.Stop()
		all := own.Watches()
		if last := all[len(all)-1]; time.Since(last.Last) > time.Second {
			t.Errorf("the viewer at the relay got its last frame %v ago", time.Since(last.Last))
		}
	})
}

// TestFalseDeath leaves links alone for half an hour, and then loses a fifth of all packets for five minutes: no session
// ends, nothing is announced.
func TestFalseDeath(t *testing.T) {
	in(t, sim.Config{Seed: 3, Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		w := must(c.Listen(sim.Access{Relay: 2}))(t)
		idle := sim.Video("idle")
		idle.Interval, idle.PerGroup = 9*time.Second, 2
		must(c.Publish(sim.PublisherConfig{Content: idle}))(t)
		c.Run(time.Second)
		before, began := dials(c), time.Now()
		c.Run(30 * time.Minute)
		lossy := netsim.Link{Delay: 10 * time.Millisecond, Loss: 0.2}
		for i := range 2 {
			c.SetLink(i, i+1, lossy)
		}
		v := must(c.Watch(sim.ViewerConfig{Content: idle, Access: sim.Access{Relay: 2}, MaxAge: 30 * time.Second}))(t)
		c.Run(5 * time.Minute)
		if dials(c) != before {
			t.Error("relays dialed again")
		}
		if told := w.Told("idle", began); len(told) != 0 {
			t.Errorf("announced:%s", messages(told, began))
		}
		v.Stop()
		all := v.Watches()
		if len(all) != 1 || len(all[0].Groups) < 16 {
			t.Errorf("the viewer got %d groups over %d subscriptions", len(all[0].Groups), len(all))
		}
		for _, f := range all[0].Faults {
			t.Error(f)
		}
	})
}

// TestOppositePublishers has two publishers of one name on opposite sides of a ring with equal prices. One is re-priced,
// then a relay is drained: after three seconds each time nothing more is said, and the name is never gone everywhere.
func TestOppositePublishers(t *testing.T) {
	in(t, sim.Config{Topology: sim.Ring(5), Net: netsim.Link{Delay: 20 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		watchers := listen(t, c)
		a := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 101}))(t)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 102, Access: sim.Access{Relay: 2}}))(t)
		if !c.Await(time.Second, everywhere(watchers, "show")) {
			t.Fatal("not announced everywhere")
		}
		leaving := false
		c.Sampled(func() {
			for _, w := range watchers {
				if _, ok := w.Announced("show"); ok || leaving {
					return
				}
			}
			t.Error("the name is gone everywhere")
		})
		calm := func(after string) {
			t.Helper()
			c.Run(3 * time.Second)
			settled := time.Now()
			c.Run(10 * time.Second)
			for i, w := range watchers {
				if told := w.Told("show", settled); len(told) != 0 {
					t.Errorf("%s relay %d announced:%s", after, i, messages(told, settled))
				}
			}
		}
		calm("at first")
		a.Reprice(cost(2))
		calm("after a price has changed")
		c.Relays[3].Drain(time.Second)
		calm("after a relay was drained")
		leaving = true
	})
}

// TestDeathIsNoticed ends what publishes: the relay that had accepted it, be it a client or a relay that public rules have
// let in like one, knows at once if that was said, else after the idle timeout, which runs from the last packet, up to a
// keep-alive before the end (C14; faults 4).
func TestDeathIsNoticed(t *testing.T) {
	const far = 1 // in a chain, relay 1 has dialed relay 0
	said, silent := [2]time.Duration{0, 500 * time.Millisecond}, [2]time.Duration{6 * time.Second, 10500 * time.Millisecond}
	for _, tt := range []struct {
		name  string
		at    int
		end   func(*sim.Cluster, *sim.Publisher)
		after [2]time.Duration
	}{
		{"relay ends", far, func(c *sim.Cluster, _ *sim.Publisher) { c.Relays[far].Close() }, said},
		{"relay dies", far, func(c *sim.Cluster, _ *sim.Publisher) { c.Relays[far].Crash() }, silent},
		{"relay cut off one way", far, func(c *sim.Cluster, _ *sim.Publisher) { c.CutOneWay(far, 0) }, silent},
		{"client ends", 0, func(_ *sim.Cluster, p *sim.Publisher) { p.Stop() }, said},
		{"client dies", 0, func(_ *sim.Cluster, p *sim.Publisher) { p.Crash() }, silent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := sim.Config{Topology: sim.Chain(2), Net: netsim.Link{Delay: 10 * time.Millisecond}}
			cfg.Relay = func(_ int, r *sim.RelayConfig) { r.Plain = true }
			in(t, cfg, func(t *testing.T, c *sim.Cluster) {
				p := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Access: sim.Access{Relay: tt.at}}))(t)
				w := must(c.Listen(sim.Access{}))(t)
				c.Run(20 * time.Second)
				began := time.Now()
				tt.end(c, p)
				c.Run(12 * time.Second)
				told := w.Told("show", began)
				if len(told) != 1 || told[0].Active {
					t.Fatalf("a watcher was told:%s", messages(told, began))
				}
				if after := told[0].At.Sub(began); after < tt.after[0] || after > tt.after[1] {
					t.Errorf("noticed after %v", after)
				}
			})
		})
	}
}
