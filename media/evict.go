package media

import (
	"math"
	"time"
)

const (
	defaultIdle = 30 * time.Second
	// stall is how long a silent stream counts as delivering, and how long readers are spared a reset (F33).
	stall = time.Second
	// never is a media time that no timestamp reaches.
	never = math.MaxUint64
)

// pay makes a track that wrote n bytes drop its least recently used groups while the cache is above its capacity
// (F13): it owes what it wrote, scaled by the overload, double if its oldest group is staler than the average; a
// payment is at most twice what was written, plus what the last group is larger. What cannot be paid is owed on.
func (t *Track) pay(n int64, wk *wakes) {
	owed := t.cache.owed(n)
	if owed == 0 {
		t.debt = 0
		return
	}
	if oldest := t.evictable(); oldest != nil && t.cache.staler(oldest.entry.used) {
		owed *= 2
		if owed < 0 {
			owed = math.MaxInt64
		}
	}
	t.debt = min(t.debt+min(owed, t.cache.used.Load()), t.cache.used.Load())
	for paid := int64(0); paid < 2*n; {
		g := t.evictable()
		if g == nil || g.entry.charged > t.debt {
			return
		}
		t.debt -= g.entry.charged
		paid += g.entry.charged
		t.evict(g, wk)
	}
}

// evictable returns the least recently used group that may go: not the newest of a track with a live copy.
func (t *Track) evictable() *group {
	g := t.uses.head
	if g != nil && t.pinned(g) {
		g = g.entry.next
	}
	return g
}

// pinned says whether a group is exempt from eviction.
func (t *Track) pinned(g *group) bool { return len(t.copies) > 0 && g == t.index.newest() }

func (t *Track) evict(g *group, wk *wakes) {
	t.cache.evicted.Add(1)
	t.fail(g, ErrEvicted, wk)
}

// expire drops the groups that are beyond the retention window for everybody, now that the live edge has moved. Below
// a group that is too old all are: once it is gone, its successor is theirs.
func (t *Track) expire(wk *wakes) {
	x := &t.index
	if x.top == nil || x.top.high < t.expiry {
		return
	}
	gone := 0
	t.expiry = never
	for i := 0; i+1 < len(x.g) && x.g[i].seq < x.top.seq; i++ {
		s := x.g[i+1]
		if !s.stamped {
			continue
		}
		at := due(s.first, t.retention)
		if x.top.high >= at {
			gone = i + 1
			continue
		}
		t.expiry = min(t.expiry, at)
		if s.first <= x.top.high {
			break // Later ones start later, or wait. A start after the live edge is one before a rewind: look on.
		}
	}
	if gone == 0 {
		return
	}
	next := t.expiry
	for ; gone > 0; gone-- {
		t.forget(x.g[0], ErrOld, wk)
	}
	t.expiry = next
}

// tick does what a Sweep is for. Groups not used since idle go, if that is not negative.
func (t *Track) tick(idle time.Duration) {
	var wk wakes
	t.mu.Lock()
	t.giveUpOrphans(&wk)
	t.wakeStalled(&wk)
	for g := t.uses.head; g != nil && idle >= 0 && g.entry.used <= idle; {
		next := g.entry.next
		if !t.pinned(g) {
			t.evict(g, &wk)
		}
		g = next
	}
	t.unlock(&wk)
}

// wakeStalled wakes those who wait for a group that is too old for them and that nobody delivers any more (F33).
// Where nobody was told of that, no reader is looked at: a thousand idle ones are a thousand cold lines of memory.
func (t *Track) wakeStalled(wk *wakes) {
	if t.noticed == 0 {
		return
	}
	for r := t.held; r != nil; r = r.next {
		if r.noticed && r.g.waiters.head != nil && !r.g.fedNow() && r.tooOld() {
			wk.waiters(r.g)
		}
	}
}
