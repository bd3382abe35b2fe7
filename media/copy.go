package media

import (
	"math"
	"slices"
)

// Copy is one upstream subscription of a track. Its methods may be called concurrently and do not block.
type Copy struct {
	track *Track
	waker Waker
	// The rest belongs to the track's lock.
	claims  claims
	foreign foreign
	asked   asked
	named   bool // declared its start, or sent something
	closed  bool
	writers []*GroupWriter // open streams
	frames  uint64         // new ones that it has brought
	pulse   pulse
}

// asked is what a copy was told to ask for.
type asked struct {
	once  bool
	floor *Position // rule F27a; nil = the aggregate decides
	// agg is the aggregate at the last call, sub what came out.
	agg, sub Subscription
}

// Ask turns the aggregate into what this copy asks for upstream. The first call fixes the copy's floor: the first
// frame that the readers lack, or frame 0 of its group where the cache has no head of that (F6, F27). Later calls apply
// the floor to the new aggregate; only a reader's stated start below the floor and below all that is cached lowers
// it (F27a). Where the start gets lower than it was, a start that the copy has declared is void. An end inside a group
// becomes the end of that group (F6). The result does not change unless the aggregate or the floor does.
func (c *Copy) Ask(agg Subscription) Subscription {
	t := c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &c.asked
	if !a.once {
		if t.dormant && len(t.index.g) == 0 {
			t.ledger = ledger{} // the cache has forgotten, and nobody is there who remembers
		}
		a.floor = t.rounded(t.lacking(agg))
	} else if a.floor != nil {
		t.lower(a)
	}
	sub := agg
	sub.Latest = false
	switch {
	case a.floor != nil && (agg.Start == nil || agg.Start.Before(*a.floor)):
		sub.Start = clone(a.floor)
	case a.once && same(agg.Start, a.agg.Start):
		sub.Start = clone(a.sub.Start) // rounding happens once
	default:
		sub.Start = t.rounded(agg.Start)
	}
	if sub.End = clone(agg.End); sub.End != nil && sub.End.Frame > 0 {
		*sub.End = Position{Group: sub.End.Group + 1}
	}
	a.once, a.agg, a.sub = true, agg, sub
	a.agg.Start = clone(agg.Start)
	var lowest uint64
	if sub.Start != nil {
		lowest = sub.Start.Group
	}
	c.claims.ask(lowest)
	sub.Start, sub.End = clone(sub.Start), clone(sub.End)
	return sub
}

// lower applies rule F27a to a floor.
func (t *Track) lower(a *asked) {
	for _, r := range t.readers {
		s := r.sub.Start
		if s == nil || r.sub.Empty() || !s.Before(*a.floor) {
			continue
		}
		if o := t.index.oldest(); o == nil || s.Group < o.seq {
			a.floor = t.rounded(s)
		}
	}
}

// rounded returns a position to ask for: inside a group only if the cache has what is before.
func (t *Track) rounded(p *Position) *Position {
	p = clone(p)
	if p == nil || p.Frame == 0 {
		return p
	}
	if g := t.index.get(p.Group); g == nil || g.base != 0 || g.splice.next < p.Frame {
		p.Frame = 0
	}
	return p
}

func same(a, b *Position) bool { return a == b || a != nil && b != nil && *a == *b }

// Start is SUBSCRIBE_START: groups below will not come. Only the first counts, unless Ask has lowered the start since.
func (c *Copy) Start(group uint64) {
	c.update(func(t *Track, wk *wakes) {
		if c.claims.declare(group) {
			t.named(c, group, true, wk)
			t.giveUpOrphans(wk)
		}
	})
}

// End is SUBSCRIBE_END: no group at or above group will come. It ends nothing for readers; see Track.End.
func (c *Copy) End(group uint64) {
	c.update(func(t *Track, wk *wakes) {
		if !c.claims.ended || group < c.claims.end {
			c.claims.end, c.claims.ended = group, true
		}
		t.giveUpOrphans(wk)
		wk.copy(c)
	})
}

// Drop is SUBSCRIBE_DROP: groups first to last, both included, will not come.
func (c *Copy) Drop(first, last uint64) {
	c.update(func(t *Track, wk *wakes) {
		c.claims.dropped.add(first, last)
		t.giveUpOrphans(wk)
	})
}

// Limit takes no new group at or above *group from this copy (F28, F34); nil takes the limit back. Groups that are open
// go on.
func (c *Copy) Limit(group *uint64) {
	c.update(func(t *Track, wk *wakes) {
		if c.claims.limited = group != nil; c.claims.limited {
			c.claims.limit = *group
		}
		t.giveUpOrphans(wk)
	})
}

// update runs f under the lock, unless the copy is closed, and wakes after it.
func (c *Copy) update(f func(*Track, *wakes)) {
	var wk wakes
	c.track.mu.Lock()
	if !c.closed {
		f(c.track, &wk)
	}
	c.track.unlock(&wk)
}

