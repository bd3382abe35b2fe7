package lite

import "slices"

// maxSpans is how many separate ranges a spans keeps.
const maxSpans = 1024

// span is a range of sequences, both ends inclusive.
type span struct{ first, last uint64 }

// spans is a set of sequences. It is kept small: where it would hold too many separate ranges, the gap between the two
// lowest is filled. The zero value is empty.
type spans struct{ list []span }

// add adds first to last, inclusive; first must not be above last.
func (s *spans) add(first, last uint64) {
	// The ranges from i up to j overlap or touch the new one.
	i, _ := slices.BinarySearchFunc(s.list, first, func(x span, first uint64) int {
		if x.last < first && first-x.last > 1 {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(s.list) && (s.list[j].first <= last || s.list[j].first-last == 1); j++ {
		first, last = min(first, s.list[j].first), max(last, s.list[j].last)
	}
	s.list = slices.Replace(s.list, i, j, span{first, last})
	if len(s.list) > maxSpans {
		s.list[1].first = s.list[0].first
		s.list = slices.Delete(s.list, 0, 1)
	}
}

// covers reports whether the set has all of first to last.
func (s *spans) covers(first, last uint64) bool {
	i := slices.IndexFunc(s.list, func(x span) bool { return x.last >= last })
	return i >= 0 && s.list[i].first <= first
}

// gaps returns the ranges between first and last, both included, that the set lacks: the highest ones, n at most, from the
// highest down.
func (s *spans) gaps(first, last uint64, n int) (out []span) {
	for _, x := range slices.Backward(s.list) {
		if len(out) == n || x.last < first || last < first {
			break
		}
		if x.last < last {
			out = append(out, span{x.last + 1, last})
		}
		if x.first <= last {
			if x.first <= first {
				return out
			}
			last = x.first - 1
		}
	}
	if len(out) < n && first <= last {
		out = append(out, span{first, last})
	}
	return out
}
