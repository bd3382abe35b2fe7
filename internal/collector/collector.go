// Package collector decides how much garbage may pile up before the heap of a relay is collected.
//
// What a collection costs grows with what has to be looked at: the part of the heap that holds pointers, and stacks. Cached
// content holds none. So the room for garbage goes by that part, where Go's GOGC goes by all of the heap: a relay whose cache is
// full needs no more of it than an empty one. While there is CPU time to spare memory is dearer, and the room is small. When
// there is none, because many watch or many come, a collection is what makes frames late, since it takes a quarter of the
// cores for as long as it lasts; then the room is large, and given back when that is over.
package collector

const (
	// calmRoom and busyRoom are the room for garbage in percent of what a collection has to look at.
	calmRoom = 30
	busyRoom = 150
	// leastRoom is the room that even the smallest heap gets, in bytes.
	leastRoom = 4 << 20
	// A process is busy once it spends busyFrom percent of its cores, until it has spent less than calmBelow for calmLooks.
	busyFrom  = 60
	calmBelow = 45
	calmLooks = 20
	// releaseLooks is the least number of looks from one release of memory to the next.
	releaseLooks = 120
	// leastGrowth and mostGrowth bound the growth, in percent.
	leastGrowth = 10
	mostGrowth  = 150
)

// Usage is what a process spends and has.
type Usage struct {
	// CPU is the time spent since the last look, in percent of the cores.
	CPU float64
	// Scanned is what the last collection had to look at, in bytes: the part of the heap that holds pointers, stacks and
	// globals.
	Scanned int64
	// Base is what growth is a percentage of: all that is alive on the heap, stacks and globals.
	Base int64
}

// Verdict is what to do until the next one.
type Verdict struct {
	// Growth is by how many percent of its base the heap may grow.
	Growth int
	// Release asks to collect and give back what is free: it was taken in a hurry.
	Release bool
}

// Core turns usage into verdicts. It is deterministic and not safe for concurrent use.
type Core struct {
	busy     bool
	calm     int // looks below calmBelow since the last one that was not
	released int // looks until the next release may come
}

// Observe takes in the usage; call it a few times a second.
func (c *Core) Observe(u Usage) Verdict {
	if c.calm++; u.CPU >= calmBelow {
		c.calm = 0
	}
	c.released = max(0, c.released-1)
	was := c.busy
	c.busy = u.CPU >= busyFrom || c.busy && (c.calm < calmLooks || c.released > 0)
	v := Verdict{Growth: growth(c.busy, u), Release: was && !c.busy}
	if v.Release {
		c.released = releaseLooks
	}
	return v
}

func growth(busy bool, u Usage) int {
	room := u.Scanned / 100 * calmRoom
	if busy {
		room = u.Scanned / 100 * busyRoom
	}
	return int(min(max(leastGrowth, max(room, leastRoom)/max(u.Base/100, 1)), mostGrowth))
}
