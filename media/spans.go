package media

import (
	"math"
	"slices"
	"sort"
)

// maxSpans bounds a set. Group numbers are mostly contiguous; where they are not, the gaps at the low end, far behind
// the live edge, are filled in.
const maxSpans = 1024

// span is a range of numbers, both ends included.
type span struct{ lo, hi uint64 }

// spans is a set of numbers, kept as sorted disjoint ranges that do not touch. Pure.
type spans struct{ s []span }

// find returns the index of the first range that ends at or above x.
func (s *spans) find(x uint64) int {
	if n := len(s.s); n > 0 && s.s[n-1].lo <= x {
		if s.s[n-1].hi < x {
			return n
		}
		return n - 1
	}
	return sort.Search(len(s.s), func(i int) bool { return s.s[i].hi >= x })
}

// has says whether x is in the set.
func (s *spans) has(x uint64) bool {
	i := s.find(x)
	return i < len(s.s) && s.s[i].lo <= x
}

// add puts lo to hi, both included, into the set.
func (s *spans) add(lo, hi uint64) {
	if lo > hi {
		return
	}
	from := lo
	if from > 0 {
		from-- // a range that ends just below touches
	}
	i := s.find(from)
	j := i
	for j < len(s.s) && (hi == math.MaxUint64 || s.s[j].lo <= hi+1) {
		lo, hi = min(lo, s.s[j].lo), max(hi, s.s[j].hi)
		j++
	}
	if j == i+1 {
		s.s[i] = span{lo, hi}
		return
	}
	s.s = slices.Replace(s.s, i, j, span{lo, hi})
	if len(s.s) > maxSpans {
		s.s[1].lo = s.s[0].lo
		s.s = slices.Delete(s.s, 0, 1)
	}
}

// remove takes x out of the set.
func (s *spans) remove(x uint64) {
	i := s.find(x)
	if i == len(s.s) || s.s[i].lo > x {
		return
	}
	switch r := s.s[i]; {
	case r.lo == r.hi:
		s.s = slices.Delete(s.s, i, i+1)
	case r.lo == x:
		s.s[i].lo++
	case r.hi == x:
		s.s[i].hi--
	default:
		s.s[i].hi = x - 1
		s.s = slices.Insert(s.s, i+1, span{x + 1, r.hi})
	}
}

// missing returns the lowest number at or above x that is not in the set.
func (s *spans) missing(x uint64) (uint64, bool) {
	i := s.find(x)
	if i == len(s.s) || s.s[i].lo > x {
		return x, true
	}
	hi := s.s[i].hi
	return hi + 1, hi != math.MaxUint64
}

// covers says whether all of lo to hi is in the set.
func (s *spans) covers(lo, hi uint64) bool {
	i := s.find(lo)
	return i < len(s.s) && s.s[i].lo <= lo && hi <= s.s[i].hi
}

// next returns the lowest number in the set at or above x.
func (s *spans) next(x uint64) (uint64, bool) {
	i := s.find(x)
	if i == len(s.s) {
		return 0, false
	}
	return max(x, s.s[i].lo), true
}
