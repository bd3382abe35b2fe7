package lite

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

const (
	// joinLimit is how long the header of a group and its first batch together may be, in bytes, to go into one
	// Write, at the price of a copy.
	joinLimit = 16 << 10
	// expireEvery is how often groups in flight are checked for their age, while there is one that is not the newest.
	expireEvery = 250 * time.Millisecond
	// minBlocked is how long a Write must have taken to count as blocked.
	minBlocked = 5 * time.Millisecond
)

// scratch holds what is assembled for a Write, which does not keep it.
type scratch struct {
	joined []byte
	legacy []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// send writes one group to a stream of its own. The stream is opened when there is something to say: a frame, or that
// there is none.
func (w *worker) send(g *media.GroupReader) {
	b, err := g.Next(w.waiter)
	if err == nil || errors.Is(err, io.EOF) {
		var st transport.SendStream
		if st, err = w.open(g, err); err == nil || errors.Is(err, io.EOF) {
			w.copy(st, g, b, err)
			return
		}
	}
	if w.isOld(err) {
		w.sv.stale(g, b)
	}
}

// stale counts a group that is given up because it is too old, with what was not sent of it: b and what follows.
func (sv *serving) stale(g *media.GroupReader, b media.Batch) {
	frames, bytes := g.Left()
	sv.sent.stale(1, frames+b.Frames(), bytes+b.PayloadBytes())
}

// open opens the stream of a group and ranks it; it returns end, or why there is no stream. Waiting for stream credit
// ends when the group is aborted, as expire does with one that is too old.
func (w *worker) open(g *media.GroupReader, end error) (transport.SendStream, error) {
	sv := w.sv
	if !w.prepare(g) {
		return nil, media.ErrCancelled
	}
	w.blocked.Store(sv.s.since())
	st, err := sv.s.opener.open(credit{sv.s.conn.Context(), w.gone}, sv.s.conn, w.opening)
	w.blocked.Store(0)
	if err != nil {
		return nil, err
	}
	sv.mu.Lock()
	aborted := w.aborted
	if !aborted {
		w.stream = st
	}
	sv.mu.Unlock()
	switch {
	case aborted:
		st.Reset(StreamCancelled)
		return nil, media.ErrCancelled
	case g.TooOld():
		st.Reset(StreamOld)
		return nil, media.ErrOld
	}
	w.rank.stream = st
	sv.rankUp(&w.rank)
	return st, end
}

// rankUp ranks a stream by the priority that the subscription has now.
func (sv *serving) rankUp(e *ranked) {
	priority := func() uint8 {
		sv.mu.Lock()
		defer sv.mu.Unlock()
		return sv.priority
	}
	was := priority()
	e.priority = was
	sv.s.ranks.add(e)
	if now := priority(); now != was { // changed in between
		sv.s.ranks.setPriority(sv.id, now)
	}
}

// prepare gets the worker ready to wait for stream credit, with the urgency of the group; it reports false if the group is
// over already.
func (w *worker) prepare(g *media.GroupReader) bool {
	sv := w.sv
	sv.mu.Lock()
	defer sv.mu.Unlock()
	w.rank = ranked{priority: sv.priority, id: sv.id, sequence: g.Sequence()}
	if w.left && !w.aborted { // by the group before
		w.gone, w.left = make(chan struct{}), false
	}
	return !w.aborted
}

// credit is the context with which a worker waits for stream credit. It ends when the group is aborted; the end of the
// session ends the waiting by itself. Unlike one derived from the session's it costs nothing.
type credit struct {
	context.Context // the session's
	gone            <-chan struct{}
}

// Done implements context.Context.
func (c credit) Done() <-chan struct{} { return c.gone }

// Err implements context.Context.
func (c credit) Err() error {
	select {
	case <-c.gone:
		return context.Canceled
	default:
		return c.Context.Err()
	}
}

// copy writes the header, batch b and what follows, and ends the stream. err is io.EOF if the group ends before b.
func (w *worker) copy(st transport.SendStream, g *media.GroupReader, b media.Batch, err error) {
	w.sv.sent.group()
	if err == nil {
		err = w.write(st, g, &b, true)
	} else if headErr := w.writeHeader(st, g); headErr != nil {
		err = headErr
	}
	for err == nil {
		if b, err = w.await(st, g); err == nil {
			err = w.write(st, g, &b, false)
		}
	}
	if w.unwatch != nil {
		w.spent = !w.unwatch()
		w.unwatch = nil
	}
	w.sv.s.ranks.remove(&w.rank)
	switch {
	case errors.Is(err, io.EOF):
		w.whole = true
		_ = st.Close()
	case w.isOld(err):
		w.sv.stale(g, b)
		st.Reset(StreamOld)
	default:
		st.Reset(endCode(err))
	}
}

// await returns the next batch. While it waits STOP_SENDING ends the group for this subscriber; a write learns of it by
// itself. Most short groups are complete before they are read, and need no watch.
func (w *worker) await(st transport.SendStream, g *media.GroupReader) (media.Batch, error) {
	if w.unwatch == nil {
		if b, err := g.Poll(); err != nil || b.Frames() > 0 {
			return b, err
		}
		w.unwatch = context.AfterFunc(st.Context(), w.waiter.Cancel)
	}
	return g.Next(w.waiter)
}

// endCode is the code for a group whose reader, or stream, failed with err.
func endCode(err error) uint64 {
	if _, ended := errors.AsType[*transport.StreamError](err); ended { // by the subscriber, or by us before
		return StreamCancelled
	}
	return StreamCode(err)
}

// isOld reports whether the group ended because it became too old, be it that it was aborted for that.
func (w *worker) isOld(err error) bool {
	if errors.Is(err, media.ErrOld) {
		return true
	}
	w.sv.mu.Lock()
	defer w.sv.mu.Unlock()
	return w.old
}

// write writes a batch, after the header if first, in one Write where that is cheap.
func (w *worker) write(st transport.SendStream, g *media.GroupReader, b *media.Batch, first bool) error {
	s := w.sv.s
	buf := scratches.Get().(*scratch)
	defer scratches.Put(buf)
	var out []byte
	if s.version.HasTimestamps() {
		out = b.Bytes()
	} else {
		out = b.Legacy(&buf.legacy)
	}
	w.blocked.Store(s.since())
	defer w.blocked.Store(0)
	if first {
		head, err := w.header(buf.joined[:0], g)
		if err != nil {
			return err
		}
		if buf.joined = head; len(head)+len(out) <= joinLimit {
			buf.joined = append(head, out...)
			out = buf.joined
		} else if _, err := st.Write(head); err != nil {
			return err
		}
	}
	if _, err := st.Write(out); err != nil {
		return err
	}
	w.sv.sent.frames(b.Frames(), b.PayloadBytes())
	return nil
}

// header appends the type of the stream and the GROUP message. Versions that cannot say where a group starts get none
// that starts inside: their readers never ask for it.
func (w *worker) header(b []byte, g *media.GroupReader) ([]byte, error) {
	m := message.Group{Subscribe: w.sv.id, Sequence: g.Sequence(), StartFrame: g.FirstFrame()}
	return m.Append(message.UniGroup.Append(b), w.sv.s.version)
}

// writeHeader writes the header of a group without frames.
func (w *worker) writeHeader(st transport.SendStream, g *media.GroupReader) error {
	b, err := w.header(make([]byte, 0, 1+4*wire.MaxVarintLen), g)
	if err == nil {
		_, err = st.Write(b)
	}
	return err
}

// since is the time since the start of the session in nanoseconds, never 0.
func (s *Session) since() int64 { return max(int64(time.Since(s.started)), 1) }

// watch checks the subscriptions that have a group in flight which can be too old, and only while there are any.
type watch struct {
	mu    sync.Mutex
	subs  map[*serving]struct{}
	timer *time.Timer
	off   bool
}

// add starts watching a subscription. It may be called with the lock of the subscription, not the reverse.
func (w *watch) add(sv *serving) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.off {
		return
	}
	if w.subs == nil {
		w.subs = make(map[*serving]struct{})
	}
	w.subs[sv] = struct{}{}
	if w.timer == nil {
		w.timer = time.AfterFunc(expireEvery, sv.s.expire)
	} else if len(w.subs) == 1 {
		w.timer.Reset(expireEvery)
	}
}

func (w *watch) remove(sv *serving) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.subs, sv); len(w.subs) == 0 && w.timer != nil {
		w.timer.Stop()
	}
}

// stop ends all watching.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

// due returns what to check now, and arms the timer for the next time.
func (w *watch) due() []*serving {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.off || len(w.subs) == 0 {
		return nil
	}
	subs := make([]*serving, 0, len(w.subs))
	for sv := range w.subs {
		subs = append(subs, sv)
	}
	w.timer.Reset(expireEvery)
	return subs
}

// expire is the function of the timer.
func (s *Session) expire() {
	if !s.enter() {
		return
	}
	defer s.leave()
	now := s.since()
	for _, sv := range s.watch.due() {
		sv.expire(now)
	}
}
