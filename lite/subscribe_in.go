package lite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// maxGrace limits how long a subscription that the peer has finished waits for groups in flight.
const maxGrace = 10 * time.Second

var (
	errPastEnd = fmt.Errorf("%w: group at or past the end", media.ErrMalformed)
	errNoEnd   = fmt.Errorf("%w: subscription finished without an end", media.ErrMalformed)
)

// subscriptions are those that we have at the peer.
type subscriptions struct {
	mu   sync.Mutex
	subs map[uint64]*upstream
	next uint64
}

// add registers a subscription under an id of its own. This happens before the request is written: groups may overtake
// every answer (moq-lite 4.3).
func (c *subscriptions) add(u *upstream, limit int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.subs) >= limit {
		return fmt.Errorf("%w: subscriptions", session.ErrNoCapacity)
	}
	if c.subs == nil {
		c.subs = make(map[uint64]*upstream)
	}
	u.id = c.next
	c.next++
	c.subs[u.id] = u
	return nil
}

func (c *subscriptions) find(id uint64) *upstream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subs[id]
}

func (c *subscriptions) remove(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subs, id)
}

// Caps implements session.Upstream.
func (s *Session) Caps() session.Caps {
	v := s.version
	return session.Caps{
		TrackInfo:   v.HasTrackInfo(),
		Update:      v.HasSubscribeUpdate(),
		Fetch:       v.HasFetch(),
		FrameBounds: v.HasFrameBounds(),
		Floor:       v.HasFloor(),
		Range:       v.HasRange(),
		Timestamps:  v.HasTimestamps(),
	}
}

// Subscribe implements session.Upstream. The copy is not closed by the session; after Done it is not used any more.
func (s *Session) Subscribe(ctx context.Context, req session.SubscribeRequest, copy *media.Copy) (session.Subscription, error) {
	if s.leaving.Load() {
		return nil, session.ErrGoingAway
	}
	u := &upstream{
		s:    s,
		path: req.Path,

		received: s.received(req.Path),
		copy:     copy,
		sub:      req.Subscription,
		settled:  make(chan struct{}, 1),
		done:     make(chan struct{}),

		startKnown: make(chan struct{}),
		groups:     make(map[*incoming]struct{}),
	}
	if !s.version.HasSubscribeStartEnd() {
		u.knowStart()
	}
	if err := s.in.add(u, s.cfg.Limits.Subscriptions); err != nil {
		return nil, err
	}
	s.views.open(u.path, u.received)
	s.wantDatagrams()
	err := u.request(ctx, req.Path, req.Track)
	if err == nil && !s.spawn(u.run) {
		err = s.closedError()
	}
	if err != nil {
		u.abandon(err)
		return nil, err
	}
	return u, nil
}

// bounds are the preferences as the wire states them (F6). Positions inside a group lose what the version cannot say: a
// start is rounded down, an end up, to whole groups.
func bounds(sub media.Subscription, v message.Version) message.Bounds {
	b := message.Bounds{Priority: sub.Priority, MaxAge: sub.MaxAge}
	if sub.Start != nil {
		b.StartGroup = message.Some(sub.Start.Group)
		if v.HasFrameBounds() {
			b.StartFrame = sub.Start.Frame
		}
	}
	switch end := sub.End; {
	case end == nil:
	case end.Frame > 0:
		b.EndGroup = message.Some(end.Group)
	case end.Group > 0:
		b.EndGroup = message.Some(end.Group - 1)
	default: // nothing at all: an inverted range says so
		b.StartGroup, b.StartFrame, b.EndGroup = message.Some(1), 0, message.Some(0)
	}
	return b
}

// upstream is one subscription of ours. Its goroutine reads the answers (run); each group stream has its own.
type upstream struct {
	s    *Session
	id   uint64
	path string

	received count
	st       transport.Stream
	copy     *media.Copy

	// startKnown is closed when the peer has said where it starts, or will not any more.
	startKnown chan struct{}
	startOnce  sync.Once

	progress atomic.Uint64 // counts frames, to tell a slow end from a dead one
	settled  chan struct{} // capacity 1: a group has ended, or the subscription is over
	done     chan struct{}

	mu      sync.Mutex
	sub     media.Subscription // as last asked
	dirty   bool               // the peer has not heard of sub
	writing bool               // a goroutine is telling it
	over    bool               // err is final; no new groups
	err     error
	closing bool                   // our side is finished or reset, or will be by who writes
	groups  map[*incoming]struct{} // open
	opening int                    // accounted for, and about to be in groups
	seen    spans                  // sequences that are accounted for
	started bool                   // the peer has said where it starts
	start   uint64
	ended   bool // the peer has said where it ends
	end     uint64
	highest uint64 // sequence received
	begun   bool   // highest is valid
}

