package testmedia

import "slices"

// maxSpans bounds the memory for a numbering full of holes; beyond it the lowest hole is counted and closed.
const maxSpans = 4096

// spans is a set of group numbers, kept as sorted, disjoint, non-adjacent ranges.
type spans struct {
	list   []span
	closed uint64 // numbers in holes that were closed to save memory
}

type span struct{ first, last uint64 }

func (s *spans) has(n uint64) bool {
	_, ok := s.find(n)
	return ok
}

// find gives the index of the range with n, or where it would be put.
func (s *spans) find(n uint64) (int, bool) {
	return slices.BinarySearchFunc(s.list, n, func(r span, n uint64) int {
		switch {
		case r.last < n:
			return -1
		case r.first > n:
			return 1
		}
		return 0
	})
}

// add puts n into the set; it does nothing if n is there.
func (s *spans) add(n uint64) {
	i, ok := s.find(n)
	if ok {
		return
	}
	left := i > 0 && s.list[i-1].last+1 == n
	right := i < len(s.list) && n+1 == s.list[i].first
	switch {
	case left && right:
		s.list[i-1].last = s.list[i].last
		s.list = slices.Delete(s.list, i, i+1)
	case left:
		s.list[i-1].last = n
	case right:
		s.list[i].first = n
	default:
		s.list = slices.Insert(s.list, i, span{n, n})
		if len(s.list) > maxSpans {
			s.closed += s.list[1].first - s.list[0].last - 1
			s.list[1].first = s.list[0].first
			s.list = slices.Delete(s.list, 0, 1)
		}
	}
}

// holes calls f with each range between the lowest number and limit that is not in the set.
func (s *spans) holes(limit uint64, f func(first, last uint64)) {
	for i := 1; i < len(s.list); i++ {
		first, last := s.list[i-1].last+1, min(s.list[i].first-1, limit)
		if first > last {
			return
		}
		f(first, last)
	}
	if n := len(s.list); n > 0 && s.list[n-1].last < limit {
		f(s.list[n-1].last+1, limit)
	}
}
