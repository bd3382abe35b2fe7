package media

import (
	"io"
	"math"
	"slices"
	"time"
)

// Waker is told, outside of any lock, that there is something to do. Wake must not block. Any goroutine may call it, more
// often than needed, and once more after Close.
type Waker interface{ Wake() }

// Reader is one subscription's view of a track. One goroutine uses Next and NextDatagram; the other methods may be called
// by any.
type Reader struct {
	track *Track
	waker Waker
	slot  int // in track.readers
	// The rest belongs to the track's lock.
	sub    Subscription
	budget uint64 // max age, clamped to the retention window, in timescale units
	start  Position
	fixed  bool // start is known and final
	told   uint64
	isTold bool
	closed bool
	err    error // why it alone has ended

	taken spans // groups handed out, for the whole life of the reader (F36)
	// Groups to look at: those cached below below, if walking, and those in fresh, sorted, which came since.
	walking bool
	below   uint64
	fresh   []*group
	seen    uint64 // arrivals looked at

	datagrams uint64 // datagrams looked at or missed
	// datagramBytes is the payload of these.
	datagramBytes uint64
}

// adopt takes preferences over.
func (r *Reader) adopt(sub Subscription) {
	t := r.track
	if r.sub.End != nil {
		t.bounded--
	}
	r.sub = sub
	r.sub.Start, r.sub.End = clone(sub.Start), clone(sub.End)
	r.budget = ticks(min(sub.MaxAge, t.info.MaxAge), t.info.Timescale)
	if r.sub.End != nil {
		t.bounded++
	}
	r.lookAgain()
}

// lookAgain makes the reader consider all that is cached.
func (r *Reader) lookAgain() {
	r.walking, r.below = true, math.MaxUint64
	r.fresh = r.fresh[:0]
	r.seen = r.track.arrived
}

// Update replaces the preferences. A start that is stated or cleared moves the start of the reader (without one, a
// Latest reader starts anew at the newest group); a lowered one exposes groups that were not handed out yet, never
// one that was (F36). The reader is woken.
func (r *Reader) Update(sub Subscription) {
	var wk wakes
	t := r.track
	t.mu.Lock()
	if !r.closed {
		had := r.sub.Start != nil
		r.adopt(sub)
		switch {
		case sub.Start != nil:
			r.start, r.fixed = *sub.Start, true
		case had:
			r.start, r.fixed = Position{}, !sub.Latest
		}
		for g := t.held; g != nil; g = g.next {
			if g.reader == r {
				g.notice(false)
			}
		}
		t.alarm = 0
		wk.reader(r)
	}
	t.unlock(&wk)
}

// Close ends the reader. Groups it handed out stay valid until they are closed. Calling it again does nothing.
func (r *Reader) Close() {
	t := r.track
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.fresh = nil
	if r.sub.End != nil {
		t.bounded--
	}
	n := len(t.readers) - 1
	t.readers[r.slot] = t.readers[n]
	t.readers[r.slot].slot = r.slot
	t.readers[n] = nil
	t.readers = t.readers[:n]
	t.roster = nil
	t.checkDormant()
}

// Fail ends this reader alone with an error, which Next returns from now on. Groups that it has handed out go on until they
// are closed. The reader is woken.
func (r *Reader) Fail(err error) {
	var wk wakes
	t := r.track
	t.mu.Lock()
	if !r.closed && r.err == nil {
		r.err = err
		wk.reader(r)
	}
	t.unlock(&wk)
}

// Start returns the group that SUBSCRIBE_START must name, once it is known: a stated start as stated, else the lowest group
// that could be served at that moment or, if lower, the first that the copy declared and that may still come in time
// (F5). It does not change any more once returned, and nothing below is handed out unless Update lowers the start.
func (r *Reader) Start() (group uint64, ok bool) {
	t := r.track
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.isTold {
		return r.told, true
	}
	if t.err != nil || t.dormant || !t.started || !r.pin() {
		return 0, false
	}
	r.told, r.isTold = r.start.Group, true
	return r.told, true
}

// End returns the exclusive end of the track, once that is final (SUBSCRIBE_END).
func (r *Reader) End() (group uint64, ok bool) {
	t := r.track
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end, t.ended
}

// Next returns the newest group that can be served and was not handed out yet, without blocking; nil, nil means: nothing
// now, wait for the Waker. After all it returns io.EOF if the track has ended cleanly, else the error of the track.
// What is too old by then is skipped. The caller closes the group.
func (r *Reader) Next() (*GroupReader, error) { return r.next(0) }

// NextAbove is Next for groups above newest alone. Older ones stay where they are, for a later call.
func (r *Reader) NextAbove(newest uint64) (*GroupReader, error) { return r.next(newest + 1) }

// next hands out the newest group from floor on.
func (r *Reader) next(floor uint64) (*GroupReader, error) {
	t := r.track
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.closed:
		return nil, ErrCancelled
	case r.err != nil:
		return nil, r.err
	case t.err != nil:
		return nil, t.err
	case t.dormant:
		return nil, nil
	}
	if r.pin() {
		r.collect()
		for g := r.candidate(); g != nil; g = r.candidate() {
			if g.indexed && r.canServe(g) && !t.index.tooOld(g.seq, r.view(), r.budget) && !r.sheds(g) {
				if g.seq < floor {
					r.fresh = append(r.fresh, g) // it is the highest that is left
					return nil, nil
				}
				return r.take(g), nil
			}
		}
	}
	if r.over() {
		return nil, io.EOF
	}
	return nil, nil
}

