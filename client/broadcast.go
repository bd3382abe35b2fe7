package client

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// Broadcast is a set of tracks that this client publishes under one path. Whoever asks is served as soon as a track
// exists; Announce makes the broadcast known. Its methods may be called concurrently.
type Broadcast struct {
	of   *local
	path string

	// All of these are guarded by of.mu.
	tracks    map[string]*TrackWriter
	announced bool
	cost      route.Cost
	closed    bool
}

// Publish reserves a path for a new broadcast; nothing is announced yet. The error wraps ErrPublished if this client
// has the path already, one of package paths if it is no path, ErrClosed after Close.
func (c *Client) Publish(path string) (*Broadcast, error) {
	b, err := c.local.publish(path)
	if err != nil {
		return nil, &RequestError{Op: "publish", Path: path, Err: err}
	}
	return b, nil
}

// Path is the normalized path.
func (b *Broadcast) Path() string { return b.path }

// Announce makes the broadcast known at a cost, the price of producing it, which is zero for live content; called again
// it changes the price. Wires before moq-lite 06 carry no costs. It does not block.
func (b *Broadcast) Announce(cost route.Cost) error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.closed {
		return ErrClosed
	}
	if b.announced && b.cost == cost {
		return nil
	}
	b.announced, b.cost = true, cost
	b.of.tell(b)
	return nil
}

// Withdraw takes the announcement back. Subscriptions go on; Announce may be called again.
func (b *Broadcast) Withdraw() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.withdraw()
}

func (b *Broadcast) withdraw() {
	if b.announced {
		b.announced = false
		b.of.tell(b)
	}
}

// Track adds a track. Its properties cannot change afterwards; zero fields of info take the defaults of package media,
// but for a MaxAge of 0, which retains the newest group alone. The error is ErrPublished if the broadcast has a track
// of that name, ErrClosed after Close.
func (b *Broadcast) Track(name string, info media.Info) (*TrackWriter, error) {
	if info.Timescale == 0 {
		info.Timescale = media.DefaultTimescale
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	switch {
	case b.closed:
		return nil, ErrClosed
	case b.tracks[name] != nil:
		return nil, ErrPublished
	}
	t := newTrackWriter(b, name, info)
	b.tracks[name] = t
	return t, nil
}

// Close withdraws the broadcast, ends its tracks as TrackWriter.Finish does, and frees the path. What subscriptions
// have not received yet is still sent.
func (b *Broadcast) Close() { b.close(true) }

func (b *Broadcast) close(finish bool) {
	b.of.mu.Lock()
	tracks := slices.Collect(maps.Values(b.tracks))
	if !b.closed {
		b.closed = true
		b.withdraw()
		delete(b.of.broadcasts, b.path)
	}
	b.of.mu.Unlock()
	for _, t := range tracks {
		if finish {
			t.Finish()
		} else {
			t.Abort(ErrClosed)
		}
	}
}

// TrackWriter writes one track of a broadcast. Its methods may be called concurrently.
type TrackWriter struct {
	of    *Broadcast
	name  string
	track *media.Track
	copy  *media.Copy

	// readers and wanted are guarded by of.of.mu. wanted is closed while there are readers.
	readers int
	wanted  chan struct{}

	mu    sync.Mutex
	begun bool
	ended bool
	next  uint64 // one past the highest group so far
	open  map[*GroupWriter]struct{}
}

func newTrackWriter(b *Broadcast, name string, info media.Info) *TrackWriter {
	track := b.of.cache.NewTrack(info)
	return &TrackWriter{
		of: b, name: name, track: track, copy: track.NewCopy(nil),
		wanted: make(chan struct{}),
		open:   make(map[*GroupWriter]struct{}),
	}
}

// Name is the name of the track.
func (t *TrackWriter) Name() string { return t.name }

// Info are its properties.
func (t *TrackWriter) Info() media.Info { return t.track.Info() }

// WaitSubscribed blocks until somebody subscribes to the track, and returns at once while somebody does.
func (t *TrackWriter) WaitSubscribed(ctx context.Context) error {
	t.of.of.mu.Lock()
	wanted := t.wanted
	t.of.of.mu.Unlock()
	select {
	case <-wanted:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Group begins the group seq, of which there is one only. Several may be open at once, in any order, but none below
// the first one of the track: with that, the track has begun. A relay that has seen higher numbers ignores lower ones,
// so a publisher that restarts should go on upwards, for example from the time in microseconds.
func (t *TrackWriter) Group(seq uint64) (*GroupWriter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, ErrClosed
	}
	t.begin(seq)
	w, err := t.copy.Group(seq, 0)
	if err != nil {
		return nil, err
	}
	t.next = max(t.next, seq+1)
	g := &GroupWriter{of: t, seq: seq, w: w}
	t.open[g] = struct{}{}
	return g, nil
}

// begin states where the track starts; t.mu is held.
func (t *TrackWriter) begin(seq uint64) {
	if !t.begun {
		t.begun = true
		t.copy.Start(seq)
	}
}

// Datagram sends a group of one frame unreliably, to those who are there: it is not retransmitted and not kept. ts is
// in units of the timescale. Payloads that do not fit into one packet, about 1200 bytes, are lost on the way. Wires
// before moq-lite 05 have no datagrams.
func (t *TrackWriter) Datagram(seq, ts uint64, payload []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return ErrClosed
	}
	t.begin(seq)
	t.copy.Datagram(seq, ts, payload)
	t.next = max(t.next, seq+1)
	return nil
}

// Finish ends the track after the highest group so far. Groups that are still open are cut.
func (t *TrackWriter) Finish() {
	t.end(func(next uint64) {
		t.copy.End(next)
		t.track.End(next)
	})
}

// Abort ends the track with an error for those who subscribe: they are not sent what they lack.
func (t *TrackWriter) Abort(err error) {
	t.end(func(uint64) { t.track.Close(err) })
}

func (t *TrackWriter) end(how func(next uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	for g := range t.open {
		g.w.Abort(media.ErrCancelled)
	}
	clear(t.open)
	how(t.next)
	t.copy.Close()
}

// GroupWriter writes the frames of one group, in order. One goroutine may use it at a time.
type GroupWriter struct {
	of  *TrackWriter
	seq uint64
	w   *media.GroupWriter
}

// Sequence is the number of the group.
func (g *GroupWriter) Sequence() uint64 { return g.seq }

// WriteFrame appends a frame; ts is in units of the track's timescale. The payload is copied. It never blocks: slow
// subscribers skip groups. The error is media.ErrGroupTooLarge or ErrFrameTooLarge beyond the limits of package media,
// ErrOld or ErrEvicted if the group was given up meanwhile, ErrClosed if the track has ended.
func (g *GroupWriter) WriteFrame(ts uint64, payload []byte) error {
	return g.w.WriteFrame(ts, payload)
}

// Finish says that the group is complete.
func (g *GroupWriter) Finish() {
	if g.of.forget(g) {
		g.w.Finish()
	}
}

// Abort cuts the group: those who have begun to read it see it end with an error.
func (g *GroupWriter) Abort(err error) {
	if g.of.forget(g) {
		g.w.Abort(err)
	}
}

// forget reports whether g was open.
func (t *TrackWriter) forget(g *GroupWriter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, open := t.open[g]
	delete(t.open, g)
	return open
}
