package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// TestSlowReaders has twenty viewers who keep up, one who reads a kilobyte a second and one who reads nothing for half a
// minute. The twenty notice nothing, the relay holds no more than it would for them, and the sleeper wakes to the present.
func TestSlowReaders(t *testing.T) {
	cfg := sim.Config{Topology: sim.Chain(2), Net: netsim.Link{Delay: 10 * time.Millisecond}}
	in(t, cfg, func(t *testing.T, c *sim.Cluster) {
		video := sim.Video("show")
		video.Size, video.Info.MaxAge = 8000, 5*time.Second // 100 kB/s
		must(c.Publish(sim.PublisherConfig{Content: video}))(t)
		watch := func(a sim.Access) *sim.Viewer {
			a.Relay = 1
			return must(c.Watch(sim.ViewerConfig{Content: video, Access: a, MaxAge: time.Second}))(t)
		}
		var viewers []*sim.Viewer
		for range 20 {
			viewers = append(viewers, watch(sim.Access{}))
		}
		small := endpoint.QUIC{ReceiveWindow: 32 << 10, StreamReceiveWindow: 16 << 10}
		slow := watch(sim.Access{Slow: 1000, QUIC: small})
		sleeper := watch(sim.Access{Asleep: true, QUIC: small})
		var most int64
		c.Sampled(func() {
			if up := c.Relays[1].Up(); up != nil {
				most = max(most, up.State().Metrics().Own.CacheBytes)
			}
		})
		c.Run(30 * time.Second)
		woken := time.Now()
		sleeper.Wake()
		c.Run(5 * time.Second)
		for _, v := range viewers {
			uninterrupted(t, v, 33, frame)
			if late := v.Watches()[0].Late; late > 40*time.Millisecond {
				t.Errorf("a frame came %v late", late)
			}
		}
		// Retained are 30 s of 100 kB/s (F13: nobody reads or writes them for so long), whoever sleeps.
		if limit := int64(40 * 110_000); most > limit {
			t.Errorf("the relay held %d bytes, want at most %d", most, limit)
		}
		slow.Stop()
		sleeper.Stop()
		for _, f := range append(slow.Watches()[0].Faults, sleeper.Watches()[0].Faults...) {
			t.Error(f)
		}
		recent := 0
		for seq, g := range sleeper.Watches()[0].Groups {
			if g.Whole(video.PerGroup) && epoch.Add(time.Duration(seq)*time.Second).After(woken.Add(-2*time.Second)) {
				recent++
			}
		}
		if recent < 4 {
			t.Errorf("the sleeper got %d whole groups of the 5 s after it woke", recent)
		}
	})
}

// TestComingAndGoing subscribes and leaves again and again, with pauses around everything that lingers: the first frame
// comes within a second, and the publisher is never asked twice at a time.
func TestComingAndGoing(t *testing.T) {
	for _, pause := range []time.Duration{0, 10 * time.Millisecond, time.Second, 29 * time.Second, 31 * time.Second} {
		t.Run(pause.String(), func(t *testing.T) {
			cfg := sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}
			in(t, cfg, func(t *testing.T, c *sim.Cluster) {
				must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
				c.Sampled(func() {
					for i, n := range upstreams(c) {
						if n > 1 {
							t.Errorf("relay %d subscribes %d times", i, n)
						}
					}
				})
				for round := range 20 {
					v := must(c.Watch(sim.ViewerConfig{
						Content: sim.Video("show"), Access: sim.Access{Relay: 2}, MaxAge: time.Second,
					}))(t)
					begun := func() bool {
						all := v.Watches()
						return len(all) == 1 && !all[0].Last.IsZero()
					}
					if !c.Await(time.Second, begun) {
						t.Fatalf("round %d: no frame after a second", round)
					}
					v.Stop()
					for _, f := range v.Watches()[0].Faults {
						t.Errorf("round %d: %s", round, f)
					}
					c.Run(pause)
				}
			})
		})
	}
}

// TestVanishingViewers cuts the cable of the only viewer. The publisher sees the end of the demand after the idle timeout,
// through two relays.
func TestVanishingViewers(t *testing.T) {
	in(t, sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		must(c.Publish(sim.PublisherConfig{Content: sim.Video("show")}))(t)
		v := patient(t, c, "show", 2)
		c.Run(3 * time.Second)
		v.Isolate()
		c.Run(8 * time.Second)
		if got := upstreams(c); got[0] != 1 || got[1] != 1 || got[2] != 1 {
			t.Errorf("upstream subscriptions after 8 s: %v", got)
		}
		c.Run(4 * time.Second) // idle timeout + 2 s
		if got := upstreams(c); got[0] != 0 || got[1] != 0 || got[2] != 0 {
			t.Errorf("upstream subscriptions after 12 s: %v", got)
		}
	})
}

// TestSubscribeAtOnce subscribes to each of 500 broadcasts as soon as it is announced, two hops away: all are there.
func TestSubscribeAtOnce(t *testing.T) {
	in(t, sim.Config{Topology: sim.Chain(3), Net: netsim.Link{Delay: 10 * time.Millisecond}}, func(t *testing.T, c *sim.Cluster) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		pub := must(c.Dial(ctx, sim.Access{}, client.Config{}))(t)
		sub := must(c.Dial(ctx, sim.Access{Relay: 2}, client.Config{}))(t)
		list := must(sub.Announced(ctx, ""))(t)
		defer list.Close()
		const names = 500
		go publishNames(t, pub, names)
		frames := make(chan error, names)
		for range names {
			a := must(list.Next(ctx))(t)
			go func() { frames <- firstFrame(ctx, sub, a.Path) }()
		}
		for range names {
			if err := <-frames; err != nil {
				t.Error(err)
			}
		}
	})
}

// publishNames publishes broadcasts with one group each.
func publishNames(t *testing.T, c *client.Client, n int) {
	for i := range n {
		b, err := c.Publish(fmt.Sprintf("room/%d", i))
		if err != nil {
			t.Error(err)
			return
		}
		track, err := b.Track("video", client.Info{MaxAge: time.Minute})
		if err != nil {
			t.Error(err)
			return
		}
		g, err := track.Group(0)
		if err == nil {
			err = g.WriteFrame(0, []byte(b.Path()))
		}
		if err == nil {
			g.Finish()
			err = b.Announce(cost(0))
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// firstFrame subscribes and checks the first frame.
func firstFrame(ctx context.Context, c *client.Client, path string) error {
	track, err := c.Subscribe(ctx, path, "video", client.Subscription{MaxAge: time.Second})
	if err != nil {
		return err
	}
	defer track.Close()
	g, err := track.NextGroup(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	f, err := g.ReadFrame(ctx)
	if err != nil {
		return err
	}
	if string(f.Payload) != path {
		return fmt.Errorf("%q holds %q", path, f.Payload)
	}
	return nil
}