// request opens the stream and writes SUBSCRIBE.
func (u *upstream) request(ctx context.Context, path, track string) error {
	m := message.Subscribe{ID: u.id, Broadcast: path, Track: track, Bounds: bounds(u.sub, u.s.version)}
	b, err := m.Append(message.StreamSubscribe.Append(nil), u.s.version)
	if err != nil {
		return err
	}
	opened, err := u.s.conn.OpenStream(ctx)
	if err != nil {
		return err
	}
	st := u.s.tally(opened, session.ControlSubscribe)
	u.st = st
	stop := context.AfterFunc(ctx, func() { refuse(st, StreamCancelled) })
	if _, err = st.Write(b); !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		refuse(st, StreamCancelled)
	}
	return err
}

// abandon gives up a subscription whose request could not be made.
func (u *upstream) abandon(err error) {
	u.mu.Lock()
	u.closing = true
	u.mu.Unlock()
	u.finish(err)
}

// Update implements session.Subscription. It does not block: the newest preferences are written when the stream takes
// them.
func (u *upstream) Update(sub media.Subscription) error {
	if !u.s.version.HasSubscribeUpdate() {
		return session.ErrUnsupported
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over || u.closing {
		return media.ErrCancelled
	}
	u.sub, u.dirty = sub, true
	if !u.writing && u.s.spawn(u.writeUpdates) {
		u.writing = true
	}
	return nil
}

// writeUpdates writes SUBSCRIBE_UPDATE until the peer knows the newest preferences. The goroutine that runs it also
// finishes our side if that came due meanwhile.
func (u *upstream) writeUpdates() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.dirty && !u.over {
		u.dirty = false
		m := message.SubscribeUpdate{Bounds: bounds(u.sub, u.s.version)}
		u.mu.Unlock()
		b, err := m.Append(nil, u.s.version)
		if err == nil {
			_, err = u.st.Write(b)
		}
		u.mu.Lock()
		if err != nil {
			break // the stream has failed: run finds out
		}
	}
	u.writing = false
	if u.closing {
		_ = u.st.Close()
	}
}

// Cancel implements session.Subscription.
func (u *upstream) Cancel() { u.finish(media.ErrCancelled) }

// Done implements session.Subscription.
func (u *upstream) Done() <-chan struct{} { return u.done }

// Err implements session.Subscription.
func (u *upstream) Err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// finish ends the subscription; the first call says why. Our side of the stream is finished, which unsubscribes unless
// the peer has finished; groups that are still open are stopped.
func (u *upstream) finish(err error) {
	cause := err
	if cause == nil {
		cause = media.ErrCancelled
	}
	u.mu.Lock()
	if u.over {
		u.mu.Unlock()
		return
	}
	u.over, u.err = true, err
	u.closeLocked()
	streams := make([]transport.ReceiveStream, 0, len(u.groups))
	for g := range u.groups {
		if g.stopLocked(cause) {
			streams = append(streams, g.st)
		}
	}
	last := len(u.groups) == 0
	u.mu.Unlock()
	u.s.in.remove(u.id)
	u.knowStart()
	for _, st := range streams {
		st.Stop(StreamCancelled)
	}
	if u.st != nil { // what the peer still has to say is of no interest, but it may need a moment
		_ = u.st.SetReadDeadline(time.Now().Add(grace))
	}
	u.settle()
	u.s.views.close(u.path, u.received)
	if last {
		close(u.done)
	}
}

// closeLocked finishes our side of the stream, once.
func (u *upstream) closeLocked() {
	if u.closing {
		return
	}
	u.closing = true
	if !u.writing {
		_ = u.st.Close()
	}
}

// fail ends the subscription because the peer broke its rules on this track.
func (u *upstream) fail(err error) {
	u.s.log.Debug("subscription failed", "id", u.id, "cause", err)
	u.mu.Lock()
	u.closing = true
	u.mu.Unlock()
	refuse(u.st, StreamSessionClosed)
	u.finish(err)
}

// settle tells run that something it may wait for has happened.
func (u *upstream) settle() {
	select {
	case u.settled <- struct{}{}:
	default:
	}
}
