package media

import (
	"slices"
	"sync"
)

// Track is one logical track: what its copies delivered, and those who read it. All methods may be called
// concurrently; none blocks.
type Track struct {
	cache     *Cache
	info      Info
	retention uint64 // in timescale units

	// mu guards everything below, and the groups, copies and readers of the track. Nothing is called under it but the
	// pure parts of this package and the counters of the cache; who must be woken is collected in wakes.
	mu    sync.Mutex
	index index
	// arrivals are the last groups that became servable; readers find there what is new.
	arrivals [arrivalRing]*group
	arrived  uint64 // how many there were
	ledger   ledger
	parked   []*group // open groups without a stream
	hint     sizeHint

	copies  []*Copy
	started bool // a copy named its start once

	readers []*Reader
	roster  []*Reader // an immutable copy of readers, nil when they have changed
	bounded int       // readers with an end
	held    *GroupReader
	noticed int // how many of them were told that they are too old
	// dormant: the last reader and the last copy have gone. What is cached is not handed out before the next copy has
	// named its start (F16); if that lies past the cache, live readers get nothing below stale.
	dormant bool
	stale   uint64
	// alarm is the media time at which the next held group may become too old for its reader, expiry the one at
	// which the next cached group may leave the retention window; 0 = look.
	alarm, expiry uint64

	datagrams datagramRing
	fetches   map[uint64][]*Fetch
	fetching  int // entries in fetches

	uses useList
	debt int64

	end   uint64
	ended bool
	err   error
}

// arrivalRing is how many arrivals a reader may miss before it has to look through the whole cache.
const arrivalRing = 64

// Info returns the properties; MaxAge is the retention window after the cap.
func (t *Track) Info() Info { return t.info }

// NewReader adds a reader. Its owner closes it. w is woken, outside of locks, when Next, NextDatagram, Start or End may
// have something new to say, and when a group that the reader holds has become too old for it.
func (t *Track) NewReader(sub Subscription, w Waker) *Reader {
	r := &Reader{track: t, waker: w}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.adopt(sub)
	if sub.Start != nil {
		r.start, r.fixed = *sub.Start, true
	}
	r.datagrams, r.datagramBytes = t.datagrams.count, t.datagrams.bytes
	r.slot = len(t.readers)
	t.readers = append(t.readers, r)
	t.roster = nil
	return r
}

// NewCopy adds an upstream subscription that feeds the track. Its owner makes the next copy before it closes a dead
// one: as long as a copy may deliver the rest of a group, readers wait for it (F33). w, which may be nil, is woken
// when the copy has named its start or its end, and when its last open group has ended after Limit.
func (t *Track) NewCopy(w Waker) *Copy {
	c := &Copy{track: t, waker: w}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		c.closed = true
		return c
	}
	t.copies = append(t.copies, c)
	return c
}

// Oldest returns the lowest cached group.
func (t *Track) Oldest() (group uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.index.oldest(); g != nil {
		return g.seq, true
	}
	return 0, false
}

// Newest returns the highest group delivered so far, as a stream or as a datagram.
func (t *Track) Newest() (group uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.high, t.ledger.any
}

// End says that the track has no group at or above group (0 = none at all). Readers get what is below, then io.EOF:
// once no copy is left, or every group below the end is complete. Groups that are open when the last copy goes fail
// then. Calling it again, or after Close, does nothing.
func (t *Track) End(group uint64) {
	var wk wakes
	t.mu.Lock()
	if t.err == nil && !t.ended {
		t.end, t.ended = group, true
		t.dormant = false
		t.giveUpOrphans(&wk)
		wk.everyone(t)
	}
	t.unlock(&wk)
}

// Close ends the track for all readers with err, at once, and frees what is cached; the track is good for nothing
// afterwards. Complete groups that readers hold can be read to their end. Calling it again does nothing.
func (t *Track) Close(err error) {
	var wk wakes
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return
	}
	t.err = err
	for _, c := range t.copies {
		c.closed = true
		wk.copy(c)
	}
	t.copies = nil
	for g := t.uses.head; g != nil; {
		next := g.entry.next
		if g.complete && g.holders > 0 && g.fetch == nil {
			t.unindex(g)
		} else if !g.complete || g.holders == 0 {
			t.fail(g, err, &wk)
		}
		g = next
	}
	t.datagrams = datagramRing{}
	wk.everyone(t)
	t.mu.Unlock()
	t.cache.drop(t)
	wk.run()
}

