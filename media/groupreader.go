package media

import (
	"io"

	"github.com/moqmesh/moqmesh/wire"
)

// GroupReader reads one group for one subscription or fetch. One goroutine uses it; TooOld may be called by any. It holds
// nothing but references.
type GroupReader struct {
	g      *group
	reader *Reader // nil: a fetch
	fetch  *Fetch  // the running fetch that feeds it, if any
	first  uint64
	frame  uint64 // the next one
	limit  uint64 // the one before which to end

	batch Batch // what ReadFrame has not returned yet
	at    int

	// The rest belongs to the track's lock.
	prev, next *GroupReader // in track.held; of subscriptions only
	noticed    bool         // its reader was told that it is too old
	closed     bool
}

// hold adds a group reader to the held ones.
func (t *Track) hold(r *GroupReader) {
	r.next = t.held
	if t.held != nil {
		t.held.prev = r
	}
	t.held = r
	if at, ok := r.condemned(); ok {
		t.alarm = min(t.alarm, at)
	}
}

// Sequence is the number of the group.
func (r *GroupReader) Sequence() uint64 { return r.g.seq }

// FirstFrame is the number of the first frame that Next returns.
func (r *GroupReader) FirstFrame() uint64 { return r.first }

// Limit ends the reader cleanly before frame number end. Call it before Next.
func (r *GroupReader) Limit(end uint64) { r.limit = end }

// Next waits for whole frames and returns as many contiguous ones as lie in one chunk (about 64 KiB, or one larger
// frame). The error is io.EOF after the last frame of a complete group, or before the end of the reader's range;
// ErrCancelled if w is cancelled or the reader closed; ErrOld, ErrEvicted or another one if the rest will not come.
// Waiting, and reading, allocate nothing.
func (r *GroupReader) Next(w *Waiter) (Batch, error) {
	t := r.g.track
	for {
		if w.cancelled.Load() {
			return Batch{}, ErrCancelled
		}
		t.mu.Lock()
		b, err := r.poll()
		if err != nil || len(b.frames) > 0 {
			t.mu.Unlock()
			return b, err
		}
		r.g.waiters.push(w)
		t.mu.Unlock()
		<-w.ch
		if !w.passed.Load() {
			r.leave(w)
		}
	}
}

// Poll is Next without waiting: neither frames nor an error means that there are none yet.
func (r *GroupReader) Poll() (Batch, error) {
	t := r.g.track
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.poll()
}

// leave ends a wait that was cut short. If the list with w was taken meanwhile, it waits until w was passed: its links
// are not ours before.
func (r *GroupReader) leave(w *Waiter) {
	t := r.g.track
	t.mu.Lock()
	was := r.g.waiters.drop(w)
	t.mu.Unlock()
	for !was && !w.passed.Load() {
		<-w.ch
	}
}

// poll returns what is there; neither frames nor an error means: wait.
func (r *GroupReader) poll() (Batch, error) {
	g := r.g
	end := r.end()
	switch {
	case r.closed:
		return Batch{}, ErrCancelled
	case g.err != nil:
		return Batch{}, g.err
	case r.frame >= end:
		return Batch{}, io.EOF
	case r.frame < g.splice.next:
		b := g.log.batch(int(r.frame-g.base), int(min(end, g.splice.next)-g.base))
		if b.absolute = r.frame == r.first && r.first > g.base; b.absolute && b.frames[0].ts > wire.MaxZigzag {
			return Batch{}, ErrMalformed
		}
		r.frame += uint64(len(b.frames))
		g.track.cache.touch(g.track, g)
		return b, nil
	case g.complete:
		return Batch{}, io.EOF
	case r.reader != nil && !g.fedNow() && r.tooOld():
		return Batch{}, ErrOld
	}
	return Batch{}, nil
}

// end is the number of the frame before which the reader ends. A range that was moved off the group meanwhile does not end
// it: what was begun is finished, since a clean end in the middle would pass for that of the group (F32).
func (r *GroupReader) end() uint64 {
	if r.reader == nil {
		return r.limit
	}
	v := r.reader.view()
	if !v.covers(r.g.seq) {
		return r.limit
	}
	return min(r.limit, v.last(r.g.seq))
}

// ReadFrame is Next for one frame. Do not mix the two on one reader.
func (r *GroupReader) ReadFrame(w *Waiter) (Frame, error) {
	if r.at == len(r.batch.frames) {
		b, err := r.Next(w)
		if err != nil {
			return Frame{}, err
		}
		r.batch, r.at = b, 0
	}
	r.at++
	return r.batch.Frame(r.at - 1), nil
}

// TooOld says whether the group is too old for its reader now (F9). It costs a binary search in the cached groups. A fetch
// is exempt (F10).
func (r *GroupReader) TooOld() bool {
	t := r.g.track
	t.mu.Lock()
	defer t.mu.Unlock()
	return r.reader != nil && r.tooOld()
}

func (r *GroupReader) tooOld() bool {
	return r.g.track.index.tooOld(r.g.seq, r.reader.view(), r.reader.budget)
}

// condemned returns the media time from which on the group is too old for its reader.
func (r *GroupReader) condemned() (uint64, bool) {
	x := &r.g.track.index
	return x.condemned(x.after(r.g.seq), r.reader.view(), r.reader.budget)
}

// Left is what of the group is there and was not returned by Next: frames and their payload bytes.
func (r *GroupReader) Left() (frames, bytes int) {
	t := r.g.track
	t.mu.Lock()
	defer t.mu.Unlock()
	g := r.g
	for i := max(r.frame, g.base); i < min(r.end(), g.base+uint64(len(g.log.frames))); i++ {
		f := g.log.frames[i-g.base]
		frames++
		bytes += len(f.body(g.log.chunks[f.chunk].buf))
	}
	return frames, bytes
}

// Close frees the reader's hold on the group. Calling it again does nothing.
func (r *GroupReader) Close() {
	var wk wakes
	t := r.g.track
	t.mu.Lock()
	if !r.closed {
		r.closed = true
		if r.reader != nil {
			r.unhold()
		}
		if r.fetch != nil {
			t.leaveFetch(r.fetch, &wk)
		}
		t.letGo(r.g, &wk)
	}
	t.unlock(&wk)
}

// notice notes whether the reader was told that the group is too old for it.
func (r *GroupReader) notice(told bool) {
	if told == r.noticed {
		return
	}
	r.noticed = told
	if told {
		r.g.track.noticed++
	} else {
		r.g.track.noticed--
	}
}

func (r *GroupReader) unhold() {
	r.notice(false)
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		r.g.track.held = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}
