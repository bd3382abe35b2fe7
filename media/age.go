package media

import (
	"math"
	"math/bits"
	"time"
)

// ticks turns a budget into timescale units, rounded up, so that a whole number of units reaches the budget exactly
// when it reaches the result. Budgets that do not fit never end.
func ticks(budget time.Duration, timescale uint64) uint64 {
	if budget <= 0 {
		return 0
	}
	if budget == Unlimited {
		return math.MaxUint64
	}
	hi, lo := bits.Mul64(uint64(budget), timescale)
	lo, carry := bits.Add64(lo, uint64(time.Second)-1, 0)
	hi += carry
	if hi >= uint64(time.Second) {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return q
}

// due returns the media time from which on a group is too old whose successor starts at first.
func due(first, budget uint64) uint64 {
	if budget > math.MaxUint64-first {
		return math.MaxUint64
	}
	return first + budget
}

// view is the part of a track that a reader can be served. The zero view is empty; everything is {end: lastPosition}.
type view struct {
	start Position
	end   Position // exclusive
}

var (
	lastPosition = Position{math.MaxUint64, math.MaxUint64}
	everything   = view{end: lastPosition}
)

// covers says whether a frame of group seq is in the view.
func (v view) covers(seq uint64) bool {
	return v.start.Group <= seq && (Position{Group: seq}).Before(v.end)
}

// first is the first frame of group seq in the view.
func (v view) first(seq uint64) uint64 {
	if seq == v.start.Group {
		return v.start.Frame
	}
	return 0
}

// last is the frame before which the view ends in group seq.
func (v view) last(seq uint64) uint64 {
	if seq == v.end.Group {
		return v.end.Frame
	}
	return math.MaxUint64
}

// admits says whether g can be served: it is covered, and its head is there.
func (v view) admits(g *group) bool { return v.covers(g.seq) && g.base <= v.first(g.seq) }

// edge returns the highest stamped group that v admits. It is one step where v has no end.
func (x *index) edge(v view) *group {
	if x.top == nil || v.admits(x.top) {
		return x.top
	}
	for i := x.search(v.end.Group); i >= 0; i-- {
		if i < len(x.g) && x.g[i].stamped && v.admits(x.g[i]) {
			return x.g[i]
		}
	}
	return nil
}

// condemned returns the media time from which on a group is too old, given the position of the first cached group
// above it (F9): the first timestamp of the first one that can be served, plus the budget. Without a successor, or if
// it has no timestamp, there is none.
func (x *index) condemned(above int, v view, budget uint64) (uint64, bool) {
	for ; above < len(x.g); above++ {
		if s := x.g[above]; v.admits(s) {
			return due(s.first, budget), s.stamped
		}
	}
	return 0, false
}

// tooOld is rule F9 for a group number, cached or not: T - S >= budget, where S is the first timestamp of the first
// group above it that can be served, and T the highest timestamp of the highest stamped one. Rewinding timestamps
// never condemn. It costs a binary search.
func (x *index) tooOld(seq uint64, v view, budget uint64) bool {
	return x.tooOldAt(x.after(seq), v, budget)
}

// tooOldAt is tooOld given the position of the first cached group above.
func (x *index) tooOldAt(above int, v view, budget uint64) bool {
	at, ok := x.condemned(above, v, budget)
	if !ok {
		return false
	}
	e := x.edge(v)
	return e != nil && e.high >= at
}
