package origin

import (
	"slices"

	"github.com/moqmesh/moqmesh/media"
)

func (c *core) byID(id copyID) *upstreamCopy {
	i := slices.IndexFunc(c.copies, func(u *upstreamCopy) bool { return u.id == id })
	if i < 0 {
		return nil
	}
	return c.copies[i]
}

// from finds the newest copy from a source.
func (c *core) from(id sourceID) *upstreamCopy {
	for _, u := range slices.Backward(c.copies) {
		if u.src.id == id {
			return u
		}
	}
	return nil
}

func (c *core) in(p phase) *upstreamCopy {
	i := slices.IndexFunc(c.copies, func(u *upstreamCopy) bool { return u.phase == p })
	if i < 0 {
		return nil
	}
	return c.copies[i]
}

// copyFor sees to it that source t serves the track, or will. Without one, subscriptions in flight are left to their own
// end (F38).
func (c *core) copyFor(t source, ok bool) {
	for _, u := range slices.Clone(c.copies) {
		superseded := u.phase == reserved && (!ok || u.src.id != t.id) ||
			u.phase == asked && ok && u.src.id != t.id
		if superseded && !u.hedge {
			c.cancel(u) // R26: a request that waits follows a re-selection at once
		}
	}
	if !ok {
		return
	}
	u := c.from(t.id)
	if u != nil && u.hedge {
		c.promote(u)
		return
	}
	if u != nil && u.phase == old {
		if c.revivable(u) {
			c.revive(u)
			return
		}
		c.cancel(u) // and ask it anew
		u = nil
	}
	if u == nil {
		u = c.reserve(t)
	}
	if _, known := c.infos[t.id]; known && u.phase == reserved {
		c.subscribe(u)
	}
}

// subscriptions counts the copies that have been asked for.
func (c *core) subscriptions() (n int) {
	for _, u := range c.copies {
		if u.phase != reserved {
			n++
		}
	}
	return n
}

// reserve makes the place of a copy in the track, so that readers of open groups wait for it (F33).
func (c *core) reserve(t source) *upstreamCopy {
	for len(c.copies) >= maxCopies { // F35: cutting loses nothing
		victim := c.in(old)
		if victim == nil {
			victim = c.byID(c.hedge.copy)
		}
		c.cancel(victim)
	}
	u := &upstreamCopy{id: c.nextID(), src: t}
	u.media = c.track.NewCopy(c.waker(u.id))
	c.copies = append(c.copies, u)
	return u
}

// subscribe asks a source from the first frame that readers lack (F27).
func (c *core) subscribe(u *upstreamCopy) {
	ask := u.media.Ask(c.want)
	if ask.End != nil && ask.Start != nil && !ask.Start.Before(*ask.End) {
		c.cancel(u) // readers have it all: an empty range opens nothing (F4)
		return
	}
	info := c.infos[u.src.id]
	if info.Unstamped != c.fixed.Unstamped {
		u.media.Foreign() // F24
	}
	u.phase, u.sent = asked, firstAsk(u.src.caps, ask)
	c.emit(openCopy{u.id, u.src, info, u.sent, u.media})
}

// opened notes that a SUBSCRIBE is on its way. Where properties are asked for separately the source has accepted with
// its answer (F22).
func (c *core) opened(id copyID) {
	if u := c.byID(id); u != nil && u.phase == asked && u.src.caps.TrackInfo {
		c.accept(u)
	}
}

// moved looks at what a copy has declared.
func (c *core) moved(id copyID) {
	u := c.byID(id)
	if u == nil || u.phase == reserved {
		return
	}
	st := u.media.State()
	if u.phase == asked && (st.Started || st.Begun || st.Ended) {
		c.accept(u)
	}
	if st.Ended && !u.ended {
		c.finish(u, st.End)
	}
	if u.phase == old && st.Open == 0 {
		c.cancel(u)
	}
}

// finish notes that a source has no more of the track than what is below end (F39).
func (c *core) finish(u *upstreamCopy, end uint64) {
	u.ended = true
	c.end, c.ends = max(c.end, end), true
	c.drop(u.src, ended, nil)
}

// accept makes a copy the serving one; a hedge stands by.
func (c *core) accept(u *upstreamCopy) {
	if u.hedge {
		u.phase = standby
		return
	}
	c.displace(u)
	if s := c.in(serving); s != nil {
		c.retire(s)
	}
	u.phase = serving
	c.serves++
	c.emit(servedBy{u.src})
}

// retire lets a copy finish the groups that it has open, and takes no new ones from it (F28).
func (c *core) retire(u *upstreamCopy) {
	st := u.media.State()
	if st.Open == 0 {
		c.cancel(u)
		return
	}
	u.phase, u.limit = old, st.Limit
	u.media.Limit(&u.limit)
	c.refresh(u)
}

// revivable says whether an old copy can serve on: its wire can take the end back, and no group was stopped, since a
// publisher sends each group once (F28).
func (c *core) revivable(u *upstreamCopy) bool {
	return u.src.caps.Update && !u.ended && !u.media.State().Stopped
}

// revive takes back the end of an old copy, which serves on.
func (c *core) revive(u *upstreamCopy) {
	c.displace(u)
	if s := c.in(serving); s != nil {
		c.retire(s)
	}
	u.media.Limit(nil)
	u.phase = serving
	c.refresh(u)
	c.serves++
	c.emit(servedBy{u.src})
}

// refresh tells a source what is wanted now (F4).
func (c *core) refresh(u *upstreamCopy) {
	if u.phase == reserved || !u.src.caps.Update {
		return
	}
	ask := u.media.Ask(c.want)
	if u.phase == old {
		limit := media.Position{Group: u.limit}
		if ask.End == nil || limit.Before(*ask.End) {
			ask.End = &limit
		}
	}
	next := laterAsk(u.src.caps, u.sent, ask, u.media.State())
	if !sameWant(next, u.sent) {
		u.sent = next
		c.emit(updateCopy{u.id, next})
	}
}

// done handles the end of a subscription. Its place in the track is given up only after the next source was chosen
// (F33).
func (c *core) done(ev copyDone) {
	u := c.byID(ev.id)
	if u == nil {
		return
	}
	switch {
	case ev.err == nil && !u.ended:
		c.finish(u, c.endOf(u))
	case ev.err != nil && u.phase != old:
		c.exclude(u.src, ev.err)
	}
	if u.hedge && ev.err != nil {
		c.hedgeFailed()
	}
	c.remove(u)
}

// endOf is the end of a track whose copy ended cleanly without naming it (moq-lite before 05).
func (c *core) endOf(u *upstreamCopy) uint64 {
	if st := u.media.State(); st.Ended {
		return st.End
	}
	if n, ok := c.track.Newest(); ok {
		return n + 1
	}
	return 0
}

// cancel gives a copy up.
func (c *core) cancel(u *upstreamCopy) {
	if u.phase != reserved {
		c.emit(cancelCopy{u.id})
	}
	c.remove(u)
}

func (c *core) remove(u *upstreamCopy) {
	c.copies = slices.DeleteFunc(c.copies, func(v *upstreamCopy) bool { return v == u })
	c.buried = append(c.buried, u.media)
}

func (c *core) dropCopies() {
	for _, u := range slices.Clone(c.copies) {
		c.cancel(u)
	}
}
