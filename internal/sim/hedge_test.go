package sim_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/internal/sim"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
)

// hedging turns hedged failover on or off.
func hedging(cfg sim.Config, on bool) sim.Config {
	cfg.Relay = func(_ int, c *sim.RelayConfig) {
		if on {
			c.Hedge = origin.DefaultHedge
		}
	}
	return cfg
}

// film is 30 frames a second.
func film() sim.Content {
	c := sim.Video("show")
	c.Interval = time.Second / 30
	return c
}

// hedges adds up what relays have counted; those that do not run have counted nothing.
func hedges(c *sim.Cluster) (sum origin.Counters) {
	for _, r := range c.Relays {
		if up := r.Up(); up != nil {
			n := up.Origin().Counters()
			sum.Hedges += n.Hedges
			sum.HedgesWon += n.HedgesWon
			sum.HedgesNeedless += n.HedgesNeedless
			sum.HedgesRefused += n.HedgesRefused
		}
	}
	return sum
}

// TestHedgedFailover lets the relay that serves die without a word, or the cable to it be cut: with hedging the viewer waits
// for a second at most, without it for the idle timeout and half a second (C14). No frame is missed either way.
func TestHedgedFailover(t *testing.T) {
	for name, fault := range map[string]func(c *sim.Cluster){
		"crash":       func(c *sim.Cluster) { c.Relays[1].Crash() },
		"cut":         func(c *sim.Cluster) { c.Cut(1, 3) },
		"cut one way": func(c *sim.Cluster) { c.CutOneWay(1, 3) },
		"cut above":   func(c *sim.Cluster) { c.Cut(0, 1) },
	} {
		for _, on := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/hedge=%v", name, on), func(t *testing.T) {
				in(t, hedging(diamond(false), on), func(t *testing.T, c *sim.Cluster) {
					must(c.Publish(sim.PublisherConfig{Content: film()}))(t)
					v := must(c.Watch(sim.ViewerConfig{
						Content: film(), Access: sim.Access{Relay: 3}, MaxAge: 30 * time.Second,
					}))(t)
					c.Run(5*time.Second + 517*time.Millisecond) // in the middle of a group
					if up := c.Relays[1].Up().Origin().Counters().Upstreams; up != 1 {
						t.Fatalf("the cheap relay has %d upstream subscriptions", up)
					}
					fault(c)
					c.Run(20 * time.Second)
					v.Stop()
					all := v.Watches()
					if len(all) != 1 {
						t.Fatalf("subscribed %d times, first ended: %v", len(all), all[0].Err)
					}
					least, most := 500*time.Millisecond, time.Second
					if !on {
						least, most = 9*time.Second, 10500*time.Millisecond
					}
					if s := all[0].Stall; s < least || s > most {
						t.Errorf("the viewer waited %v, want %v to %v", s, least, most)
					}
					checkWatch(t, &all[0], 28, most)
					if n := hedges(c); on != (n.Hedges > 0) || on != (n.HedgesWon > 0) {
						t.Errorf("counted %+v", n)
					}
				})
			})
		}
	}
}

// player publishes frames as the test says, 30 per second and group.
type player struct {
	track *client.TrackWriter
	group *client.GroupWriter
	n     uint64
}

func newPlayer(t *testing.T, c *sim.Cluster) *player {
	t.Helper()
	cl := must(c.Dial(context.Background(), sim.Access{}, client.Config{Role: client.RolePublisher}))(t)
	b := must(cl.Publish("show"))(t)
	p := &player{track: must(b.Track("video", film().Info))(t)}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// play publishes for as long as it says.
func (p *player) play(t *testing.T, c *sim.Cluster, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); p.n++ {
		if p.n%30 == 0 {
			p.group = must(p.track.Group(p.n / 30))(t)
		}
		if err := p.group.WriteFrame(p.n*3000, binary.BigEndian.AppendUint64(nil, p.n)); err != nil {
			t.Fatal(err)
		}
		if p.n%30 == 29 {
			p.group.Finish()
		}
		c.Run(time.Second / 30)
	}
}

// watchPlayer reads all frames of a player at a relay, and checks that each comes once and in order. The function it returns
// ends that, and says how many came.
func watchPlayer(t *testing.T, c *sim.Cluster, relay int) (stop func() uint64) {
	t.Helper()
	cl := must(c.Dial(context.Background(), sim.Access{Relay: relay}, client.Config{Role: client.RoleSubscriber}))(t)
	track := must(cl.Subscribe(context.Background(), "show", "video", client.Subscription{MaxAge: 30 * time.Second}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	count := make(chan uint64, 1)
	go func() {
		var n uint64
		defer func() { count <- n }()
		for {
			g, err := track.NextGroup(ctx)
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("the track ended: %v", err)
				}
				return
			}
			for f := uint64(0); ; f++ {
				frame, err := g.ReadFrame(ctx)
				if errors.Is(err, io.EOF) || ctx.Err() != nil {
					break
				}
				if err != nil {
					t.Errorf("group %d ended after frame %d: %v", g.Sequence(), f, err)
					break
				}
				if want := g.Sequence()*30 + f; binary.BigEndian.Uint64(frame.Payload) != want {
					t.Errorf("frame %d is %v", want, frame.Payload)
				}
				n++
			}
			g.Close()
		}
	}()
	return func() uint64 {
		cancel()
		n := <-count
		track.Close()
		return n
	}
}

