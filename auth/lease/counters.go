package lease

import (
	"errors"
	"sync/atomic"

	"github.com/moqmesh/moqmesh/auth"
)

// Outcomes counts answers by what they are.
type Outcomes struct{ Granted, Refused, Unavailable, Invalid uint64 }

// Counters are the totals of a manager, apart from Stale, which is the present number.
type Counters struct {
	Connects, Refreshes Outcomes
	// Recovered counts sessions that came in during an outage.
	Recovered uint64
	// Stale is the number of sessions whose last question had no answer.
	Stale int64
	// Sessions that their lease ended, by reason. Narrowed stands for every grant that does not cover the old one.
	Expired, Refused, Unavailable, Invalid, Narrowed uint64
}

// outcomes are Outcomes that are being counted.
type outcomes struct{ granted, refused, unavailable, invalid atomic.Uint64 }

func (o *outcomes) count(err error) {
	switch {
	case err == nil:
		o.granted.Add(1)
	case errors.Is(err, auth.ErrRefused):
		o.refused.Add(1)
	case errors.Is(err, auth.ErrInvalid):
		o.invalid.Add(1)
	default:
		o.unavailable.Add(1)
	}
}

func (o *outcomes) read() Outcomes {
	return Outcomes{o.granted.Load(), o.refused.Load(), o.unavailable.Load(), o.invalid.Load()}
}

type counters struct {
	connects, refreshes                                       outcomes
	recovered                                                 atomic.Uint64
	stale                                                     atomic.Int64
	endExpired, endRefused, endUnavailable, endInvalid, other atomic.Uint64
}

func (c *counters) count(e auth.Event, err error) {
	if e == auth.EventRevalidate {
		c.refreshes.count(err)
	} else {
		c.connects.count(err)
	}
}

// setStale counts a session in or out.
func (c *counters) setStale(was *bool, is bool) {
	switch {
	case is && !*was:
		c.stale.Add(1)
	case !is && *was:
		c.stale.Add(-1)
	}
	*was = is
}

func (c *counters) ended(e Ended) {
	switch e.Reason {
	case ReasonExpired:
		c.endExpired.Add(1)
	case ReasonRefused:
		c.endRefused.Add(1)
	case ReasonUnavailable:
		c.endUnavailable.Add(1)
	case ReasonInvalid:
		c.endInvalid.Add(1)
	default:
		c.other.Add(1)
	}
}

// Counters returns the totals so far.
func (m *Manager) Counters() Counters {
	c := &m.counters
	return Counters{
		Connects: c.connects.read(), Refreshes: c.refreshes.read(), Recovered: c.recovered.Load(), Stale: c.stale.Load(),
		Expired: c.endExpired.Load(), Refused: c.endRefused.Load(), Unavailable: c.endUnavailable.Load(),
		Invalid: c.endInvalid.Load(), Narrowed: c.other.Load(),
	}
}
