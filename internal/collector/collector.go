// Package collector decides how much garbage may pile up before the heap of a relay is collected.
//
// What a collection costs grows with what has to be looked at: the part of the heap that holds pointers, and stacks. Cached
// content holds none. So the room for garbage goes by that part, where Go's GOGC goes by all of the heap: a relay whose cache is
// full needs no more of it than an empty one. While there is CPU time to spare memory is dearer, and the room is small. Near
// the limit of its cores a collection is what makes frames late, since it takes a quarter of them for as long as it lasts;
// then the room is large.
package collector

const (
	// calmRoom and busyRoom are the room for garbage in percent of what a collection has to look at.
	calmRoom = 25
	busyRoom = 150
	// leastRoom is the room that even the smallest heap gets, in bytes.
	leastRoom = 4 << 20
	// A process is busy from busyFrom percent of its cores on, until it spends less than calmBelow.
	busyFrom  = 60
	calmBelow = 45
	// leastGrowth and mostGrowth bound the answer, in percent.
	leastGrowth = 10
	mostGrowth  = 150
)

// Heap is what the last collection has found, in bytes.
type Heap struct {
	// Scanned is what it had to look at: the part of the heap that holds pointers, stacks and globals.
	Scanned int64
	// Base is what growth is a percentage of: what is alive on the heap, stacks and globals.
	Base int64
}

// Core turns usage into how far the heap may grow. It is deterministic and not safe for concurrent use.
type Core struct {
	busy   bool
	growth int
}

// Observe takes in the CPU time that the process has spent since the last call, in percent of its cores, and the heap. It
// returns by how many percent of Base the heap may grow, and whether that is news: small changes are not.
func (c *Core) Observe(cpu float64, h Heap) (growth int, news bool) {
	c.busy = cpu >= busyFrom || c.busy && cpu >= calmBelow
	want := growthOf(c.busy, h)
	if d := want - c.growth; c.growth > 0 && d*8 < c.growth && d*8 > -c.growth {
		return c.growth, false
	}
	c.growth = want
	return want, true
}

func growthOf(busy bool, h Heap) int {
	room := h.Scanned / 100 * calmRoom
	if busy {
		room = h.Scanned / 100 * busyRoom
	}
	room = max(room, leastRoom)
	return int(min(max(leastGrowth, room/max(h.Base/100, 1)), mostGrowth))
}
