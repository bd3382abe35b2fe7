package bench

import "slices"

// ledger keeps which frames of a track one viewer has got, from a group on in which counting begins. All groups have the
// same number of frames. Groups that are complete cost nothing.
type ledger struct {
	per    uint32
	base   uint64 // lowest group that is not complete
	groups []received
	twice  uint64
}

// received is how much of one group has come.
type received struct {
	have  uint32   // frames from the first on
	ahead []uint32 // others: a group can come over two streams when the relay changes its source
}

// maxAhead is how far beyond the lowest incomplete group a ledger counts: hours of media.
const maxAhead = 1 << 20

// add notes a frame and reports whether it is new. Frames of groups before the first that counts, and of groups that
// cannot be yet, are none of its business: the caller leaves the former out.
func (l *ledger) add(group uint64, index uint32) bool {
	if group < l.base || group-l.base >= maxAhead || index >= l.per {
		l.twice++
		return false
	}
	for uint64(len(l.groups)) <= group-l.base {
		l.groups = append(l.groups, received{})
	}
	if !l.groups[group-l.base].add(index) {
		l.twice++
		return false
	}
	done := 0
	for done < len(l.groups) && l.groups[done].have >= l.per {
		done++
	}
	l.base += uint64(done)
	l.groups = slices.Delete(l.groups, 0, done)
	return true
}

func (r *received) add(index uint32) bool {
	switch {
	case index < r.have || slices.Contains(r.ahead, index):
		return false
	case index > r.have:
		r.ahead = append(r.ahead, index)
		return true
	}
	for r.have++; len(r.ahead) > 0; r.have++ {
		i := slices.Index(r.ahead, r.have)
		if i < 0 {
			break
		}
		r.ahead = slices.Delete(r.ahead, i, i+1)
	}
	return true
}

// lost is how many frames of the groups up to last (inclusive) have not come.
func (l *ledger) lost(last uint64) (n uint64) {
	for g := l.base; g <= last; g++ {
		n += uint64(l.per)
		if i := g - l.base; i < uint64(len(l.groups)) {
			n -= uint64(l.groups[i].have) + uint64(len(l.groups[i].ahead))
		}
	}
	return n
}
