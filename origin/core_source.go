package origin

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// pick chooses the source that should serve now (F18): the best one that is not excluded, of those that are not reached
// through the audience if there is one. Where it is draining it is good only for what runs over it already; the next ones
// are not asked in its place (R41).
func (c *core) pick() (source, bool) {
	for _, layer := range c.layers {
		var best *source
		for i, s := range layer {
			if _, no := c.out[s.id]; no {
				continue
			}
			if best == nil {
				best = &layer[i]
			}
			if c.who.before(s) == 0 {
				best = &layer[i]
				break
			}
		}
		switch {
		case best == nil:
		case best.goaway && !c.carries(best.id):
			c.last = session.ErrGoingAway
			return source{}, false
		default:
			return *best, true
		}
	}
	return source{}, false
}

// fetchFrom chooses the source to fetch a group from: the best one that was accepted and has not refused the track
// (F41). It names none, and no error, while the properties of that one are being asked for.
func (c *core) fetchFrom() (src source, ok bool, err error) {
	for _, layer := range c.layers {
		for _, s := range layer {
			if x, no := c.out[s.id]; no && x.why != ended {
				continue
			}
			_, known := c.infos[s.id]
			switch {
			case s.goaway:
				return source{}, false, session.ErrGoingAway
			case known:
				return s, true, nil
			case c.probe != nil && c.probe.src.id == s.id:
				return source{}, false, nil
			}
		}
	}
	return source{}, false, c.cause()
}

// carries says whether a source serves, or can serve, without being asked again.
func (c *core) carries(id sourceID) bool {
	u := c.from(id)
	return u != nil && u.phase != reserved && (u.phase != old || c.revivable(u))
}

// reroute takes in a new list of sources. What is known of those that are gone is forgotten (F25).
func (c *core) reroute(layers [][]source) {
	c.layers = layers
	known := make(map[sourceID]bool)
	for _, layer := range layers {
		for _, s := range layer {
			known[s.id] = true
			if _, no := c.out[s.id]; !no && c.over && !c.apart {
				c.apart = true
				c.emit(partTrack{}) // F39: later switches do not reopen it
			}
		}
	}
	for id := range c.out {
		if !known[id] && c.from(id) == nil {
			delete(c.out, id)
		}
	}
	for id := range c.infos {
		if !known[id] && c.from(id) == nil {
			delete(c.infos, id)
		}
	}
}

// probeFor sees to it that the properties of source t are known or being asked for.
func (c *core) probeFor(t source, ok bool) {
	_, known := c.infos[t.id]
	if !ok || known || !c.asks && c.wait == 0 {
		c.stopProbe()
		return
	}
	if c.probe != nil && c.probe.src.id == t.id {
		return
	}
	c.stopProbe()                                         // a request follows a re-selection at once (R26)
	if p := c.hedge.probe; p != nil && p.src.id == t.id { // H7
		c.probe, c.hedge.probe = p, nil
		c.unhedge()
		return
	}
	c.probe = &probe{c.nextID(), t}
	c.emit(askInfo(*c.probe))
}

func (c *core) stopProbe() {
	if c.probe != nil {
		c.emit(cancelInfo{c.probe.id})
		c.probe = nil
	}
}

// answered checks the properties that a source has named (F22).
func (c *core) answered(ev infoAnswered) {
	switch {
	case c.probe != nil && c.probe.id == ev.id:
		src := c.probe.src
		c.probe = nil
		c.examine(src, ev)
	case c.hedge.probe != nil && c.hedge.probe.id == ev.id:
		c.hedgeAnswered(ev)
	}
}

// examine checks an answer, and reports whether the source may serve.
func (c *core) examine(src source, ev infoAnswered) bool {
	if ev.err != nil {
		c.exclude(src, ev.err)
		return false
	}
	capped := ev.info
	capped.MaxAge = min(capped.MaxAge, c.maxAge)
	fixed := c.fixed
	if fixed == nil {
		fixed = &capped
	}
	if err := compatible(*fixed, capped); err != nil {
		c.drop(src, mismatched, err)
		return false
	}
	c.fixed, c.keep = fixed, !src.local
	c.infos[src.id] = ev.info
	if c.track == nil {
		c.track = c.newTrack(*fixed)
		c.emit(trackReady{})
	}
	return true
}

// compatible says how two sources differ in what must be the same (F22, F24). Retention windows are capped already.
func compatible(a, b media.Info) error {
	differ := func(what string, x, y any) error {
		return fmt.Errorf("%w: %s is %v, not %v", session.ErrUnsupported, what, y, x)
	}
	switch {
	case a.Timescale != b.Timescale:
		return differ("timescale", a.Timescale, b.Timescale)
	case a.MaxAge != b.MaxAge:
		return differ("retention window", a.MaxAge, b.MaxAge)
	case a.Priority != b.Priority:
		return differ("priority", a.Priority, b.Priority)
	case a.Order != b.Order && a.Order != media.OrderUnspecified && b.Order != media.OrderUnspecified:
		return differ("group order", a.Order, b.Order)
	}
	return nil
}

// exclude notes that a source has failed with err.
func (c *core) exclude(src source, err error) {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, session.ErrGoingAway) {
		c.drop(src, closing, lost(err))
		return
	}
	c.drop(src, refused, err)
}

func (c *core) drop(src source, why exclusionKind, err error) {
	if _, done := c.out[src.id]; done {
		return
	}
	x := exclusion{why, err}
	c.out[src.id] = x
	c.sure, c.asked = false, 0
	if why != ended {
		c.last = err
		c.emit(excluded{src, x})
	}
}

// lost is what those downstream get when the session of the last source has ended: their own is alive, so it must
// not look like net.ErrClosed.
func lost(err error) error {
	if errors.Is(err, session.ErrGoingAway) {
		return err
	}
	return &lostError{err}
}

type lostError struct{ cause error }

func (e *lostError) Error() string {
	return session.ErrUnroutable.Error() + ": the session of the source ended: " + e.cause.Error()
}

func (e *lostError) Is(target error) bool { return target == session.ErrUnroutable }

// cause is the error of a track that no source serves (F23, F26).
func (c *core) cause() error {
	for _, id := range slices.Sorted(maps.Keys(c.out)) { // of several the same every time
		x := c.out[id]
		if x.why == mismatched {
			return x.err
		}
	}
	if c.last != nil {
		return c.last
	}
	return session.ErrUnroutable
}
