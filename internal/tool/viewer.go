package tool

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/internal/testmedia"
)

// viewer is one subscription on a session of its own.
type viewer struct {
	c      *Sub
	id     int
	say    *events
	output io.Writer // nil = none

	mu     sync.Mutex
	check  *testmedia.Checker
	second latency.Histogram // since it was last reported
	total  latency.Histogram
	told   testmedia.Report // what the last second said
	since  time.Time        // when it subscribed: what was sent before says nothing of latency
	at     time.Time        // of the last frame
	stall  time.Duration
	ended  string // how the track ended, empty while it did not
	clean  bool   // by its publisher
	err    error
	enough chan struct{} // closed after the wanted number of groups
}

// errEnded says that the track ended.
var errEnded = errors.New("track ended")

// run watches until ctx or the time is up; what went wrong is in err.
func (v *viewer) run(ctx context.Context, cfg client.Config, slots chan struct{}) {
	v.enough = make(chan struct{})
	err := v.view(ctx, cfg, slots)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case errors.Is(err, errEnded):
		v.ended, v.clean = err.Error(), true
	case err != nil && ctx.Err() == nil:
		v.ended, v.err = err.Error(), err
	}
}

func (v *viewer) view(ctx context.Context, cfg client.Config, slots chan struct{}) error {
	cl, track, err := v.subscribe(ctx, cfg, slots)
	if cl != nil {
		defer cl.Close()
	}
	if err != nil {
		return err
	}
	defer track.Close()
	v.say.say(struct {
		head
		Viewer  int    `json:"viewer"`
		Version string `json:"version"`
	}{event("subscribed"), v.id, cl.Version().String()})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		ended <- v.read(ctx, track)
	}()
	timeUp, stop := after(seconds(v.c.Seconds))
	defer stop()
	select {
	case err = <-ended:
	case <-timeUp:
		err = v.finish(ctx, ended)
	case <-v.enough:
		err = v.finish(ctx, ended)
	case <-ctx.Done():
	}
	cancel()
	<-reading
	return err
}

// lateness is how long a viewer that has seen enough waits for groups under way.
const lateness = 2 * time.Second

// finish goes on until nothing is missing of what has begun: the newest group comes first, so that when a viewer has had
// enough older ones may still be under way. What is missing after some time is at fault.
func (v *viewer) finish(ctx context.Context, ended <-chan error) error {
	v.mu.Lock()
	v.check.Stop()
	v.mu.Unlock()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(lateness); !v.whole() && time.Now().Before(end); {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
	return nil
}

// whole reports whether all that should have come by now has come.
func (v *viewer) whole() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.check.Report(false).OK()
}

// subscribe connects, waits for the announcement, and subscribes.
func (v *viewer) subscribe(ctx context.Context, cfg client.Config, slots chan struct{}) (*client.Client, *client.TrackReader, error) {
	slots <- struct{}{}
	cl, err := dial(ctx, v.c.URL, cfg)
	<-slots
	if err != nil {
		return nil, nil, err
	}
	if v.c.Wait > 0 {
		if err := awaitAnnounced(ctx, cl, v.c.Path, v.c.Wait); err != nil {
			return cl, nil, err
		}
	}
	v.since = time.Now() // nobody else is there yet
	track, err := cl.Subscribe(ctx, v.c.Path, v.c.Track, v.c.subscription())
	return cl, track, err
}

// read takes groups and datagrams until the track ends or ctx does.
func (v *viewer) read(ctx context.Context, track *client.TrackReader) error {
	ctx, cancel := context.WithCancel(ctx)
	var datagrams sync.WaitGroup
	defer func() { cancel(); datagrams.Wait() }()
	datagrams.Go(func() { v.readDatagrams(ctx, track) })
	if v.output != nil {
		return v.readInOrder(ctx, track)
	}
	var groups sync.WaitGroup
	defer groups.Wait()
	for {
		g, err := track.NextGroup(ctx)
		switch {
		case errors.Is(err, io.EOF):
			groups.Wait()
			return errEnded
		case err != nil:
			return err
		}
		v.begin(g)
		groups.Go(func() { _ = v.readGroup(ctx, g) }) // faults are counted
	}
}

func (v *viewer) begin(g *client.GroupReader) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.check.Begin(g.Sequence(), g.FirstFrame())
}

// readGroup reads a group to its end; the error is that of output.
func (v *viewer) readGroup(ctx context.Context, g *client.GroupReader) error {
	defer g.Close()
	for {
		f, err := g.ReadFrame(ctx)
		if err != nil {
			if ctx.Err() == nil {
				v.end(g.Sequence(), errors.Is(err, io.EOF))
			}
			return nil
		}
		v.frame(func() (testmedia.Header, bool) { return v.check.Frame(g.Sequence(), f.Payload) })
		if v.output != nil {
			if _, err := v.output.Write(f.Payload); err != nil {
				return err
			}
		}
	}
}

func (v *viewer) readDatagrams(ctx context.Context, track *client.TrackReader) {
	for {
		d, err := track.NextDatagram(ctx)
		if err != nil {
			return
		}
		v.frame(func() (testmedia.Header, bool) { return v.check.Single(d.Group, d.Payload) })
	}
}

// frame accounts for one frame, which checked judges.
func (v *viewer) frame(checked func() (testmedia.Header, bool)) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.at.IsZero() {
		v.stall = max(v.stall, now.Sub(v.at))
	}
	v.at = now
	if h, ok := checked(); ok && h.Sent.After(v.since) {
		v.second.Add(h.Age(now))
		v.total.Add(h.Age(now))
	}
}

func (v *viewer) end(group uint64, complete bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.check.End(group, complete)
	if n := v.c.Groups; n > 0 && v.check.Report(false).Groups >= n {
		select {
		case <-v.enough:
		default:
			close(v.enough)
		}
	}
}
