package lite

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/transport"
)

// How a subscription is written
//
// A worker takes the newest group that is due, opens a stream, writes what there is, parks on its Waiter when it has
// caught up, finishes the stream and looks for the next group. While it writes or waits, a new group makes Wake start
// another worker; one that finds nothing to do ends, unless it is the only one: that one parks. So a subscriber
// that keeps up costs one goroutine, and a group that is blocked holds up no newer one.
//
// A worker is free while it looks for work, and busy from the group it found to the end of that. Wake need not
// start a worker while one is free; a free one that turns busy starts another if Wake was called meanwhile.

// worker is one goroutine that writes groups of a subscription. One that has ended is kept, since a subscriber of short
// groups needs another one for a moment, over and over.
type worker struct {
	sv     *serving
	wake   chan struct{} // capacity 1; written by whoever unparks it
	waiter *media.Waiter
	spent  bool // the waiter may be cancelled at any time: replace it when the group is over
	rank   ranked

	unwatch func() bool // ends the watch for STOP_SENDING; nil = there is none

	opening *opening // of rank
	// blocked is since when the worker has waited for stream credit or in Write: nanoseconds since the start of the
	// session, 0 while it does not.
	blocked atomic.Int64

	// Guarded by sv.mu; what the worker itself has set it reads without.
	group   *media.GroupReader
	stream  transport.SendStream // nil until opened
	aborted bool                 // the group is over, its stream reset
	old     bool                 // because of its age

	gone chan struct{} // closed when a group is aborted; prepare replaces it
	left bool          // gone is closed

	whole bool // the group was sent to its end
}

// newWorker takes the worker that rests, or makes one.
func (sv *serving) newWorker() *worker {
	sv.mu.Lock()
	w := sv.rested
	sv.rested = nil
	sv.mu.Unlock()
	if w == nil {
		w = &worker{sv: sv, wake: make(chan struct{}, 1), waiter: media.NewWaiter(), gone: make(chan struct{})}
		w.opening = newOpening(&w.rank)
	}
	return w
}

// rest keeps a worker that has ended, and that nothing refers to any more, for the next time.
func (w *worker) rest() {
	w.rank = ranked{}
	w.sv.mu.Lock()
	defer w.sv.mu.Unlock()
	w.sv.rested = w
}

// start makes a worker that begins with group g, or looks for work if g is nil. It is registered by the caller.
func (sv *serving) start(g *media.GroupReader) {
	w := sv.newWorker()
	if !sv.s.spawn(func() { w.run(g) }) {
		if g != nil {
			g.Close()
		}
		sv.fire()
	}
}

// fire unregisters a free worker that never ran.
func (sv *serving) fire() {
	sv.mu.Lock()
	sv.fireLocked()
	sv.mu.Unlock()
	sv.finish()
}

// startFirst starts the worker that puts the subscription to the host.
func (sv *serving) startFirst(ctx context.Context, path, track string) {
	sv.mu.Lock()
	sv.workers, sv.free = 1, 1
	sv.mu.Unlock()
	w := sv.newWorker()
	if !sv.s.spawn(func() {
		if err := sv.open(ctx, path, track); err != nil {
			sv.s.log.Debug("subscription failed", "path", path, "track", track, "cause", err)
			sv.end(ending{code: StreamCode(err), abort: true})
		}
		w.run(nil)
	}) {
		sv.end(ending{code: StreamSessionClosed, abort: true})
		sv.fire()
	}
}

// open puts the subscription to the host and answers it where the version has an answer.
func (sv *serving) open(ctx context.Context, path, track string) error {
	sv.mu.Lock()
	sub := sv.sub
	sv.dirty = false
	sv.mu.Unlock()
	reader, err := sv.s.handler.Subscribe(ctx, path, track, sub, sv)
	if err != nil {
		return err
	}
	sv.sent = sv.s.sent(path)
	sv.s.viewed.open(path, sv.sent)
	sv.reader, sv.media = reader, reader.Media()
	sv.mu.Lock()
	sv.ready = true
	sv.mu.Unlock()
	sv.tellHost()
	if !sv.s.version.HasSubscribeOK() {
		return nil
	}
	b, err := message.SubscribeOK{Priority: sub.Priority}.Append(nil, sv.s.version)
	if err == nil {
		_, err = sv.r.Write(b)
	}
	return err
}

// Wake implements media.Waker: the reader may have a group, a datagram, a bound or an end. It never blocks.
func (sv *serving) Wake() {
	sv.mu.Lock()
	sv.pending = true
	if sv.over || sv.free > 0 {
		sv.mu.Unlock()
		return
	}
	idle := sv.unparkLocked()
	if idle == nil {
		sv.hireLocked()
	}
	sv.mu.Unlock()
	if idle != nil {
		idle.wake <- struct{}{}
	} else {
		sv.start(nil)
	}
}

// unparkLocked takes the idle worker, if there is one, and counts it as free; the caller then wakes it.
func (sv *serving) unparkLocked() *worker {
	w := sv.idle
	if w != nil {
		sv.idle = nil
		sv.free++
	}
	return w
}

// hireLocked registers a free worker, which the caller then starts; fireLocked unregisters one that ends, after which
// the caller calls finish.
func (sv *serving) hireLocked() { sv.workers++; sv.free++ }
func (sv *serving) fireLocked() { sv.workers--; sv.free-- }

