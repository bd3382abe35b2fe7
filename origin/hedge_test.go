package origin_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// heardPeer is a peer of the cluster on whose session packets arrive, for as long as the test wants.
type heardPeer struct {
	*peer
	packets *atomic.Uint64
	silent  atomic.Bool
}

type heardUpstream struct {
	upstream
	packets *atomic.Uint64
}

// Heard implements session.Heard.
func (u heardUpstream) Heard() uint64 { return u.packets.Load() }

func (r *rig) heardPeer(name string, opts ...option) *heardPeer {
	p := r.peer(name)
	p.Close(nil) // it is attached anew, with ears
	h := &heardPeer{peer: p, packets: new(atomic.Uint64)}
	desc := p.Peer()
	desc.ClusterPeer, desc.Publish, desc.Subscribe = true, paths.All, paths.All
	desc.Source = route.SourcePeer
	for _, opt := range opts {
		opt(&desc)
	}
	p.Session = r.o.Attach(desc, heardUpstream{upstream{p}, h.packets})
	return h
}

// run lets packets arrive on sessions, and frames on a subscription, for as long as it says.
func run(d time.Duration, peers []*heardPeer, frame func()) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, p := range peers {
			if !p.silent.Load() {
				p.packets.Add(1)
			}
		}
		if frame != nil {
			frame()
		}
		time.Sleep(40 * time.Millisecond)
	}
	synctest.Wait()
}

// stream sends a frame each time it is called, in groups of ten.
func (s *subscribed) stream(t *testing.T, from uint64) func() {
	n := from
	return func() {
		if err := s.send(n/10, n%10, n%10); err != nil {
			t.Errorf("frame %d: %v", n, err)
		}
		if n++; n%10 == 0 {
			s.finish(n/10 - 1)
		}
	}
}

// TestHedge lets a peer fall silent that serves several tracks. One track finds out after 500 ms; the others follow at
// once, whatever their rhythm, and viewers get every frame once.
func TestHedge(t *testing.T) {
	bubble(t, origin.Config{Hedge: origin.DefaultHedge}, func(r *rig) {
		a, b := r.heardPeer("A"), r.heardPeer("B")
		a.announce("show")
		b.announce("show", 7) // a longer list of hops
		viewer := r.peer("V")
		v := viewer.view("show", "video")
		defer v.close()
		slow := viewer.view("show", "slow")
		defer slow.close()
		streams := make(map[string]func())
		for _, s := range a.live() {
			streams[s.req.Track] = s.stream(r.T, 0)
		}
		peers := []*heardPeer{a, b}
		beat := 0
		run(10*time.Second, peers, func() {
			streams["video"]()
			if beat++; beat%25 == 0 { // once per second
				streams["slow"]()
			}
		})
		if n := len(b.live()); n != 0 {
			r.Fatalf("B has %d subscriptions while A flows", n)
		}
		a.silent.Store(true)
		run(440*time.Millisecond, peers, nil)
		if n := len(b.live()); n != 0 {
			r.Fatalf("B has %d subscriptions after 440 ms", n)
		}
		run(200*time.Millisecond, peers, nil)
		live := b.live()
		if len(live) != 2 {
			r.Fatalf("B has %d subscriptions, want both tracks", len(live))
		}
		for _, s := range live {
			want := map[string]string{"video": "{25 0}", "slow": "{1 0}"}[s.req.Track]
			if got := fmt.Sprint(*s.req.Start); got != want {
				r.Errorf("%s asked from %s, want %s", s.req.Track, got, want)
			}
			s.stream(r.T, s.req.Start.Group*10)()
		}
		if got := v.frames(25); got != "25:0" {
			r.Errorf("video: %q", got)
		}
		run(200*time.Millisecond, peers, nil) // A does not come right behind B
		n := r.o.Counters()
		if n.Hedges != 2 || n.HedgesWon != 2 || n.HedgesNeedless != 0 || n.HedgesRefused != 0 || n.Failovers != 0 {
			r.Errorf("counters: %+v", n)
		}
		a.die()
		synctest.Wait()
		if n := r.o.Counters(); len(b.live()) != 2 || n.Failovers != 2 || n.Hedges != 2 {
			r.Errorf("%d subscriptions at B, counters: %+v", len(b.live()), n)
		}
	})
}