// CopyState is a snapshot of a Copy.
type CopyState struct {
	Started bool   // it declared its start
	Start   uint64 // lowest group that it may bring
	Begun   bool   // a group or a datagram arrived
	Newest  uint64 // the highest of them
	Ended   bool   // it declared its end
	End     uint64
	Open    int    // group streams that are open
	Limit   uint64 // just after the newest open group: the end of an old copy (F28); 0 if none is open
	Stopped bool   // a group was refused because of Limit; the publisher will not send it again
	Frames  uint64 // that it has brought, and nobody before
	// Behind says that it has sent some groups, up to Past, all of which readers are past: its publisher lags far behind, or
	// its numbers have started over (F2).
	Behind bool
	Past   uint64
}

// State returns a snapshot.
func (c *Copy) State() CopyState {
	t := c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	s := CopyState{
		Started: c.claims.declared, Start: c.claims.lowest(), Begun: c.claims.any, Newest: c.claims.newest,
		Ended: c.claims.ended, End: c.claims.end, Open: len(c.writers), Stopped: c.claims.stopped, Frames: c.frames,
		Behind: c.claims.behind >= behindSome && !c.claims.any, Past: c.claims.past,
	}
	for _, w := range c.writers {
		s.Limit = max(s.Limit, w.g.seq+1)
	}
	return s
}

// Group begins a group stream whose first frame is number frame of group seq. The errors are ErrDuplicate (this copy
// sent that group already, or it is complete and no reader wants it), ErrPastEnd, ErrBelowStart, ErrOld (beyond the
// retention window), ErrCancelled (copy or track are closed) and ErrMalformed (no such number). The caller stops the
// stream then; other streams are not concerned.
func (c *Copy) Group(seq, frame uint64) (*GroupWriter, error) {
	var wk wakes
	t := c.track
	t.mu.Lock()
	w, err := c.begin(seq, frame, &wk)
	t.unlock(&wk)
	return w, err
}

func (c *Copy) begin(seq, frame uint64, wk *wakes) (*GroupWriter, error) {
	t := c.track
	switch {
	case c.closed:
		return nil, ErrCancelled
	case seq > maxTimestamp || frame > MaxGroupFrames:
		return nil, ErrMalformed
	case t.ended && seq >= t.end:
		return nil, ErrPastEnd
	}
	g := t.index.get(seq)
	err := c.claims.admit(seq)
	if err == nil && g == nil {
		err = t.accepts(seq)
	}
	if err != nil {
		if c.claims.refuse(seq, err) {
			wk.copy(c)
		}
		return nil, err
	}
	c.claims.begin(seq)
	c.stir()
	t.named(c, seq, false, wk)
	if g != nil && g.complete {
		return nil, ErrDuplicate
	}
	if g == nil {
		t.pay(groupOverhead, wk) // before, so that the group itself is not its victim
		g = t.newGroup(seq, c.base(seq, frame))
		g.indexed = true
		t.index.insert(g)
		t.ledger.begin(seq)
		t.alarm, t.expiry = 0, 0
		if len(t.index.g) > maxGroups {
			t.forget(t.index.oldest(), ErrEvicted, wk)
		}
	}
	w := &GroupWriter{g: g, copy: c, next: frame}
	fed := len(g.writers) > 0
	g.writers = append(g.writers, w)
	c.writers = append(c.writers, w)
	g.fed = t.cache.clock()
	g.lost = nil
	t.cache.touch(t, g)
	if !fed {
		t.unpark(g)
		t.announce(g, wk)
	}
	return w, nil
}

// accepts judges a group that is not cached.
func (t *Track) accepts(seq uint64) error {
	if t.index.tooOld(seq, everything, t.retention) {
		return ErrOld
	}
	if len(t.index.g) >= maxGroups && seq < t.index.oldest().seq {
		return ErrOld
	}
	if t.ledger.complete.has(seq) && !slices.ContainsFunc(t.readers, func(r *Reader) bool { return r.wants(seq, 0) }) {
		return ErrDuplicate
	}
	return nil
}

// base returns the first frame to keep of a new group whose stream begins at frame: that one if we asked to begin
// there, else 0, and what is before is awaited from another copy.
func (c *Copy) base(seq, frame uint64) uint64 {
	if s := c.asked.sub.Start; s != nil && s.Group == seq && frame <= s.Frame {
		return frame
	}
	return 0
}

// Close ends the copy: its session or subscription is over. Finished groups stay readable. Open ones stay as the head of
// a continuation (F15, F16), until it is clear that no copy will deliver the rest. Its open writers return ErrCancelled
// from then on. Calling it again does nothing.
func (c *Copy) Close() {
	c.update(func(t *Track, wk *wakes) {
		c.closed = true
		if i := slices.Index(t.copies, c); i >= 0 {
			t.copies = slices.Delete(t.copies, i, i+1)
		}
		for len(c.writers) > 0 {
			w := c.writers[len(c.writers)-1]
			w.stop(ErrCancelled, wk)
			t.park(w.g, nil)
		}
		t.giveUpOrphans(wk)
		t.checkDormant()
		if t.ended {
			wk.everyone(t)
		}
	})
}

// declaredStart returns the lowest start that a live copy has declared.
func (t *Track) declaredStart() (uint64, bool) {
	lowest, ok := uint64(math.MaxUint64), false
	for _, c := range t.copies {
		if c.claims.declared {
			lowest, ok = min(lowest, c.claims.lowest()), true
		}
	}
	return lowest, ok
}
