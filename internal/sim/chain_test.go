package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
)

// load is what a relay carries.
type load struct{ Upstreams, Tracks, Readers int }

func loadOf(r *sim.Relay) load {
	n := r.Up().Origin().Counters()
	return load{n.Upstreams, n.Tracks, n.Readers}
}

// TestChain has a publisher at one end of three relays and 50 viewers at the other: each link carries the track once, and
// nobody carries it any more when the last viewer has left (X9, X45).
func TestChain(t *testing.T) {
	cfg := sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}
	in(t, cfg, func(t *testing.T, c *sim.Cluster) {
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		var viewers []*sim.Viewer
		for range 50 {
			viewers = append(viewers, must(c.Watch(sim.ViewerConfig{
				Content: sim.Video("show"), Access: sim.Access{Relay: 2}, MaxAge: 2 * time.Second,
			}))(t))
		}
		c.Run(10 * time.Second)
		for i, want := range []load{{1, 1, 1}, {1, 1, 1}, {1, 1, 50}} {
			if got := loadOf(c.Relays[i]); got != want {
				t.Errorf("relay %d: %+v, want %+v", i, got, want)
			}
		}
		asked := make([]uint64, 3)
		for i, r := range c.Relays {
			asked[i] = r.Up().Origin().Counters().Subscriptions
			if asked[i] != 1 {
				t.Errorf("relay %d has subscribed %d times", i, asked[i])
			}
		}
		for i, v := range viewers {
			v.Stop()
			all := v.Watches()
			if len(all) != 1 {
				t.Fatalf("viewer %d subscribed %d times", i, len(all))
			}
			checkWatch(t, &all[0], 9, 60*time.Millisecond)
		}
		c.Run(2 * time.Second)
		for i, r := range c.Relays {
			if n := r.Up().Origin().Counters(); n.Upstreams != 0 || n.Readers != 0 {
				t.Errorf("2 s after the last viewer has left, relay %d carries %+v", i, loadOf(r))
			}
		}
	})
}

// checkWatch checks a subscription: whole groups, one after the other, and no pause but that between frames and stall. If it
// was lost, groups that were under way when what served it died may be cut; so may those that had a frame within stall, a second at
// the most, when the viewer left.
func checkWatch(t *testing.T, w *sim.Watch, groups int, stall time.Duration) {
	t.Helper()
	for _, f := range w.Faults {
		t.Error(f)
	}
	dying := time.Time{}
	switch {
	case errors.Is(w.Err, context.Canceled):
		dying = w.Ended.Add(-min(stall, time.Second))
	case w.Err != nil:
		dying = w.Ended.Add(-11 * time.Second)
	}
	whole := 0
	for seq, g := range w.Groups {
		switch {
		case g.Whole(25):
			whole++
		case !dying.IsZero() && g.Last.After(dying):
		case g.Done && w.Groups[seq+1] != nil && w.Groups[seq-1] != nil:
			t.Errorf("group %d: frames %d to %d, %v", seq, g.First, g.Next, g.Err)
		}
	}
	if whole < groups {
		t.Errorf("%d whole groups, want %d", whole, groups)
	}
	if w.Stall > stall {
		t.Errorf("%v without a frame", w.Stall)
	}
}

// TestVersions has a chain of three in which everybody speaks one version. On wires without ids what has crossed one link
// between peers never crosses a second (R33b), so there the relays take each other for clients.
func TestVersions(t *testing.T) {
	for v := message.Lite01; v <= message.Lite06; v++ {
		t.Run(v.String(), func(t *testing.T) {
			top := sim.Chain(3)
			for i := range top.Links {
				top.Links[i].WebTransport = i == 0 || v < message.Lite03 // which has no ALPN of its own
			}
			cfg := sim.Config{Topology: top, Net: netsim.Link{Delay: 10 * time.Millisecond}}
			cfg.Relay = func(_ int, r *sim.RelayConfig) {
				r.Accept, r.Dial = []message.Version{v}, []message.Version{v}
				r.Plain = v < message.Lite04
			}
			in(t, cfg, func(t *testing.T, c *sim.Cluster) {
				show := sim.Video("show")
				show.Info = media.DefaultInfo()
				at := func(relay int) sim.Access {
					return sim.Access{Relay: relay, Versions: []message.Version{v}, WebTransport: v < message.Lite03}
				}
				must(c.Publish(sim.PublisherConfig{Content: show, Access: at(0)}))(t)
				viewer := must(c.Watch(sim.ViewerConfig{Content: show, Access: at(2), MaxAge: 2 * time.Second, Unstamped: v < message.Lite05}))(t)
				c.Run(5*time.Second + 500*time.Millisecond)
				uninterrupted(t, viewer, 4, frame)
			})
		})
	}
}
