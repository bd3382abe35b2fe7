package origin

import "time"

// How long a copy may bring nothing when no source is left to ask: as long as a peer may be silent before it counts as
// dead, or, where another source has declared the end of the track already, long enough for a frame to come.
const (
	drySilence = 10 * time.Second
	endSilence = time.Second
)

// drought is how long a track has been without a source to ask.
type drought struct {
	since  time.Time // of the silence; zero = there is a source
	frames uint64    // that had come by then
}

// dry handles that no source is left to ask. What a live copy still brings is waited for (F37, F38); then the track
// ends, cleanly if every source has said so (F39). Fetches without readers see to themselves.
//
// While stale routes remain nothing ends: who told us of them has been told of the withdrawal too, and may have another
// way beside it, of which we hear when its hold is over. If not, they go within a round trip, and after two seconds at the
// latest they are stale no more (R44).
//
// Nor does anything end before the owner has been asked: another source may have been announced a moment before the last
// one was lost.
func (c *core) dry() {
	if c.stale || !c.certain() {
		return
	}
	over := c.ends && !c.beyond(c.end)
	for _, u := range c.copies {
		over = over && (u.ended || u.phase == old)
	}
	switch {
	case over:
		c.finishTrack()
	case len(c.copies) > 0:
		c.outwait()
	case c.here > 0 || c.track == nil:
		c.fail(c.cause())
	}
}

// certain reports whether there is no other source, and asks if that is not known.
func (c *core) certain() bool {
	if !c.sure && c.asked == 0 {
		c.checks++
		c.asked = c.checks
		c.emit(checkRoutes{c.asked})
	}
	return c.sure
}

// outwait ends a track whose copies have been silent for too long. They need not come to an end by themselves: while the
// last routes were withdrawn one after the other, relays may have subscribed in a circle (R26), in which each waits for the
// next.
func (c *core) outwait() {
	var frames uint64
	for _, u := range c.copies {
		frames += u.media.State().Frames
	}
	switch {
	case c.drought.since.IsZero(), frames != c.drought.frames:
		c.drought = drought{c.now, frames}
	case c.now.Before(c.drought.since.Add(c.patience())):
	case c.ends && !c.beyond(c.end):
		c.finishTrack()
		c.dropCopies()
	default:
		c.fail(c.cause())
	}
}

// patience is how long a drought may last.
func (c *core) patience() time.Duration {
	if c.ends && !c.beyond(c.end) {
		return endSilence
	}
	return drySilence
}

// finishTrack ends the track cleanly.
func (c *core) finishTrack() {
	c.over, c.drought = true, drought{}
	c.track.End(c.end)
}

// beyond says whether something at or above group was delivered.
func (c *core) beyond(group uint64) bool {
	n, ok := c.track.Newest()
	return ok && n >= group
}
