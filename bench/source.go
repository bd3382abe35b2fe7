package bench

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// trackName is the track of every broadcast of the generator.
const trackName = "video"

// feed is the shape of what is published.
type feed struct {
	rate     float64 // frames per second; 0 = as fast as viewers take them
	size     int     // bytes per frame
	per      int     // frames per group
	inFlight int     // with rate 0: frames that not all viewers have
	maxAge   time.Duration
}

// source publishes one track, over one session or the same one over several.
type source struct {
	feed   feed
	late   lateness
	group  atomic.Uint64 // being written
	failed atomic.Pointer[error]

	outputs []*output
	stop    context.CancelFunc
	writing sync.WaitGroup
}

// output is a track on one session.
type output struct {
	client *client.Client
	track  *client.TrackWriter
	group  *client.GroupWriter
	gone   atomic.Bool // the session was closed, or lost, on purpose
}

// open dials and announces one output at a price. It is not to be called once run has been.
func (s *source) open(ctx context.Context, t Target, rawURL, name string, hop route.Hop, price uint64) error {
	cfg := t.client(client.RolePublisher)
	cfg.Hop = hop
	cl, err := client.Dial(ctx, rawURL, cfg)
	if err != nil {
		return err
	}
	o := &output{client: cl}
	s.outputs = append(s.outputs, o)
	b, err := cl.Publish(name)
	if err != nil {
		return err
	}
	info := media.DefaultInfo()
	info.MaxAge = s.feed.maxAge
	if o.track, err = b.Track(trackName, info); err != nil {
		return err
	}
	return b.Announce(route.Cost{Warm: price, Cold: price})
}

// run writes until close. w tells of the viewers, where the source follows them.
func (s *source) run(w *watch, viewers int) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.writing.Go(func() {
		if err := s.write(ctx, w, viewers); err != nil && ctx.Err() == nil {
			s.failed.Store(&err)
		}
	})
}

// write sends frames as the feed says until ctx ends. Group numbers begin at 1.
func (s *source) write(ctx context.Context, w *watch, viewers int) error {
	plan := schedule{begin: time.Now(), rate: s.feed.rate, per: uint64(s.feed.per), first: 1}
	frame := testmedia.Mesh.Append(nil, testmedia.Header{Sent: plan.begin}, s.feed.size)
	timer := time.NewTimer(0)
	defer timer.Stop()
	follow := follower{watch: w, viewers: uint64(viewers), ahead: uint64(s.feed.inFlight), timer: timer}
	for n := uint64(0); ; n++ {
		var due time.Time
		var ended error
		if s.feed.rate > 0 {
			due, ended = s.keep(ctx, plan.due(n), timer)
		} else {
			ended = follow.wait(ctx, n)
			due = time.Now()
		}
		if ended != nil {
			return nil
		}
		h := testmedia.Header{Sent: due, Of: uint32(plan.per)}
		h.Group, h.Index = plan.place(n)
		testmedia.Stamp(frame, h)
		s.group.Store(h.Group)
		if err := s.send(h, frame); err != nil {
			return err
		}
	}
}

// keep waits until a frame is due, notes how late it is, and returns when it was due; with an error if ctx ends.
func (s *source) keep(ctx context.Context, due time.Time, timer *time.Timer) (time.Time, error) {
	timer.Reset(time.Until(due))
	select {
	case <-ctx.Done():
		return due, context.Cause(ctx)
	case <-timer.C:
	}
	s.late.sent(due, time.Now())
	return due, nil
}

// send writes a frame to all outputs.
func (s *source) send(h testmedia.Header, frame []byte) error {
	for _, o := range s.outputs {
		if err := o.send(h, frame); err != nil && !o.gone.Load() {
			return err
		}
	}
	return nil
}

func (o *output) send(h testmedia.Header, frame []byte) (err error) {
	if h.Index == 0 {
		if o.group, err = o.track.Group(h.Group); err != nil {
			return err
		}
	}
	if o.group == nil {
		return nil
	}
	if err := o.group.WriteFrame(uint64(h.Sent.UnixMilli()), frame); err != nil {
		return err
	}
	if h.Index == h.Of-1 {
		o.group.Finish()
	}
	return nil
}

// follower lets a source go no further ahead of its viewers than it may.
type follower struct {
	watch   *watch
	viewers uint64
	ahead   uint64
	skipped uint64 // frames that will never be delivered, as it seems
	timer   *time.Timer
}

// skipAfter is how long nothing may be delivered before the source takes what is missing for lost and goes on.
const skipAfter = 5 * time.Second

// wait returns when frame n may be sent, with an error if ctx ends.
func (f *follower) wait(ctx context.Context, n uint64) error {
	for n >= f.watch.delivered.Load()/f.viewers+f.skipped+f.ahead {
		f.timer.Reset(skipAfter)
		select {
		case <-f.watch.wake:
		case <-f.timer.C:
			f.skipped = n - f.watch.delivered.Load()/f.viewers
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// err is why the source no longer writes, nil while it does.
func (s *source) err() error {
	if p := s.failed.Load(); p != nil {
		return *p
	}
	for _, o := range s.outputs {
		if err := o.client.Err(); err != nil && !o.gone.Load() {
			return errors.Join(errPublisher, err)
		}
	}
	return nil
}

var errPublisher = errors.New("publisher: session ended")

// close ends everything and waits for it.
func (s *source) close() {
	if s.stop != nil {
		s.stop()
	}
	s.writing.Wait()
	for _, o := range s.outputs {
		o.client.Close()
	}
}
