package media

import (
	"slices"
	"time"
)

// GroupWriter takes the frames of one group stream of one copy or fetch. One goroutine uses it.
type GroupWriter struct {
	g    *group
	copy *Copy // nil: a fetch
	// stirred is the last beat at which a piece of a frame counted; it belongs to that goroutine.
	stirred *time.Time
	// The rest belongs to the track's lock.
	next uint64 // number of the next frame
	err  error  // nothing more is taken
}

// WriteFrame takes one whole frame and copies payload; ts is absolute, in timescale units. Frames that the group has are
// dropped, frames that are not in line yet are held back (F30). After an error the stream is over and the caller
// stops it: ErrMalformed (timestamp out of range), ErrFrameTooLarge, ErrGroupTooLarge (the group fails for everybody),
// ErrOld and ErrEvicted (nobody wants it any more), ErrDuplicate (complete by another copy), ErrCancelled (the copy or
// the fetch was closed), or the error of the track.
func (w *GroupWriter) WriteFrame(ts uint64, payload []byte) error {
	var own []byte
	var bad error
	switch {
	case ts > maxTimestamp:
		bad = ErrMalformed
	case len(payload) > MaxFrameBytes:
		bad = ErrFrameTooLarge
	default:
		own = big(payload)
	}
	var wk wakes
	t := w.g.track
	t.mu.Lock()
	err := w.write(ts, payload, own, bad, &wk)
	t.unlock(&wk)
	return err
}

func (w *GroupWriter) write(ts uint64, payload, own []byte, bad error, wk *wakes) error {
	if w.err != nil {
		return w.err
	}
	g, t := w.g, w.g.track
	if w.copy != nil {
		w.copy.arrived(wk)
	}
	if bad != nil {
		w.stop(bad, wk)
		t.park(g, bad)
		return bad
	}
	if w.next >= g.splice.next {
		ts = w.copy.stamp(ts)
	}
	stamped, held := g.stamped, g.weight()
	more, err := g.add(w.next, ts, payload, own)
	if err != nil {
		t.fail(g, err, wk)
		return err
	}
	w.next++
	g.fed = t.cache.clock()
	t.cache.touch(t, g)
	if n := g.weight() - held; n > 0 {
		t.cache.charge(g, int64(n))
		t.pay(int64(n), wk)
	}
	if !more || g.err != nil {
		return w.err
	}
	if w.copy != nil {
		w.copy.frames++
		w.copy.ring(wk)
	}
	wk.waiters(g)
	if g.splice.complete() {
		t.completed(g, wk)
	}
	if g.indexed {
		if !stamped {
			t.index.stamp(g)
			t.alarm, t.expiry = 0, 0
		}
		t.aged(g, wk)
	}
	return nil
}

// Finish says that the stream ended cleanly after the last frame written (F32).
func (w *GroupWriter) Finish() {
	w.end(func(t *Track, wk *wakes) {
		w.stop(ErrCancelled, wk)
		end := w.next
		if w.copy == nil {
			end = max(end, w.g.base) // the whole group has fewer frames than were asked for: nothing is left
		}
		if w.g.splice.finish(end) {
			t.completed(w.g, wk)
		} else {
			t.park(w.g, ErrOld)
			t.giveUpOrphans(wk)
		}
	})
}

// Abort says that the stream ended otherwise: reset by the peer, malformed, cut off. Readers see err unless another
// copy delivers the rest, and not before a second has passed (F33); of a fetch it ends the attempt only. After Finish
// or an error of WriteFrame it does nothing.
func (w *GroupWriter) Abort(err error) {
	w.end(func(t *Track, wk *wakes) {
		w.stop(ErrCancelled, wk)
		t.park(w.g, err)
	})
}

func (w *GroupWriter) end(f func(*Track, *wakes)) {
	var wk wakes
	t := w.g.track
	t.mu.Lock()
	if w.err == nil {
		f(t, &wk)
	}
	t.unlock(&wk)
}

// stop detaches the stream; err is what its owner learns at the next frame.
func (w *GroupWriter) stop(err error, wk *wakes) {
	w.err = err
	w.g.writers = without(w.g.writers, w)
	if w.copy == nil {
		return
	}
	w.copy.writers = without(w.copy.writers, w)
	if len(w.copy.writers) == 0 && w.copy.claims.limited {
		wk.copy(w.copy)
	}
}

// stopWriters detaches all streams of a group.
func (t *Track) stopWriters(g *group, err error, wk *wakes) {
	for len(g.writers) > 0 {
		g.writers[len(g.writers)-1].stop(err, wk)
	}
}

// without removes w from a short list whose order means nothing.
func without(l []*GroupWriter, w *GroupWriter) []*GroupWriter {
	i := slices.Index(l, w)
	if i < 0 {
		return l
	}
	n := len(l) - 1
	l[i], l[n] = l[n], nil
	return l[:n]
}
