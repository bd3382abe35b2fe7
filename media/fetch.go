package media

import (
	"math"
	"slices"
)

// maxFetches bounds the fetched groups of one track, running and kept.
const maxFetches = 1024

// Fetch is one upstream FETCH of one group: run by one owner, read by all who asked for the group while it ran (F41).
// What it brought stays in the cache like any group, but only for later fetches: it does not count as delivered.
type Fetch struct {
	g        *group
	unwanted chan struct{}
	// The rest belongs to the track's lock.
	readers int
	running bool
	left    bool // no reader is left, and nobody may join
}

// Fetch returns a reader of group seq from frame on, exempt from age (F10). It comes from the cache if a cached group holds
// everything from there on and is complete or being fed, or from a running fetch that does not start above frame (F41).
// Otherwise the second result is not nil: the caller must run that Fetch, and this reader, like those that join later,
// gets what it brings. The error of a closed track, or ErrBusy, is what the reader returns.
func (t *Track) Fetch(seq, frame uint64) (*GroupReader, *Fetch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.refusal(seq, t.err), nil
	}
	if seq > maxTimestamp || frame > MaxGroupFrames {
		return t.refusal(seq, ErrNotFound), nil
	}
	if g := t.index.get(seq); g != nil && g.base <= frame && (g.complete || len(g.writers) > 0) {
		return t.fetchReader(g, nil, frame), nil
	}
	for _, f := range t.fetches[seq] {
		if f.g.base <= frame && !f.left { // it runs, or is complete
			return t.fetchReader(f.g, f, frame), nil
		}
	}
	if t.fetching >= maxFetches && !t.dropOldFetch() {
		return t.refusal(seq, ErrBusy), nil
	}
	f := &Fetch{g: t.newGroup(seq, frame), unwanted: make(chan struct{}), running: true}
	f.g.fetch = f
	if t.fetches == nil {
		t.fetches = make(map[uint64][]*Fetch)
	}
	t.fetches[seq] = append(t.fetches[seq], f)
	t.fetching++
	return t.fetchReader(f.g, f, frame), f
}

// refusal is a reader of a group that has failed already.
func (t *Track) refusal(seq uint64, err error) *GroupReader {
	return t.fetchReader(&group{track: t, seq: seq, err: err}, nil, 0)
}

func (t *Track) fetchReader(g *group, f *Fetch, frame uint64) *GroupReader {
	g.holders++
	t.cache.touch(t, g)
	if f != nil {
		f.readers++
	}
	return &GroupReader{g: g, fetch: f, first: frame, frame: frame, limit: math.MaxUint64}
}

// leaveFetch notes that a reader has gone; the last one makes a running fetch pointless.
func (t *Track) leaveFetch(f *Fetch, wk *wakes) {
	f.readers--
	if f.readers == 0 && f.running && !f.g.complete && !f.left {
		f.left = true
		wk.fetches = append(wk.fetches, f)
	}
}

// dropOldFetch makes room: it frees the least recently used group that is complete and not being read.
func (t *Track) dropOldFetch() bool {
	for g := t.uses.head; g != nil; g = g.entry.next {
		if g.fetch != nil && g.complete && g.holders == 0 {
			var none wakes // nobody reads it, so nobody waits
			t.evict(g, &none)
			return true
		}
	}
	return false
}

// dropFetch takes a fetch out of the books.
func (t *Track) dropFetch(f *Fetch) {
	l := t.fetches[f.g.seq]
	i := slices.Index(l, f)
	if i < 0 {
		return
	}
	t.fetching--
	if len(l) == 1 {
		delete(t.fetches, f.g.seq)
		return
	}
	t.fetches[f.g.seq] = slices.Delete(l, i, i+1)
}

// Group is the number of the group to ask for.
func (f *Fetch) Group() uint64 { return f.g.seq }

// Frame is the first frame not received yet: where to ask from, also when asking again after a failure (X44).
func (f *Fetch) Frame() uint64 {
	f.g.track.mu.Lock()
	defer f.g.track.mu.Unlock()
	return f.g.splice.next
}

// Writer returns a writer for one attempt, the first frame of which will be number first; frames that are known are
// dropped. Finish completes the fetch, Abort ends the attempt only.
func (f *Fetch) Writer(first uint64) *GroupWriter {
	t := f.g.track
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &GroupWriter{g: f.g, next: first}
	switch {
	case f.g.err != nil:
		w.err = f.g.err
	case f.g.complete || !f.running:
		w.err = ErrCancelled
	default:
		f.g.writers = append(f.g.writers, w)
	}
	return w
}

// Unwanted is closed when the last reader has gone before the fetch was complete. The owner then stops, and closes it.
func (f *Fetch) Unwanted() <-chan struct{} { return f.unwanted }

// Complete says whether everything is here. A source that finished short of what an earlier one brought does not make it
// so (F32).
func (f *Fetch) Complete() bool {
	f.g.track.mu.Lock()
	defer f.g.track.mu.Unlock()
	return f.g.complete
}

// Close ends the fetch. Unless it is complete, its readers get err (nil counts as ErrNotFound), and the next who asks
// fetches anew. Calling it again does nothing.
func (f *Fetch) Close(err error) {
	var wk wakes
	t := f.g.track
	t.mu.Lock()
	if f.running {
		f.running = false
		if err == nil {
			err = ErrNotFound
		}
		if !f.g.complete {
			t.fail(f.g, err, &wk)
		}
	}
	t.unlock(&wk)
}