// perRelay is how many hedges each relay has started.
func perRelay(c *sim.Cluster) (out []uint64) {
	for _, r := range c.Relays {
		out = append(out, r.Up().Origin().Counters().Hedges)
	}
	return out
}

// TestHedgePause has a publisher pause for 10 s, which cannot be told from a death at first. It costs each relay at most
// one hedge, and the relay that is asked one pull of its own at most; the next pause costs less. The session of the publisher
// lives, and viewers miss nothing.
func TestHedgePause(t *testing.T) {
	in(t, hedging(diamond(false), true), func(t *testing.T, c *sim.Cluster) {
		p := newPlayer(t, c)
		c.Run(time.Second)
		stop := watchPlayer(t, c, 3)
		p.play(t, c, 3*time.Second)
		if n := hedges(c); n.Hedges != 0 {
			t.Fatalf("hedged while it flows: %v", perRelay(c))
		}
		for range 10 {
			c.Run(time.Second)
			for i, r := range c.Relays {
				if up := r.Up().Origin().Counters().Upstreams; up > 2 {
					t.Fatalf("relay %d has %d upstream subscriptions", i, up)
				}
			}
		}
		first := perRelay(c)
		for i, n := range first {
			if n > 1 {
				t.Errorf("relay %d has hedged %d times", i, n)
			}
		}
		if n := hedges(c); n.Hedges == 0 {
			t.Error("nobody has hedged: the pause shows nothing")
		}
		p.play(t, c, 11*time.Second) // the pause must have left the window
		for i, r := range c.Relays {
			if up := r.Up().Origin().Counters().Upstreams; up > 1 {
				t.Errorf("relay %d still has %d upstream subscriptions", i, up)
			}
		}
		c.Run(2900 * time.Millisecond) // of what was patience enough before the first pause
		p.play(t, c, time.Second)
		second := perRelay(c)
		for i := range first {
			second[i] -= first[i]
		}
		if second[0]+second[1]+second[2]+second[3] >= first[0]+first[1]+first[2]+first[3] {
			t.Errorf("the first pause cost %v, the second %v", first, second)
		}
		c.Run(500 * time.Millisecond)
		if n, won := stop(), hedges(c).HedgesWon; n != p.n || won != 0 {
			t.Errorf("%d of %d frames arrived, %d hedges won", n, p.n, won)
		}
	})
}

// TestHedgeSharedSuspicion: many broadcasts come from one relay, which dies without a word. All but one flow so slowly that
// each for itself would wait for seconds; what is found out at the one that flows fast is true for all (H11).
func TestHedgeSharedSuspicion(t *testing.T) {
	const slow = 20
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			in(t, hedging(diamond(false), true), func(t *testing.T, c *sim.Cluster) {
				watch := func(show sim.Content) {
					must(c.Publish(sim.PublisherConfig{Content: show}))(t)
					must(c.Watch(sim.ViewerConfig{Content: show, Access: sim.Access{Relay: 3}, MaxAge: 30 * time.Second}))(t)
				}
				for i := range slow {
					show := film()
					show.Name, show.Interval = fmt.Sprint("slow/", i), 1500*time.Millisecond
					watch(show)
				}
				if shared {
					watch(film())
				}
				c.Run(20 * time.Second)
				if n := hedges(c); n.Hedges != 0 {
					t.Fatalf("hedged while all is well: %v", perRelay(c))
				}
				c.Relays[1].Crash()
				c.Run(time.Second)
				n := c.Relays[3].Up().Origin().Counters()
				if want := uint64(slow + 1); shared && n.Hedges != want || !shared && n.Hedges != 0 {
					t.Errorf("%d hedges after a second", n.Hedges)
				}
				c.Run(3 * time.Second)
				if n := c.Relays[3].Up().Origin().Counters(); n.Hedges < slow || n.HedgesWon < slow {
					t.Errorf("%d hedges, of which %d have won", n.Hedges, n.HedgesWon)
				}
			})
		})
	}
}

// TestHedgeLoss: 5 % of all packets are lost for a minute, and no relay takes that for silence.
func TestHedgeLoss(t *testing.T) {
	cfg := hedging(diamond(false), true)
	cfg.Seed = 7
	cfg.Net = netsim.Link{Delay: 10 * time.Millisecond, Loss: 0.05}
	in(t, cfg, func(t *testing.T, c *sim.Cluster) {
		must(c.Publish(sim.PublisherConfig{Content: film()}))(t)
		v := must(c.Watch(sim.ViewerConfig{
			Content: film(), Access: sim.Access{Relay: 3}, MaxAge: 30 * time.Second,
		}))(t)
		c.Run(time.Minute)
		if n := hedges(c); n.Hedges != 0 {
			t.Errorf("hedged: %v", perRelay(c))
		}
		v.Stop()
		all := v.Watches()
		if len(all) != 1 {
			t.Fatalf("subscribed %d times", len(all))
		}
		checkWatch(t, &all[0], 68, 500*time.Millisecond)
	})
}
