package media

// foreign moves the timestamps of a copy that has another clock than its track onto that clock (F24): the publisher's
// clock on one side, the time of receipt on the other, where a wire carries no timestamps.
type foreign struct {
	on    bool
	known bool
	delta int64 // to be added
}

// Foreign says that the copy's timestamps are of another clock than those the track began with. The first frame that the
// track lacks is taken to follow the newest delivered one by the time that has passed since, and the others keep their
// distance from it. Mixing the clocks instead would make every open group look too old (F9). Call it before the copy
// delivers anything.
func (c *Copy) Foreign() {
	c.update(func(*Track, *wakes) { c.foreign.on = true })
}

// stamp returns the timestamp of a frame on the track's clock; c may be nil (a fetch keeps its own).
func (c *Copy) stamp(ts uint64) uint64 {
	if c == nil || !c.foreign.on {
		return ts
	}
	f, t := &c.foreign, c.track
	if !f.known {
		f.known = true
		if top := t.index.top; top != nil {
			passed := ticks(t.cache.clock()-top.fed, t.info.Timescale)
			f.delta = int64(min(top.high+passed, maxTimestamp)) - int64(ts)
		}
	}
	return uint64(min(max(int64(ts)+f.delta, 0), maxTimestamp))
}
