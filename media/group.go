package media

import (
	"slices"
	"time"
)

// What a group costs in the accounts of the cache beside its payload, in bytes (F13): itself, and each of its frames, as
// a publisher of tiny frames must not get many times the memory that it pays for.
const (
	groupOverhead = 512
	frameOverhead = 32 // its place, its framing and some room
)

// group is one group of a track: its frames, the streams that bring them, those who wait for more. The lock of the
// track guards it. It is in one of these states:
//
//	open      streams (writers) bring frames
//	parked    not complete, and no stream is open: the head of a continuation (F15)
//	complete  a copy has said so (F32)
//	failed    err is set, the frames are gone
//
// Groups in the track's index are cached and can be handed to readers. Dropped ones (beyond the retention window)
// live on for the readers that hold them.
type group struct {
	track *Track
	seq   uint64
	base  uint64 // number of the first frame kept; only after a start inside the group is it not 0
	log   frameLog

	splice     splice
	early      map[uint64]Frame // frames held back, by number
	earlyBytes int

	stamped bool   // has a frame, so that first and high are set
	first   uint64 // timestamp of the first frame
	high    uint64 // highest timestamp

	writers  []*GroupWriter // open streams, one per copy
	fed      time.Duration  // cache time when a stream began or gave a frame
	complete bool
	err      error

	lost   error         // a stream ended with this before the group was complete
	giveUp time.Duration // cache time from which on lost counts, if nobody else can deliver (F33)

	indexed bool
	fetch   *Fetch
	holders int // GroupReaders
	waiters waitList

	entry cacheEntry
}

// open says whether more frames may come.
func (g *group) open() bool { return !g.complete && g.err == nil }

// fedNow says whether a live copy delivers the group: its stream is open and gave something within the last second
// (F33).
func (g *group) fedNow() bool {
	return len(g.writers) > 0 && g.track.cache.clock()-g.fed <= stall
}

// size is what the group holds, in bytes of payload.
func (g *group) size() int { return g.log.bytes + g.earlyBytes }

// weight is what its frames cost in the accounts of the cache.
func (g *group) weight() int {
	return g.size() + frameOverhead*(len(g.log.frames)+len(g.early))
}

// add takes frame i of a stream; own is what big returned for it. It reports whether readers have more to read now.
func (g *group) add(i, ts uint64, payload, own []byte) (more bool, err error) {
	if i >= MaxGroupFrames || g.size()+len(payload) > MaxGroupBytes {
		if i < g.splice.next {
			return false, nil
		}
		return false, ErrGroupTooLarge
	}
	switch g.splice.offer(i) {
	case drop:
		g.track.cache.repeated.Add(1)
		return false, nil
	case hold:
		if g.early == nil {
			g.early = make(map[uint64]Frame)
		}
		g.early[i] = Frame{Timestamp: ts, Payload: slices.Clone(payload)}
		g.earlyBytes += len(payload)
		return false, nil
	case take:
	}
	if err := g.append(ts, payload, own); err != nil {
		return false, err
	}
	for {
		i, ok := g.splice.release()
		if !ok {
			return true, nil
		}
		f := g.early[i]
		delete(g.early, i)
		g.earlyBytes -= len(f.Payload)
		if err := g.append(f.Timestamp, f.Payload, big(f.Payload)); err != nil {
			return true, err
		}
	}
}

// append puts a frame behind the others.
func (g *group) append(ts uint64, payload, own []byte) error {
	if err := g.log.append(ts, payload, own); err != nil {
		return err
	}
	if !g.stamped {
		g.first, g.high, g.stamped = ts, ts, true
	}
	g.high = max(g.high, ts)
	return nil
}

// newGroup makes a group and puts it into the accounts, not into the index.
func (t *Track) newGroup(seq, base uint64) *group {
	g := &group{track: t, seq: seq, base: base, splice: splice{next: base}}
	g.log.hint = t.hint
	t.cache.enter(t, g)
	return g
}

// completed notes that readers have the whole group.
func (t *Track) completed(g *group, wk *wakes) {
	g.complete = true
	if len(g.early) > 0 { // of a copy that had more of it
		held := g.weight()
		g.early, g.earlyBytes = nil, 0
		t.cache.charge(g, int64(g.weight()-held))
	}
	t.hint = sizeHint{bytes: g.log.used, frames: len(g.log.frames)}
	t.stopWriters(g, ErrDuplicate, wk)
	if g.fetch == nil {
		t.ledger.finish(g.seq)
	}
	wk.waiters(g)
	if t.ended {
		wk.everyone(t) // it may have been the last one
	}
}

// fail ends a group for everybody who holds it and frees its frames.
func (t *Track) fail(g *group, err error, wk *wakes) {
	if g.err != nil {
		return
	}
	g.err = err
	t.unindex(g)
	t.unpark(g)
	t.stopWriters(g, err, wk)
	t.release(g)
	wk.waiters(g)
}

// forget drops a group from the cache: readers that hold it go on, nobody else gets it.
func (t *Track) forget(g *group, err error, wk *wakes) {
	if g.holders == 0 {
		t.fail(g, err, wk)
		return
	}
	t.unindex(g)
}

// unindex takes a group out of the index. Its neighbours may be too old all at once then.
func (t *Track) unindex(g *group) {
	if !g.indexed {
		return
	}
	g.indexed = false
	t.index.remove(g)
	t.alarm, t.expiry = 0, 0
}

// release frees the frames and the account of a group that nobody will read any more.
func (t *Track) release(g *group) {
	t.cache.leave(t, g)
	g.log, g.early, g.earlyBytes = frameLog{}, nil, 0
	if g.fetch != nil {
		t.dropFetch(g.fetch)
	}
}

// letGo ends one reader's hold.
func (t *Track) letGo(g *group, wk *wakes) {
	g.holders--
	if g.holders > 0 || g.indexed || g.err != nil || g.fetch != nil && t.err == nil {
		return
	}
	t.fail(g, ErrOld, wk)
}

// park notes that the last stream of an open group has ended. lost is why, if its copy is alive: then readers learn of
// it after a second, unless another copy can deliver the rest (F33).
func (t *Track) park(g *group, lost error) {
	if lost != nil {
		g.lost, g.giveUp = lost, t.cache.clock()+stall
	}
	if len(g.writers) == 0 && g.open() && g.fetch == nil {
		t.parked = append(t.parked, g)
	}
}

func (t *Track) unpark(g *group) {
	if i := slices.Index(t.parked, g); i >= 0 {
		t.parked = slices.Delete(t.parked, i, i+1)
	}
}

// giveUpOrphans fails the parked groups that no copy can deliver any more (F33). Without any copy they stay, as the next
// one may; the owner of the track asks it first.
func (t *Track) giveUpOrphans(wk *wakes) {
	if len(t.parked) == 0 || len(t.copies) == 0 && !t.ended {
		return
	}
	for _, g := range slices.Clone(t.parked) {
		if t.deliverable(g.seq) || g.lost != nil && t.cache.clock() < g.giveUp {
			continue
		}
		err := g.lost
		if err == nil {
			err = ErrOld
		}
		t.fail(g, err, wk)
	}
}

// deliverable says whether a copy may still begin group seq.
func (t *Track) deliverable(seq uint64) bool {
	return slices.ContainsFunc(t.copies, func(c *Copy) bool { return c.claims.may(seq) })
}
