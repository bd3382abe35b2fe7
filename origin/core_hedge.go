package origin

import (
	"slices"
	"time"
)

// A peer that dies without a goodbye is noticed only after the idle timeout. A hedge is a second copy, opened on the
// suspicion that a source has died and without giving up the first; whoever delivers a frame first, wins (rules H1 to
// H12). This file starts hedges and ends them; core_silence.go says when a source is silent for too long.

const (
	// hedgeTries is how many sources are asked in one silence (H5).
	hedgeTries = 2
	// hedgeFactor is what a needless hedge multiplies the patience with (H10).
	hedgeFactor = 4
	// hedgeEase is how long a track must flow for that to be halved again.
	hedgeEase = time.Minute
)

// hedge is what a track does about the silence of a source. The zero value never hedges.
type hedge struct {
	floor time.Duration // shortest silence that counts; 0 = off
	idle  time.Duration // silence after which a session is dead anyway

	silence silence
	factor  int       // of the patience with a session that answers; 0 = 1 (H10)
	eased   time.Time // since when the track flows, or when factor was halved last
	look    time.Time // when to look again; zero = something will happen first

	wanted  bool // a place among the hedges of the relay was asked for, and not granted yet
	granted bool
	tries   int  // sources asked in this silence
	spent   bool // nothing more is done about this silence (H10)

	on    bool // a second source is asked, or delivers
	src   source
	probe *probe // about its properties
	copy  copyID // 0 = not subscribed yet
	since time.Time
	// brought is when it brought a frame that readers lacked; won, that the first source did not come right behind it: when
	// a publisher ends a pause, frames take both ways at once, and who is first says nothing. Over two ways of one length
	// that is a toss for each frame, and the hedge may be a hair ahead with several in a row.
	brought time.Time
	won     bool
	// again is since when the first source flows again; zero = it is silent.
	again time.Time
}

// hedgeOutcome is what became of a hedge, for the counters.
type hedgeOutcome uint8

const (
	hedgeStarted  hedgeOutcome = iota
	hedgeWon                   // it has delivered a frame that readers lacked
	hedgeNeedless              // it has ended without
	hedgeRefused               // its source did not have the track, or not the same, or has gone
)

func (o hedgeOutcome) String() string {
	switch o {
	case hedgeStarted:
		return "started"
	case hedgeWon:
		return "won"
	case hedgeNeedless:
		return "needless"
	default:
		return "refused"
	}
}

// hedgeFor looks after the hedge, or whether one is due. t is the source that should serve.
func (c *core) hedgeFor(t source, ok bool) {
	h := &c.hedge
	if h.floor == 0 {
		return
	}
	h.look = time.Time{}
	if h.on && h.copy == 0 && c.busyWith(h.src.id) {
		c.unhedge() // it is asked as the one that is to serve
	}
	if h.on {
		c.tend()
	}
	if !h.on {
		c.watch(t, ok)
	}
}

// tend looks after a hedge that was started.
func (c *core) tend() {
	h := &c.hedge
	u := c.byID(h.copy)
	switch {
	case h.copy != 0 && u == nil: // cut for another copy (F35)
		h.spent = true
		c.unhedge()
		return
	case !c.listed(h.src.id):
		c.unhedge()
		if u != nil && u.phase == standby {
			c.retire(u)
		} else if u != nil {
			c.cancel(u)
		}
		return
	case u == nil && h.probe == nil:
		if u = c.openHedge(); u == nil {
			return
		}
	}
	first := c.in(serving)
	if u != nil && h.brought.IsZero() && u.media.State().Frames > 0 {
		h.brought = c.now
	}
	if first != nil && (c.isBack(first) || c.keepsUp(first, u)) { // H8
		c.giveUp(u, h.won)
		return
	}
	due := c.hedgeDue(u)
	if !c.now.Before(due) { // H9
		c.giveUp(u, !h.brought.IsZero())
		return
	}
	h.look = due
	if again := c.now.Add(h.floor / 2); first != nil && again.Before(due) {
		h.look = again // see keepsUp
	}
	switch sure := h.brought.Add(h.floor / 4); {
	case h.won:
	case h.brought.IsZero():
		if u != nil {
			u.media.Alarm(0, 1)
		}
	case c.now.Before(sure):
		if sure.Before(h.look) {
			h.look = sure
		}
	case first != nil && c.rightBehind(first, u):
	default:
		c.win()
	}
}