// run writes group g, if there is one, and then whatever is due, until the worker is not needed.
func (w *worker) run(g *media.GroupReader) {
	sv := w.sv
	defer w.rest()
	for {
		if g == nil {
			if g = sv.next(w); g == nil {
				sv.finish()
				return
			}
		}
		// A group that blocks must not hold up another: if there is more to do now, somebody else does it.
		if more := sv.take(false); more != nil {
			sv.mu.Lock()
			sv.hireLocked()
			sv.mu.Unlock()
			sv.start(more)
		}
		if sv.begin(w, g) {
			w.send(g)
			sv.ended(w, g)
		}
		g = nil
	}
}

// next looks for a group to write, and parks while there is nothing to do. It returns nil when the worker is to end; it
// has been unregistered then.
func (sv *serving) next(w *worker) *media.GroupReader {
	for {
		sv.mu.Lock()
		woken := sv.pending
		sv.pending = false
		if sv.over {
			sv.fireLocked()
			sv.mu.Unlock()
			return nil
		}
		sv.mu.Unlock()
		sv.sendDatagrams()
		g := sv.take(woken)
		sv.sendBounds() // START precedes the first group
		if g != nil {
			return g
		}
		if !sv.park(w) {
			return nil
		}
	}
}

// park lets the worker wait for Wake, or return at once if it was called meanwhile. It reports false if the worker is to
// end, because the subscription is over or others are left, and has unregistered it then.
func (sv *serving) park(w *worker) bool {
	sv.mu.Lock()
	switch {
	case sv.pending:
		sv.mu.Unlock()
		return true
	case sv.over || sv.workers > 1:
		sv.fireLocked()
		sv.mu.Unlock()
		return false
	}
	sv.idle = w
	sv.free--
	sv.mu.Unlock()
	<-w.wake
	return true
}

// begin makes a free worker busy with g. It reports false if the subscription wants no more groups; g is closed then. If
// too many groups are open, the lowest ranked one that is blocked, else the lowest ranked one, gives way.
func (sv *serving) begin(w *worker, g *media.GroupReader) bool {
	sv.mu.Lock()
	if sv.ending.abort {
		sv.active--
		sv.mu.Unlock()
		g.Close()
		return false
	}
	sv.free--
	spare := sv.spareLocked()
	var stream transport.SendStream
	if len(sv.busy) >= sv.s.cfg.Limits.Groups {
		stream = sv.victimLocked().abortLocked(true)
	}
	w.group = g
	sv.busy = append(sv.busy, w)
	sv.top = max(sv.top, g.Sequence())
	sv.watchLocked()
	sv.mu.Unlock()
	if spare {
		sv.start(nil)
	}
	if stream != nil {
		stream.Reset(StreamOld)
	}
	return true
}

// spareLocked registers another worker, which the caller then starts, if Wake left the work to one that is not free
// any more.
func (sv *serving) spareLocked() bool {
	spare := sv.pending && sv.free == 0 && !sv.over
	if spare {
		sv.hireLocked()
	}
	return spare
}

// victimLocked is the busy worker whose group gives way.
func (sv *serving) victimLocked() *worker {
	return slices.MinFunc(sv.busy, func(a, b *worker) int {
		if x, y := a.blocked.Load() == 0, b.blocked.Load() == 0; x != y {
			if y {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.group.Sequence(), b.group.Sequence())
	})
}

// ended makes a busy worker free again.
func (sv *serving) ended(w *worker, g *media.GroupReader) {
	sv.mu.Lock()
	w.group, w.stream, w.aborted, w.old = nil, nil, false, false
	i := slices.Index(sv.busy, w)
	sv.busy = slices.Delete(sv.busy, i, i+1)
	if w.whole {
		sv.whole.add(g.Sequence(), g.Sequence())
		w.whole = false
	}
	sv.watchLocked()
	sv.active--
	sv.free++
	sv.mu.Unlock()
	g.Close()
	if w.spent {
		w.waiter, w.spent = media.NewWaiter(), false
	} else {
		w.waiter.Reset()
	}
}

// watchLocked has the session check the ages of our groups while there is one that can be too old: any but the newest.
func (sv *serving) watchLocked() {
	needed := len(sv.busy) > 1 || len(sv.busy) == 1 && sv.busy[0].group.Sequence() < sv.top
	if needed == sv.watched {
		return
	}
	sv.watched = needed
	if needed {
		sv.s.watch.add(sv)
	} else {
		sv.s.watch.remove(sv)
	}
}

// abortLocked ends all groups in flight and returns the streams to reset.
func (sv *serving) abortLocked() []transport.SendStream {
	var streams []transport.SendStream
	for _, w := range sv.busy {
		if st := w.abortLocked(false); st != nil {
			streams = append(streams, st)
		}
	}
	return streams
}

// expire resets the groups that are too old for the subscriber and blocked (F11), or wait for stream credit. now is in
// nanoseconds since the start of the session.
func (sv *serving) expire(now int64) {
	var streams []transport.SendStream
	sv.mu.Lock()
	for _, w := range sv.busy {
		since := w.blocked.Load()
		if since == 0 || now-since < int64(minBlocked) || !w.group.TooOld() {
			continue
		}
		if st := w.abortLocked(true); st != nil {
			streams = append(streams, st)
		}
	}
	sv.mu.Unlock()
	for _, st := range streams {
		st.Reset(StreamOld)
	}
}

// abortLocked ends the worker's group and returns the stream that the caller resets, if it is open. By then the worker
// may have finished it; what is too old, or not wanted any more, is discarded even so.
func (w *worker) abortLocked(old bool) transport.SendStream {
	if w.aborted {
		return nil
	}
	w.aborted, w.old = true, old
	w.waiter.Cancel()
	if !w.left {
		w.left = true
		close(w.gone)
	}
	return w.stream
}
