package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
)

// listen starts a watcher at every relay.
func listen(t *testing.T, c *sim.Cluster) []*sim.Watcher {
	t.Helper()
	var all []*sim.Watcher
	for i := range c.Relays {
		all = append(all, must(c.Listen(sim.Access{Relay: i}))(t))
	}
	return all
}

// everywhere reports whether every watcher has exactly these names.
func everywhere(watchers []*sim.Watcher, names ...string) func() bool {
	return func() bool {
		return !slices.ContainsFunc(watchers, func(w *sim.Watcher) bool { return !slices.Equal(w.Names(), names) })
	}
}

// TestDeparture ends the only publisher of a broadcast in meshes with many ways around. Every relay's viewers hear one
// retraction, and nothing else: no detour is announced first (R47, E43, invariant 6).
func TestDeparture(t *testing.T) {
	for _, top := range []struct {
		name string
		sim.Topology
	}{
		{"chain of 6", sim.Chain(6)},
		{"ring of 4", sim.Ring(4)},
		{"ring of 5 with a chord", sim.Chord(5)},
		{"ring of 8 with a chord", sim.Chord(8)},
		{"star of 6", sim.Star(6)},
		{"mesh of 5", sim.Mesh(5)},
		{"mesh of 7", sim.Mesh(7)},
	} {
		for _, end := range []struct {
			name string
			do   func(*sim.Publisher)
			took time.Duration // until the last relay knows it
		}{
			{"stop", (*sim.Publisher).Stop, time.Second},
			{"crash", (*sim.Publisher).Crash, 11 * time.Second},
		} {
			t.Run(top.name+"/"+end.name, func(t *testing.T) {
				cfg := sim.Config{
					Seed: 1, Topology: top.Topology, Net: netsim.Link{Delay: 20 * time.Millisecond, Jitter: 40 * time.Millisecond},
				}
				in(t, cfg, func(t *testing.T, c *sim.Cluster) {
					watchers := listen(t, c)
					p := must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
					if !c.Await(5*time.Second, everywhere(watchers, "show")) {
						t.Fatal("not announced everywhere after 5 s")
					}
					c.Run(3 * time.Second)
					left := time.Now()
					end.do(p)
					c.Run(20 * time.Second)
					for i, w := range watchers {
						told := w.Told("show", left)
						if len(told) != 1 || told[0].Active {
							t.Errorf("relay %d announced:%s", i, messages(told, left))
						} else if after := told[0].At.Sub(left); after > end.took {
							t.Errorf("relay %d announced the end after %v", i, after)
						}
					}
				})
			})
		}
	}
}

// messages prints announcements.
func messages(told []sim.Told, since time.Time) (s string) {
	for _, m := range told {
		s += fmt.Sprintf("\n\tafter %v: active=%v changed=%v %v %v", m.At.Sub(since), m.Active, m.Changed, m.Hops, m.Cost)
	}
	return s
}

// TestNames announces 2000 names at one end of a chain and withdraws them again. Each viewer at the other end hears of each
// once, and of its end once.
func TestNames(t *testing.T) {
	cfg := sim.Config{Topology: sim.Chain(4), Net: netsim.Link{Delay: 10 * time.Millisecond}}
	in(t, cfg, func(t *testing.T, c *sim.Cluster) {
		w := must(c.Listen(sim.Access{Relay: 3}))(t)
		names := make([]string, 2000)
		for i := range names {
			names[i] = fmt.Sprintf("room/%04d", i)
		}
		begin := time.Now()
		a := must(c.Announce(sim.Access{Relay: 0}, names))(t)
		if !c.Await(5*time.Second, everywhere([]*sim.Watcher{w}, names...)) {
			t.Fatalf("%d names after 5 s", len(w.Names()))
		}
		c.Run(time.Second)
		a.Stop()
		if !c.Await(5*time.Second, everywhere([]*sim.Watcher{w})) {
			t.Fatalf("%d names 5 s after they were withdrawn", len(w.Names()))
		}
		c.Run(time.Second)
		for _, name := range names {
			told := w.Told(name, begin)
			if len(told) != 2 || !told[0].Active || told[1].Active {
				t.Fatalf("%s:%s", name, messages(told, begin))
			}
		}
	})
}

// TestShortestWay checks hop lists and costs of a chain with prices: each relay adds the price of the link on which it has
// received the announcement (R13).
func TestShortestWay(t *testing.T) {
	top := sim.Chain(3)
	ten, zero := uint64(10), uint64(0)
	top.Links[0].Cost, top.Links[1].Cost = &ten, &zero
	in(t, sim.Config{Topology: top}, func(t *testing.T, c *sim.Cluster) {
		watchers := listen(t, c)
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show"), Hop: 99}))(t)
		if !c.Await(time.Second, everywhere(watchers, "show")) {
			t.Fatal("not announced everywhere")
		}
		var got []client.Announcement
		for _, w := range watchers {
			a, _ := w.Announced("show")
			got = append(got, a)
		}
		want := []client.Announcement{
			{Path: "show", Active: true, Hops: hops(99, 1), Cost: cost(1)},
			{Path: "show", Active: true, Hops: hops(99, 1, 2), Cost: cost(11)},
			{Path: "show", Active: true, Hops: hops(99, 1, 2, 3), Cost: cost(11)},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}
