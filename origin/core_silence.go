package origin

import (
	"time"

	"github.com/moqmesh/moqmesh/media"
)

const (
	// flowing is how many arrivals make a rhythm (H1). They must be spread over the floor at least: a backlog that comes
	// at once is none.
	flowing = 8
	// rhythmWindow is how far back the longest gap is looked for (H2).
	rhythmWindow = 10 * time.Second
)

// silence is what is known of how the serving copy flows.
type silence struct {
	of     copyID
	rhythm rhythm
	last   time.Time // the newest sign of life, when last looked at
	frames uint64    // that nobody had brought before, then
	due    time.Time
	grace  time.Time // nothing is judged before; see overslept
	// bridged: a hedge has delivered what the copy did not, so that the gap says how long the way was cut and not how the
	// publisher sends. It is no part of the rhythm: a way that is cut again soon is hedged again.
	bridged bool
}

// rhythm is the longest gap between arrivals in a sliding window. Entries get shorter from the front to the back.
type rhythm []struct {
	at  time.Time
	gap time.Duration
}

// add notes a gap that has ended by the time at, and forgets what is older than the window before that.
func (r *rhythm) add(at time.Time, gap time.Duration) {
	l := *r
	for len(l) > 0 && l[len(l)-1].gap <= gap {
		l = l[:len(l)-1]
	}
	if gap > 0 {
		l = append(l, struct {
			at  time.Time
			gap time.Duration
		}{at, gap})
	}
	for len(l) > 0 && at.Sub(l[0].at) > rhythmWindow {
		l = l[1:]
	}
	*r = l
}

func (r rhythm) longest() time.Duration {
	if len(r) == 0 {
		return 0
	}
	return r[0].gap
}

// watch looks whether a source has been silent for longer than its rhythm explains. t is the one that should serve.
func (c *core) watch(t source, ok bool) {
	first := c.in(serving)
	switch {
	case first == nil:
		c.watchRequest(t, ok)
		return
	case c.switching():
		c.hedge.silence.due = time.Time{}
		c.unwant()
		c.lookAt(c.now.Add(c.hedge.floor))
		return
	}
	s := &c.hedge.silence
	if s.of != first.id {
		*s = silence{of: first.id}
		c.hedge.tries, c.hedge.spent = 0, false
	}
	p := c.feel(first)
	if p.Last.After(s.last) {
		c.alive(p)
	}
	s.last, s.frames = p.Last, first.media.State().Frames
	if c.overslept() {
		c.unwant()
		c.lookAt(s.grace)
		return
	}
	_, other := c.alternative(first.src, false)
	switch {
	case p.Arrivals < flowing:
		first.media.Alarm(flowing, 0)
	case p.Last.Sub(p.First) < c.hedge.floor, c.hedge.spent, c.hedge.tries >= hedgeTries:
		first.media.Alarm(p.Arrivals+1, 0) // until the next sign of life
	case first.ended || !c.asks || c.satisfied():
	case !other:
		if c.elsewhere(first.src) {
			c.lookAt(c.now.Add(c.hedge.floor)) // for now all others are silent too
		}
	default:
		c.judge(first, p)
		return
	}
	s.due = time.Time{}
	c.unwant()
}

// feel takes the pulse of the watched copy.
func (c *core) feel(first *upstreamCopy) media.Pulse {
	p := first.media.Pulse()
	s := &c.hedge.silence
	if s.bridged && first.id == s.of && p.Gap >= c.hedge.floor {
		s.bridged = false
		return p
	}
	s.rhythm.add(p.Last, p.Gap)
	return p
}

// watchRequest handles a request whose best source is on a session that is suspect (H11): it is asked, and at the same time
// another that does not pass through the silent peer.
func (c *core) watchRequest(t source, ok bool) {
	h := &c.hedge
	if !ok || !t.link.suspected() || h.spent || h.tries >= hedgeTries {
		c.unwant()
		return
	}
	if h.silence.of != 0 {
		h.silence = silence{}
	}
	c.startHedge(t, true)
}

// switching says whether another source is being asked already, and may answer.
func (c *core) switching() bool {
	if c.probe != nil && !c.probe.src.link.silent(c.now, c.hedge.floor) {
		return true
	}
	for _, u := range c.copies {
		if !u.hedge && (u.phase == reserved || u.phase == asked) && !u.src.link.silent(c.now, c.hedge.floor) {
			return true
		}
	}
	return false
}

// alive notes a sign of life of the serving copy: the next silence is another one (H10).
func (c *core) alive(p media.Pulse) {
	h := &c.hedge
	h.tries, h.spent = 0, false
	h.silence.due, h.silence.grace = time.Time{}, time.Time{}
	if p.Gap > h.floor && !h.eased.IsZero() {
		h.eased = h.eased.Add(p.Gap) // that was no flow
	}
	switch {
	case h.eased.IsZero():
		h.eased = p.Last
	case h.factor > 1 && p.Last.Sub(h.eased) >= hedgeEase:
		h.factor /= 2
		h.eased = h.eased.Add(hedgeEase)
	case h.factor <= 1:
		h.eased = p.Last
	}
}

// overslept says whether a look came so late that we cannot have been running: then what has arrived meanwhile, on any session,
// is still to be read, and nothing is judged for a while.
func (c *core) overslept() bool {
	h, s := &c.hedge, &c.hedge.silence
	if !s.due.IsZero() && c.now.Sub(s.due) > h.floor/2 && !h.wanted && h.tries == 0 {
		s.due, s.grace = time.Time{}, c.now.Add(h.floor/2)
	}
	return c.now.Before(s.grace)
}

// satisfied says whether readers have got all they want.
func (c *core) satisfied() bool {
	if c.want.End == nil {
		return false
	}
	next := c.track.Lacking(c.want)
	return next != nil && !next.Before(*c.want.End)
}

// elsewhere says whether there is a source on another session at all.
func (c *core) elsewhere(first source) bool {
	for _, layer := range c.layers {
		for _, s := range layer {
			if _, no := c.out[s.id]; !no && s.link != first.link {
				return true
			}
		}
	}
	return false
}

// judge decides about the silence of a copy that has been flowing (H2, H3).
func (c *core) judge(first *upstreamCopy, p media.Pulse) {
	h, s := &c.hedge, &c.hedge.silence
	limit := max(h.floor, 2*s.rhythm.longest())
	link := first.src.link
	var due time.Time
	if limit < h.idle {
		if d := limit * 3 / 2 * time.Duration(max(h.factor, 1)); d < h.idle {
			due = p.Last.Add(d)
		}
	}
	dead := false // the whole session is silent
	if heard, ok := link.lastHeard(); ok {
		wait := limit
		if link.suspected() {
			wait = h.floor // whatever the rhythm (H11)
		}
		at := later(p.Last, heard).Add(wait)
		if wait < h.idle && (due.IsZero() || at.Before(due)) {
			due, dead = at, true
		}
	}
	switch {
	case due.IsZero(): // it may be in no hurry for long
		s.due = due
		c.unwant()
		if c.now.Sub(p.Last) < rhythmWindow {
			c.lookAt(c.now.Add(time.Second))
		} else {
			first.media.Alarm(p.Arrivals+1, 0)
		}
	case c.now.Before(due):
		s.due = due
		c.unwant()
		c.lookAt(due)
	default:
		h.eased = time.Time{}
		c.startHedge(first.src, false)
		if h.on && dead && !link.suspected() {
			c.emit(suspect{first.src})
		}
	}
}

func (c *core) lookAt(t time.Time) { c.hedge.look = t }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