// TestHedgeOnBehalfOfAPeer: a front that excludes somebody does not hedge, or peers could subscribe in a circle (H1).
func TestHedgeOnBehalfOfAPeer(t *testing.T) {
	bubble(t, origin.Config{Hedge: origin.DefaultHedge}, func(r *rig) {
		a, b, c := r.heardPeer("A"), r.heardPeer("B"), r.heardPeer("C")
		a.announce("show", 7)
		b.announce("show", 7, 8)
		c.announce("show", 7) // the best, so that what C asks for is a front of its own
		v := c.view("show", "video")
		defer v.close()
		frame := a.only().stream(r.T, 0)
		peers := []*heardPeer{a, b, c}
		run(3*time.Second, peers, frame)
		a.silent.Store(true)
		run(5*time.Second, peers, nil)
		if n := r.o.Counters(); len(b.live()) != 0 || n.Hedges != 0 {
			r.Errorf("%d subscriptions at B, counters: %+v", len(b.live()), n)
		}
	})
}

// TestHedgeOff: without it a silent peer is waited for.
func TestHedgeOff(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		a, b := r.heardPeer("A"), r.heardPeer("B")
		a.announce("show")
		b.announce("show", 7)
		v := r.peer("V").view("show", "video")
		defer v.close()
		peers := []*heardPeer{a, b}
		run(3*time.Second, peers, a.only().stream(r.T, 0))
		a.silent.Store(true)
		run(9*time.Second, peers, nil)
		if n := len(b.live()); n != 0 {
			r.Errorf("B has %d subscriptions", n)
		}
	})
}

// TestHedgeQuietPeer: a peer that pings seldom is taken for dead once; then its silence means nothing, and pauses of its
// publisher are judged as those of a session that answers.
func TestHedgeQuietPeer(t *testing.T) {
	bubble(t, origin.Config{Hedge: origin.DefaultHedge}, func(r *rig) {
		a, b := r.heardPeer("A"), r.heardPeer("B")
		a.announce("show")
		b.announce("show", 7)
		v := r.peer("V").view("show", "video")
		defer v.close()
		frame := a.only().stream(r.T, 0)
		peers := []*heardPeer{a, b}
		pause := func(d time.Duration) {
			a.silent.Store(true)
			run(d, peers, nil)
			a.silent.Store(false)
		}
		run(3*time.Second, peers, frame)
		pause(700 * time.Millisecond) // between L and 1.5 L
		if n := r.o.Counters().Hedges; n != 1 {
			r.Fatalf("%d hedges for the first silence", n)
		}
		run(11*time.Second, peers, frame)
		pause(700 * time.Millisecond)
		if n := r.o.Counters(); n.Hedges != 1 || n.HedgesNeedless != 1 {
			r.Errorf("after the second silence: %+v", n)
		}
		run(70*time.Second, peers, frame)
		pause(700 * time.Millisecond)
		if n := r.o.Counters().Hedges; n != 2 {
			r.Errorf("%d hedges, another one was due after a minute without silence", n)
		}
	})
}

// TestHedgeClient: one who is no peer of the cluster may be silent as long as it likes; it counts as answering, which is
// waited for half as long again (H3).
func TestHedgeClient(t *testing.T) {
	bubble(t, origin.Config{Hedge: origin.DefaultHedge}, func(r *rig) {
		a, b := r.heardPeer("A", func(p *origin.Peer) { p.ClusterPeer = false }), r.heardPeer("B")
		a.announce("show")
		b.announce("show", 7)
		v := r.peer("V").view("show", "video")
		defer v.close()
		peers := []*heardPeer{a, b}
		run(3*time.Second, peers, a.only().stream(r.T, 0))
		a.silent.Store(true)
		run(700*time.Millisecond, peers, nil)
		if n := len(b.live()); n != 0 {
			r.Errorf("B has %d subscriptions after 700 ms", n)
		}
		run(200*time.Millisecond, peers, nil)
		if n := len(b.live()); n != 1 {
			r.Errorf("B has %d subscriptions after 900 ms", n)
		}
	})
}

// TestHedgeRate: a peer with more tracks than a relay may hedge in a second falls silent.
func TestHedgeRate(t *testing.T) {
	bubble(t, origin.Config{Hedge: origin.DefaultHedge}, func(r *rig) {
		a, b := r.heardPeer("A"), r.heardPeer("B")
		a.announce("show")
		b.announce("show", 7)
		viewer := r.peer("V")
		const tracks = 300
		for i := range tracks {
			defer viewer.view("show", fmt.Sprint(i)).close()
		}
		var frames []func()
		for _, s := range a.live() {
			frames = append(frames, s.stream(r.T, 0))
		}
		peers := []*heardPeer{a, b}
		run(time.Second, peers, func() {
			for _, f := range frames {
				f()
			}
		})
		a.silent.Store(true)
		run(900*time.Millisecond, peers, nil)
		if n := len(b.live()); n != 200 {
			r.Errorf("%d hedges in the first second", n)
		}
		run(time.Second, peers, nil)
		if n := len(b.live()); n != tracks {
			r.Errorf("%d hedges after the second", n)
		}
	})
}
