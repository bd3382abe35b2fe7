package media

// splice decides, for one group, which frames of which copy readers get (F30): each frame once, in order, from
// whichever copy brings it first. It sees indexes only; the frames are the group's. Pure.
//
// A stream of a copy is described by the index of the frame it brings next, which starts where the copy said and
// grows by one per frame.
type splice struct {
	next uint64 // the first frame lacking
	held spans  // frames above next that arrived too early, so next is never in it
	end  uint64 // a copy says that the group has that many frames, more than there are yet
	ends bool
	done bool
}

// verdict says what to do with a frame.
type verdict uint8

const (
	// drop: readers have it, or it is held already.
	drop verdict = iota
	// take: it is in line.
	take
	// hold: frames before it are lacking; another copy, or a later one, may bring them.
	hold
)

// offer judges frame i and counts it.
func (s *splice) offer(i uint64) verdict {
	switch {
	case s.done || i < s.next || s.held.has(i):
		return drop
	case i == s.next:
		s.next++
		return take
	default:
		s.held.add(i, i)
		return hold
	}
}

// release takes the next held frame if it is in line now. The caller repeats it after every take, until it
// returns false; then it asks complete.
func (s *splice) release() (i uint64, ok bool) {
	i = s.next
	if !s.held.has(i) {
		return 0, false
	}
	s.held.remove(i)
	s.next++
	return i, true
}

// finish notes that a stream ended cleanly before frame end, and returns complete. An end below what readers have,
// or below what another copy brought, is no end (F32).
func (s *splice) finish(end uint64) bool {
	if end >= s.next && (!s.ends || end > s.end) {
		s.end, s.ends = end, true
	}
	return s.complete()
}

// complete says whether readers have the whole group.
func (s *splice) complete() bool {
	if s.ends && s.end == s.next {
		_, more := s.held.next(s.next)
		s.done = s.done || !more
	}
	return s.done
}