// hedgeDue is when a hedge ends because nothing comes of it (H9).
func (c *core) hedgeDue(u *upstreamCopy) time.Time {
	due := c.hedge.since
	if u != nil {
		if p := u.media.Pulse(); p.Last.After(due) {
			due = p.Last
		}
	}
	return due.Add(c.hedge.idle)
}

// isBack says whether the first copy delivers again what readers lack (H8).
func (c *core) isBack(first *upstreamCopy) bool {
	s := &c.hedge.silence
	if first.id != s.of {
		return false // it was accepted meanwhile; then the hedge is an old copy
	}
	had := first.media.State().Frames
	if had > s.frames {
		return true
	}
	first.media.Alarm(0, s.frames+1)
	return false
}

// win counts a hedge that was of use.
func (c *core) win() {
	c.hedge.won, c.hedge.silence.bridged = true, true
	c.emit(hedged{c.hedge.src, hedgeWon})
}

// keepsUp says whether the first copy flows again as far ahead as the hedge, u, though a little behind it: over the longer way
// it may never be the first to bring a frame, and both would be asked for ever.
func (c *core) keepsUp(first, u *upstreamCopy) bool {
	h := &c.hedge
	p := c.feel(first)
	switch {
	case !p.Last.After(h.since) || c.now.Sub(p.Last) >= h.floor:
		h.again = time.Time{}
		return false
	case h.again.IsZero():
		h.again = c.now
	}
	return c.now.Sub(h.again) >= h.floor && c.rightBehind(first, u)
}

// rightBehind says whether the first copy flows again, after its silence, and in the same group as the hedge or further.
func (c *core) rightBehind(first, u *upstreamCopy) bool {
	return u != nil && !c.hedge.again.IsZero() && first.media.State().Newest >= u.media.State().Newest
}

// giveUp ends a hedge that is of no more use, if it was of any.
func (c *core) giveUp(u *upstreamCopy, useful bool) {
	h := &c.hedge
	if !useful {
		h.brought = time.Time{}
		h.factor = min(max(h.factor, 1)*hedgeFactor, 1<<20)
		c.emit(hedged{h.src, hedgeNeedless})
	}
	h.spent = true
	c.yield(u)
	c.unhedge()
}

// yield ends the copy of a hedge, except for groups that nobody else can deliver: these it finishes as an old copy (H8).
func (c *core) yield(u *upstreamCopy) {
	switch {
	case u == nil || u.phase == old:
	case u.phase == standby && u.media.Needed():
		c.retire(u)
	default:
		c.cancel(u)
	}
}

// unhedge forgets the hedge. Its copy is somebody else's business from now on.
func (c *core) unhedge() {
	h := &c.hedge
	if !h.brought.IsZero() && !h.won {
		c.win()
	}
	if u := c.byID(h.copy); u != nil {
		u.hedge = false
	}
	if h.probe != nil {
		c.emit(cancelInfo{h.probe.id})
		h.probe = nil
	}
	h.on, h.copy, h.src, h.brought, h.won, h.again = false, 0, source{}, time.Time{}, false, time.Time{}
}

// quitHedge forgets everything about a silence: nobody reads the track any more.
func (c *core) quitHedge() {
	h := &c.hedge
	c.unhedge()
	c.unwant()
	h.silence, h.look, h.eased, h.tries, h.spent = silence{}, time.Time{}, time.Time{}, 0, false
}

// unwant gives back the place that was asked for.
func (c *core) unwant() {
	h := &c.hedge
	if h.wanted {
		c.emit(unwantHedge{})
	}
	h.wanted, h.granted = false, false
}