// announce tells all readers that g can be served: it is new, or its continuation has begun.
func (t *Track) announce(g *group, wk *wakes) {
	t.arrivals[t.arrived%arrivalRing] = g
	t.arrived++
	wk.everyone(t)
}

// named notes the first sign of where a copy starts. After a time without readers it decides what the cache is worth:
// a start past the newest group means that it is stale (F16). A group that arrives before its SUBSCRIBE_START may
// have overtaken it, so there the number after the newest is no proof; and a START that comes in time tells better.
func (t *Track) named(c *Copy, start uint64, declared bool, wk *wakes) {
	if !c.named {
		c.named = true
		wk.copy(c)
	}
	if t.started && !t.dormant && !declared {
		return
	}
	t.started = true
	if t.dormant {
		t.dormant = false
		if n := t.index.newest(); n != nil && start > n.seq && (declared || start > n.seq+1) {
			t.stale = n.seq + 1
		}
	} else if declared && start < t.stale {
		t.stale, t.alarm = 0, 0
		for _, r := range t.readers {
			r.lookAgain()
		}
	}
	wk.everyone(t)
}

// checkDormant is called when a copy or a reader has gone. What is cached when both have stays for as long as any group
// that is not used (F16).
func (t *Track) checkDormant() {
	if t.dormant || len(t.copies) > 0 || len(t.readers) > 0 || t.ended || t.err != nil {
		return
	}
	t.dormant = true
	for g := t.uses.head; g != nil && g.entry.used != t.cache.clock(); g = t.uses.head {
		t.cache.touch(t, g)
	}
}

// checkAges tells the readers of groups that have become too old (F11), each once, and wakes those who wait for frames
// that nobody delivers any more (F33). It does nothing until the live edge reaches the next deadline.
func (t *Track) checkAges(wk *wakes) {
	if t.index.top == nil || t.index.top.high < t.alarm {
		return
	}
	t.alarm = never
	for r := t.held; r != nil; r = r.next {
		if r.noticed || r.g.err != nil {
			continue
		}
		at, ok := r.condemned()
		switch {
		case !ok:
		case r.tooOld():
			r.notice(true)
			wk.reader(r.reader)
			if !r.g.fedNow() {
				wk.waiters(r.g)
			}
		case at > t.index.top.high:
			t.alarm = min(t.alarm, at)
		}
		// Else the reader's range ends below the live edge, and its own edge rests: see aged.
	}
}

// aged is called when g has a new frame.
func (t *Track) aged(g *group, wk *wakes) {
	t.expire(wk)
	if g != t.index.top && t.bounded > 0 {
		t.alarm = 0
	}
	t.checkAges(wk)
}

// unlock ends an operation that has changed the track: it looks at ages if groups have come or gone, releases the lock
// and wakes who must be woken.
func (t *Track) unlock(wk *wakes) {
	if t.alarm == 0 {
		t.checkAges(wk)
	}
	t.mu.Unlock()
	wk.run()
}

// wakes collects who must be woken once the lock is released.
type wakes struct {
	lists   []*Waiter // taken lists of more than one group
	list    *Waiter
	roster  []*Reader
	readers []*Reader
	copies  []Waker
	fetches []*Fetch
}

// waiters adds those who wait for g.
func (wk *wakes) waiters(g *group) {
	switch list := g.waiters.take(); {
	case list == nil:
	case wk.list == nil:
		wk.list = list
	default:
		wk.lists = append(wk.lists, list)
	}
}

// everyone adds all readers.
func (wk *wakes) everyone(t *Track) {
	if t.roster == nil {
		t.roster = slices.Clone(t.readers)
	}
	wk.roster = t.roster
}

func (wk *wakes) reader(r *Reader) { wk.readers = append(wk.readers, r) }

func (wk *wakes) copy(c *Copy) {
	if c.waker != nil {
		wk.copies = append(wk.copies, c.waker)
	}
}

// run wakes them. No lock is held.
func (wk *wakes) run() {
	wakeAll(wk.list)
	for _, l := range wk.lists {
		wakeAll(l)
	}
	for _, r := range wk.roster {
		r.waker.Wake()
	}
	for _, r := range wk.readers {
		r.waker.Wake()
	}
	for _, w := range wk.copies {
		w.Wake()
	}
	for _, f := range wk.fetches {
		close(f.unwanted)
	}
}