// view is what the reader may get.
func (r *Reader) view() view {
	v := view{start: r.start, end: lastPosition}
	if s := (Position{Group: r.track.stale}); v.start.Before(s) {
		v.start = s
	}
	if r.sub.End != nil {
		v.end = *r.sub.End
	}
	return v
}

// canServe says whether a group can be handed to the reader, apart from its age. A parked group cannot: readers would wait
// for a stream that may never come (F15).
func (r *Reader) canServe(g *group) bool {
	return (g.complete || len(g.writers) > 0) && r.view().admits(g) && !r.taken.has(g.seq)
}

// sheds says whether a group is skipped that the reader could still have, for the sake of the other readers.
func (r *Reader) sheds(g *group) bool {
	t := r.track
	patience := t.cache.patience.Load()
	if patience == 0 || !t.index.tooOld(g.seq, r.view(), ticks(time.Duration(patience), t.info.Timescale)) {
		return false
	}
	t.cache.shed.Add(1)
	return true
}

// wants says whether the reader would take frame of group seq if it came now and the reader does not hold the group.
func (r *Reader) wants(seq, frame uint64) bool {
	v := r.view()
	return v.covers(seq) && frame < v.last(seq) && !r.taken.has(seq) && !r.track.index.tooOld(seq, v, r.budget)
}

// take hands g out.
func (r *Reader) take(g *group) *GroupReader {
	t := r.track
	r.taken.add(g.seq, g.seq)
	first := r.view().first(g.seq)
	out := &GroupReader{g: g, reader: r, first: first, frame: first, limit: math.MaxUint64}
	g.holders++
	t.hold(out)
	return out
}

// collect moves arrivals since the last call to fresh. A reader that missed too many, or lets too many pile up, looks
// through the cache instead.
func (r *Reader) collect() {
	t := r.track
	if t.arrived-r.seen > arrivalRing || len(r.fresh) > arrivalRing {
		r.lookAgain()
		return
	}
	for ; r.seen < t.arrived; r.seen++ {
		g := t.arrivals[r.seen%arrivalRing]
		i, _ := slices.BinarySearchFunc(r.fresh, g.seq, func(h *group, seq uint64) int {
			if h.seq < seq {
				return -1
			}
			return 1 // equal ones too: a group may come twice, or anew
		})
		r.fresh = slices.Insert(r.fresh, i, g)
	}
}

// candidate returns the highest group not looked at yet, or nil.
func (r *Reader) candidate() *group {
	var g *group
	if n := len(r.fresh); n > 0 {
		g = r.fresh[n-1]
	}
	if r.walking {
		x := &r.track.index
		i := x.search(r.below) - 1
		if i < 0 || x.g[i].seq < r.view().start.Group {
			r.walking = false
		} else if g == nil || x.g[i].seq > g.seq {
			r.below = x.g[i].seq
			return x.g[i]
		}
	}
	if g != nil {
		r.fresh[len(r.fresh)-1] = nil
		r.fresh = r.fresh[:len(r.fresh)-1]
	}
	return g
}

// over says whether a reader that has nothing left to look at has got all there will be.
func (r *Reader) over() bool {
	t := r.track
	if !t.ended {
		return false
	}
	first := r.view().start.Group
	return len(t.copies) == 0 || first >= t.end || t.ledger.complete.covers(first, t.end-1)
}

// pin fixes the start if it is not fixed yet and can be (F5).
func (r *Reader) pin() bool {
	if r.fixed {
		return true
	}
	seq, ok := r.lowest()
	if r.sub.Latest {
		seq, ok = r.latest()
	}
	if d, unread := r.lowestDatagram(); unread && (!ok || d < seq && !r.sub.Latest) {
		seq, ok = d, true
	}
	if ok {
		r.start, r.fixed = Position{Group: seq}, true
		if len(r.taken.s) > 0 {
			r.track.alarm = 0 // what it holds may be judged by other groups now
		}
	}
	return ok
}

// latest returns the newest group that can be served.
func (r *Reader) latest() (uint64, bool) {
	for _, g := range slices.Backward(r.track.index.g) {
		if r.canServe(g) {
			return g.seq, true
		}
	}
	return 0, false
}

// lowest returns the lowest group that can be served, or that is open and continued by the copy that declared it, and is
// not too old; or, if lower, the first one that the copy declared, was not seen yet, and would not be too old if it came
// now.
func (r *Reader) lowest() (uint64, bool) {
	t, x, v := r.track, &r.track.index, r.view()
	declared, ok := t.declaredStart()
	servable := func(g *group) bool {
		continued := ok && g.seq >= declared && !g.complete && v.admits(g) && !r.taken.has(g.seq) && t.deliverable(g.seq)
		return continued || r.canServe(g)
	}
	at := 0
	for at < len(x.g) && (!servable(x.g[at]) || x.tooOldAt(at+1, v, r.budget)) {
		at++
	}
	if at == len(x.g) {
		if !ok {
			return 0, false
		}
		return t.ledger.seen.missing(max(declared, v.start.Group))
	}
	seq := x.g[at].seq
	if !ok || declared >= seq || x.tooOldAt(at, v, r.budget) {
		return seq, true
	}
	unseen, ok := t.ledger.seen.missing(max(declared, v.start.Group))
	for ok && unseen < seq {
		above := x.after(unseen)
		if !x.tooOldAt(above, v, r.budget) {
			return unseen, true
		}
		unseen, ok = t.ledger.seen.missing(x.g[above].seq) // those up to there are as old
	}
	return seq, true
}
