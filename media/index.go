package media

import (
	"slices"
	"sort"
)

// maxGroups bounds the cached groups of one track; above it the lowest goes. It is minutes of one-frame groups.
const maxGroups = 1 << 16

// index holds the cached groups of a track, sorted by number. Groups mostly come and go at the ends, where both
// cost nothing.
type index struct {
	g []*group
	// top is the highest group that has a timestamp, nil if there is none: the live edge.
	top *group
}

// search returns the position of the first group at or above seq.
func (x *index) search(seq uint64) int {
	n := len(x.g)
	if n == 0 || x.g[n-1].seq < seq {
		return n
	}
	if x.g[n-1].seq == seq {
		return n - 1
	}
	return sort.Search(n, func(i int) bool { return x.g[i].seq >= seq })
}

// after returns the position of the first group above seq.
func (x *index) after(seq uint64) int {
	i := x.search(seq)
	if i < len(x.g) && x.g[i].seq == seq {
		i++
	}
	return i
}

// get returns group seq, or nil.
func (x *index) get(seq uint64) *group {
	if i := x.search(seq); i < len(x.g) && x.g[i].seq == seq {
		return x.g[i]
	}
	return nil
}

func (x *index) oldest() *group {
	if len(x.g) == 0 {
		return nil
	}
	return x.g[0]
}

func (x *index) newest() *group {
	if len(x.g) == 0 {
		return nil
	}
	return x.g[len(x.g)-1]
}

// insert adds a group that is not there.
func (x *index) insert(g *group) {
	x.g = slices.Insert(x.g, x.search(g.seq), g)
	if g.stamped {
		x.stamp(g)
	}
}

// stamp notes that g has its first timestamp now.
func (x *index) stamp(g *group) {
	if x.top == nil || g.seq > x.top.seq {
		x.top = g
	}
}

// remove takes g out, if it is in.
func (x *index) remove(g *group) {
	i := x.search(g.seq)
	if i == len(x.g) || x.g[i] != g {
		return
	}
	if i == 0 {
		x.g[0] = nil
		x.g = x.g[1:]
	} else {
		x.g = slices.Delete(x.g, i, i+1)
	}
	if x.top != g {
		return
	}
	x.top = nil
	for i := len(x.g) - 1; i >= 0 && x.top == nil; i-- {
		if x.g[i].stamped {
			x.top = x.g[i]
		}
	}
}
