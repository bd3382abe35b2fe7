package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/media"
)

// ViewerConfig describes a viewer.
type ViewerConfig struct {
	Content
	Access
	MaxAge time.Duration
	// Unstamped: timestamps do not arrive as they were sent, since a wire on the way has none.
	Unstamped bool
}

// Viewer watches one Content as long as it runs: it waits until the broadcast is announced, subscribes, and does so again
// when that ends.
type Viewer struct {
	*machine
	cfg   ViewerConfig
	began time.Time

	mu   sync.Mutex
	subs []*Watch
}

// Watch is what a viewer has seen of one subscription.
type Watch struct {
	Asked time.Time // when it was subscribed
	Ended time.Time // zero while it runs
	Err   error     // io.EOF after a clean end of the track; context.Canceled when the viewer stopped
	// SessionLost says that the viewer's own session ended, not the track.
	SessionLost bool
	Groups      map[uint64]*Group
	Last        time.Time     // when the newest frame came
	Stall       time.Duration // longest time between two frames
	Late        time.Duration // longest time that a frame took which was sent after Asked
	Faults      []string      // what must never happen; see Viewer.judge
}

// String tells it in a line.
func (s *Watch) String() string {
	whole := 0
	for _, g := range s.Groups {
		if g.Done && g.Err == nil {
			whole++
		}
	}
	text := fmt.Sprintf("watched from %v", s.Asked.Sub(epoch))
	if !s.Ended.IsZero() {
		text += fmt.Sprintf(" to %v (%v)", s.Ended.Sub(epoch), s.Err)
	}
	if len(s.Groups) > 0 {
		seqs := slices.Sorted(maps.Keys(s.Groups))
		text += fmt.Sprintf(", %d groups from %d to %d, %d of them whole, the last frame at %v",
			len(seqs), seqs[0], seqs[len(seqs)-1], whole, s.Last.Sub(epoch))
	}
	return text
}

// Group is what came of one group.
type Group struct {
	First, Next uint64 // frames [First, Next) have come
	Began, Last time.Time
	Done        bool // no more will come
	Err         error
}

// Whole reports whether all of a group came from its first frame.
func (g *Group) Whole(of int) bool {
	return g.First == 0 && g.Next == uint64(of) && g.Done && g.Err == nil
}

// Watch starts a viewer.
func (c *Cluster) Watch(cfg ViewerConfig) (*Viewer, error) {
	v := &Viewer{cfg: cfg, began: time.Now()}
	var err error
	v.machine, err = c.start("viewer of "+cfg.Name, cfg.Access, v.run)
	if err == nil {
		c.viewers = append(c.viewers, v)
	}
	return v, err
}

// Stop ends the viewer and its session.
func (v *Viewer) Stop() { v.stop() }

// Watches returns what the viewer has seen so far, one entry for each subscription.
func (v *Viewer) Watches() []Watch {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]Watch, len(v.subs))
	for i, s := range v.subs {
		out[i] = *s
		out[i].Groups = make(map[uint64]*Group, len(s.Groups))
		for seq, g := range s.Groups {
			copied := *g
			out[i].Groups[seq] = &copied
		}
		out[i].Faults = slices.Clone(s.Faults)
	}
	return out
}

func (v *Viewer) run(ctx context.Context, m *machine) {
	m.sessions(ctx, client.Config{Role: client.RoleSubscriber}, func(ctx context.Context, cl *client.Client) {
		live, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(ctx, cancel)
		defer stop()
		v.serve(live, cl)
	})
}

// serve watches on one session until it or ctx ends.
func (v *Viewer) serve(ctx context.Context, cl *client.Client) {
	for ctx.Err() == nil && cl.Err() == nil {
		if err := v.awaitAnnounced(ctx, cl); err != nil {
			return
		}
		track, err := cl.Subscribe(ctx, v.cfg.Name, v.cfg.Track, client.Subscription{
			Priority: media.DefaultPriority, MaxAge: v.cfg.MaxAge,
		})
		if err != nil {
			sleep(ctx, redial) // the announcement and the request may have passed each other
			continue
		}
		v.watch(ctx, cl, track)
		track.Close()
	}
}

