package testmedia

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Limits of what a Checker remembers.
const (
	maxOpen       = 4096 // groups under way; beyond it the lowest is given up
	maxGapsListed = 20
	// underWay is how many of the newest groups may be unfinished when a live track is cut off.
	underWay = 2
)

// Checker checks the groups of one track as a viewer receives them: every frame intact, in its place and once,
// every group complete, none missing between the first and the last. It is not safe for concurrent use.
type Checker struct {
	format Format
	open   map[uint64]*progress
	seen   spans // groups that began
	newest uint64
	// short says that the newest group ended cleanly below its stated number of frames: no fault if the publisher
	// stopped there.
	short  bool
	until  uint64 // the last group that counts
	report Report
}

// progress is a group that has not ended.
type progress struct {
	next uint64 // the frame that is due
	of   uint64 // frames it should have; 0 = not known
}

// Report is what a Checker found.
type Report struct {
	Frames uint64 // intact, in place
	Bytes  uint64 // payload of these frames
	Groups uint64 // complete
	First  uint64 // lowest and highest group that began; 0, 0 when none did
	Last   uint64
	Wrong  uint64 // frames that are damaged or out of place
	Twice  uint64 // frames and groups that came again
	Cut    uint64 // groups that ended before they were complete
	// Missing groups that never began; the two newest may still be under way. Gaps lists up to 20 ranges of missing or
	// unfinished groups, first and last inclusive.
	Missing uint64
	Gaps    [][2]uint64
}

// OK reports whether media came and nothing is wrong with it.
func (r Report) OK() bool {
	return r.Frames > 0 && r.Wrong == 0 && r.Twice == 0 && r.Cut == 0 && r.Missing == 0
}

// NewChecker makes a checker of one track.
func NewChecker(f Format) *Checker {
	return &Checker{format: f, open: make(map[uint64]*progress), until: math.MaxUint64}
}

// Stop lets nothing count that begins from now on: what is under way may still end.
func (c *Checker) Stop() { c.until = c.newest }

// Begin notes that a group begins, with the frame first.
func (c *Checker) Begin(group, first uint64) {
	if group > c.until {
		return
	}
	if c.seen.has(group) {
		c.report.Twice++
		return
	}
	if len(c.open) >= maxOpen {
		c.cut(slices.Min(slices.Collect(maps.Keys(c.open))))
	}
	c.open[group] = &progress{next: first}
	c.seen.add(group)
	if group > c.newest {
		if c.short {
			c.cut(c.newest)
			c.short = false
		}
		c.newest = group
	}
}

// Frame checks one frame and returns what it says of itself; ok is false if the frame is at fault. A frame of a group
// that is not open counts as one that came again.
func (c *Checker) Frame(group uint64, payload []byte) (h Header, ok bool) {
	if group > c.until {
		return h, false
	}
	g := c.open[group]
	if g == nil {
		c.report.Twice++
		return h, false
	}
	h, err := c.format.Parse(payload)
	if err != nil || !c.inPlace(h, group) {
		c.report.Wrong++
		g.next++
		return h, false
	}
	if c.format != Raw {
		g.of = uint64(h.Of)
		if at := uint64(h.Index); at < g.next {
			c.report.Twice++
			return h, false
		} else if at > g.next {
			c.report.Wrong++
			g.next = at + 1
			return h, false
		}
	}
	g.next++
	c.report.Frames++
	c.report.Bytes += uint64(len(payload))
	return h, true
}

func (c *Checker) inPlace(h Header, group uint64) bool {
	switch c.format {
	case Mesh:
		return h.Group == group && h.Index < h.Of
	case JS:
		return h.Group == uint64(uint32(group)) && h.Index < h.Of
	case Raw:
	}
	return true
}

// End notes that a group ended; complete is what its stream says.
func (c *Checker) End(group uint64, complete bool) {
	g := c.open[group]
	if g == nil {
		return
	}
	switch {
	case complete && g.next >= g.of:
		delete(c.open, group)
		c.report.Groups++
	case complete && group == c.newest:
		delete(c.open, group)
		c.short = true
	default:
		c.cut(group)
	}
}

// cut closes a group that is not complete.
func (c *Checker) cut(group uint64) {
	delete(c.open, group)
	c.report.Cut++
	c.gap(group, group)
}

func (c *Checker) gap(first, last uint64) {
	if len(c.report.Gaps) < maxGapsListed {
		c.report.Gaps = append(c.report.Gaps, [2]uint64{first, last})
	}
}

// Single checks a group of one frame that came as a datagram.
func (c *Checker) Single(group uint64, payload []byte) (h Header, ok bool) {
	if c.seen.has(group) {
		c.report.Twice++
		return h, false
	}
	c.Begin(group, 0)
	h, ok = c.Frame(group, payload)
	c.End(group, true)
	return h, ok
}

// Report tells what was found so far. ended says that the track ended cleanly, so that nothing may be under way; of a
// track that goes on, the two newest groups are spared.
func (c *Checker) Report(ended bool) Report {
	r := c.report
	r.Gaps = slices.Clone(r.Gaps)
	if len(c.seen.list) == 0 {
		return r
	}
	r.First, r.Last = c.seen.list[0].first, c.newest
	limit := c.newest
	if !ended {
		limit -= min(limit, underWay)
	}
	more := &Checker{report: Report{Gaps: r.Gaps}}
	for group := range c.open {
		if group <= limit {
			r.Cut++
			more.gap(group, group)
		}
	}
	r.Missing = c.seen.closed
	c.seen.holes(limit, func(first, last uint64) {
		r.Missing += last - first + 1
		more.gap(first, last)
	})
	r.Gaps = more.report.Gaps
	slices.SortFunc(r.Gaps, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	return r
}

// Age is how long ago a frame was sent, at the time now.
func (h Header) Age(now time.Time) time.Duration { return now.Sub(h.Sent) }
