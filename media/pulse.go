package media

import "time"

// Pulse is how a copy has been flowing: what tells a source that has fallen silent from one that never hurries (H1, H2).
type Pulse struct {
	// Arrivals counts frames and datagrams, known ones too.
	Arrivals uint64
	// First and Last are when the first and the newest sign of life came, as precise as Cache.Beat is called often; zero =
	// never. Group headers and pieces of large frames are such signs too.
	First, Last time.Time
	// Gap is the longest time between two signs since the last call of Copy.Pulse.
	Gap time.Duration
}

// pulse is kept under the lock of the track. Stamps are the beats of the cache, so that a frame costs a comparison of
// pointers and nothing else.
type pulse struct {
	arrivals    uint64
	first, last *time.Time
	gap         time.Duration
	// alarms: the waker is woken when so much has come; 0 = never.
	alarmArrivals, alarmFrames uint64
}

// Beat tells the time by which arrivals are stamped until the next call. Without it there are no pulses, at no cost.
// now must carry a monotonic reading.
func (c *Cache) Beat(now time.Time) { c.beat.Store(&now) }

// Pulse returns how the copy has been flowing, and starts to look for the longest gap anew.
func (c *Copy) Pulse() Pulse {
	c.track.mu.Lock()
	defer c.track.mu.Unlock()
	p := Pulse{Arrivals: c.pulse.arrivals, Gap: c.pulse.gap}
	if c.pulse.first != nil {
		p.First, p.Last = *c.pulse.first, *c.pulse.last
	}
	c.pulse.gap = 0
	return p
}

// Alarm has the copy's waker woken, once, when it has had so many arrivals or brought so many frames that nobody had
// brought before; 0 = never. It replaces what was set before, and wakes at once if it has come to that already.
func (c *Copy) Alarm(arrivals, frames uint64) {
	c.update(func(_ *Track, wk *wakes) {
		c.pulse.alarmArrivals, c.pulse.alarmFrames = arrivals, frames
		c.ring(wk)
	})
}

// ring wakes if an alarm is due.
func (c *Copy) ring(wk *wakes) {
	p := &c.pulse
	if n := p.alarmArrivals; n > 0 && p.arrivals >= n {
		p.alarmArrivals = 0
		wk.copy(c)
	}
	if n := p.alarmFrames; n > 0 && c.frames >= n {
		p.alarmFrames = 0
		wk.copy(c)
	}
}

// stir notes a sign of life.
func (c *Copy) stir() {
	now := c.track.cache.beat.Load()
	p := &c.pulse
	switch {
	case now == p.last: // also where there are no beats
		return
	case p.last == nil:
		p.first = now
	default:
		p.gap = max(p.gap, now.Sub(*p.last))
	}
	p.last = now
}

// arrived notes a frame or datagram.
func (c *Copy) arrived(wk *wakes) {
	c.stir()
	c.pulse.arrivals++
	c.ring(wk)
}

// Stir notes that a part of the next frame has arrived: a sign of life of the copy, and nothing that readers get. It may
// be called for every piece: one per beat counts.
func (w *GroupWriter) Stir() {
	now := w.g.track.cache.beat.Load()
	if w.copy == nil || now == w.stirred {
		return
	}
	w.stirred = now
	w.copy.update(func(*Track, *wakes) { w.copy.stir() })
}

// Needed says whether the copy has a group open that no other copy delivers or may still begin.
func (c *Copy) Needed() bool {
	t := c.track
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range c.writers {
		if w.g.open() && len(w.g.writers) == 1 && !t.deliverable(w.g.seq) {
			return true
		}
	}
	return false
}