// awaitAnnounced returns when the broadcast is announced.
func (v *Viewer) awaitAnnounced(ctx context.Context, cl *client.Client) error {
	list, err := cl.Announced(ctx, v.cfg.Name)
	if err != nil {
		return err
	}
	defer list.Close()
	for {
		a, err := list.Next(ctx)
		if err != nil {
			return err
		}
		if a.Path == v.cfg.Name && a.Active {
			return nil
		}
	}
}

// watch reads one subscription to its end.
func (v *Viewer) watch(ctx context.Context, cl *client.Client, track *client.TrackReader) {
	s := &Watch{Asked: time.Now(), Groups: make(map[uint64]*Group)}
	v.mu.Lock()
	v.subs = append(v.subs, s)
	v.mu.Unlock()
	var reading sync.WaitGroup
	for {
		g, err := track.NextGroup(ctx)
		if err != nil {
			reading.Wait()
			v.mu.Lock()
			defer v.mu.Unlock()
			s.Ended, s.Err, s.SessionLost = time.Now(), err, cl.Err() != nil
			return
		}
		reading.Go(func() { v.read(ctx, s, g) })
	}
}

// read takes the frames of a group and judges them.
func (v *Viewer) read(ctx context.Context, s *Watch, in *client.GroupReader) {
	defer in.Close()
	seq := in.Sequence()
	g := &Group{First: in.FirstFrame(), Next: in.FirstFrame(), Began: time.Now()}
	v.mu.Lock()
	if s.Groups[seq] != nil {
		s.fault("group %d came twice", seq)
	}
	s.Groups[seq] = g
	v.mu.Unlock()
	for {
		f, err := in.ReadFrame(ctx)
		v.mu.Lock()
		if err != nil {
			v.end(s, seq, g, err)
			v.mu.Unlock()
			return
		}
		v.frame(s, seq, g, f)
		v.mu.Unlock()
	}
}

// frame judges one frame. v.mu is held.
func (v *Viewer) frame(s *Watch, seq uint64, g *Group, f client.Frame) {
	now := time.Now()
	if !s.Last.IsZero() {
		s.Stall = max(s.Stall, now.Sub(s.Last))
	}
	s.Last, g.Last = now, now
	if due := v.cfg.due(seq, g.Next); due.After(s.Asked) {
		s.Late = max(s.Late, now.Sub(due))
	}
	switch at := g.Next; {
	case at >= uint64(v.cfg.PerGroup):
		s.fault("group %d has a frame %d", seq, at)
	case !v.cfg.intact(seq, at, f, !v.cfg.Unstamped):
		s.fault("frame %d of group %d is not what was sent: %d bytes, timestamp %d", at, seq, len(f.Payload), f.Timestamp)
	case now.Before(v.cfg.due(seq, at)):
		s.fault("frame %d of group %d came before it was due", at, seq)
	}
	g.Next++
}

// end judges how a group ended. v.mu is held.
func (v *Viewer) end(s *Watch, seq uint64, g *Group, err error) {
	g.Done = true
	switch {
	case !errors.Is(err, io.EOF):
		g.Err = err
	case g.Next < uint64(v.cfg.PerGroup):
		s.fault("group %d ended cleanly after frame %d", seq, g.Next)
	}
}

// fault notes what must never happen; of many the first ones are enough.
func (s *Watch) fault(format string, args ...any) {
	if len(s.Faults) < 10 {
		s.Faults = append(s.Faults, time.Since(epoch).String()+": "+fmt.Sprintf(format, args...))
	}
}

// lastFrame is when the newest frame came, or when the viewer began.
func (v *Viewer) lastFrame() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.began
	for _, s := range v.subs {
		if s.Last.After(last) {
			last = s.Last
		}
	}
	return last
}