// listed says whether a source may still be asked.
func (c *core) listed(id sourceID) bool {
	if x, no := c.out[id]; no {
		// Done with the track: it may still send what it has begun.
		return x.why == ended
	}
	return slices.ContainsFunc(c.layers, func(layer []source) bool {
		return slices.ContainsFunc(layer, func(s source) bool { return s.id == id })
	})
}

// startHedge asks the next best source, once there is a place for it. first is the source that is silent.
func (c *core) startHedge(first source, lacking bool) {
	h := &c.hedge
	src, ok := c.alternative(first, lacking)
	if !ok {
		c.unwant()
		return
	}
	if !h.granted {
		if !h.wanted {
			h.wanted = true
			c.emit(wantHedge{c.want.Priority})
		}
		return
	}
	h.wanted, h.granted = false, false
	h.tries++
	h.on, h.src, h.since = true, src, c.now
	c.emit(hedged{src, hedgeStarted})
	if _, known := c.infos[src.id]; !known {
		h.probe = &probe{c.nextID(), src}
		c.emit(askInfo(*h.probe))
	}
	c.tend()
}

// openHedge subscribes at the second source, from the first frame that readers lack (H5). It returns nil if there is
// nothing to ask for, or not yet.
func (c *core) openHedge() *upstreamCopy {
	h := &c.hedge
	if !c.asks || c.track == nil {
		return nil
	}
	if u := c.from(h.src.id); u != nil && u.phase == old {
		c.cancel(u) // a publisher sends each group once: it is asked anew
	}
	u := c.reserve(h.src)
	u.hedge, h.copy, h.since = true, u.id, c.now
	c.subscribe(u)
	if c.byID(u.id) == nil {
		h.spent = true
		c.unhedge()
		return nil
	}
	return u
}

// alternative chooses where to hedge (H4): the best source on another session that is not silent itself, those first
// whose routes do not pass through the silent peer. With lacking they must not. One that is reached through all who read is
// of no use to them.
func (c *core) alternative(first source, lacking bool) (best source, ok bool) {
	for _, layer := range c.layers {
		for _, s := range layer {
			_, no := c.out[s.id]
			if no || s.goaway || s.link == first.link || s.link.silent(c.now, c.hedge.floor) || c.busyWith(s.id) {
				continue
			}
			if n := c.who.before(s); n > 0 && n >= c.here+c.wait {
				continue
			}
			if !s.through(first.peer) {
				return s, true
			}
			if !ok && !lacking {
				best, ok = s, true
			}
		}
		if ok {
			return best, true // the deepest prefix decides alone (R27)
		}
	}
	return best, ok
}

// busyWith says whether a source is being asked already.
func (c *core) busyWith(id sourceID) bool {
	u := c.from(id)
	return u != nil && u.phase != old || c.probe != nil && c.probe.src.id == id
}

// hedgeAnswered takes the properties of the second source. A refusal never fails the track (H5).
func (c *core) hedgeAnswered(ev infoAnswered) {
	h := &c.hedge
	src := h.probe.src
	h.probe = nil
	if !c.examine(src, ev) {
		c.hedgeFailed()
	}
}

// hedgeFailed handles that the second source has refused, or has gone.
func (c *core) hedgeFailed() {
	c.emit(hedged{c.hedge.src, hedgeRefused})
	c.unhedge()
}

// promote makes the hedge the copy that is to serve, without asking again (H7).
func (c *core) promote(u *upstreamCopy) {
	phase := u.phase
	c.unhedge()
	if phase == standby {
		c.accept(u)
	}
}

// displace makes the hedge an old copy, since another copy serves from now on (H7).
func (c *core) displace(serves *upstreamCopy) {
	h := &c.hedge
	if !h.on {
		return
	}
	u := c.byID(h.copy)
	c.unhedge()
	switch {
	case u == nil || u == serves:
	case u.phase == standby:
		c.retire(u)
	default:
		c.cancel(u)
	}
}
