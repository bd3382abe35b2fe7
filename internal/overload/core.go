package overload

import (
	"math"
	"time"
)

// How the core reacts. A blip does nothing; what lasts has consequences, which end a while after the cause.
const (
	// busyShare of the limit is where joining is slowed down.
	busyShare = 4
	// fullAfter is how long the limit must be passed before the process counts as full, calmAfter for how long lateness
	// must stay below half of it before it does not any more.
	fullAfter = 2 * time.Second
	calmAfter = 5 * time.Second

	// Joins a second: where a slow-down begins, how far it goes, and from where on there is none.
	firstJoins = 200
	leastJoins = 5
	freeJoins  = 1000

	// Patience with slow readers: what it begins with when the process is full, halved every so often while that does not
	// help, and the least.
	firstPatience = 4 * time.Second
	patienceEvery = 2 * time.Second
	leastPatience = 500 * time.Millisecond
)

// Verdict is what to do until the next one.
type Verdict struct {
	// Full asks to refuse new clients.
	Full bool
	// Joins is how many clients a second to begin with; infinite = as they come.
	Joins float64
	// Patience is how far a reader may fall behind before it skips to what is live; 0 = as far as it asked for.
	Patience time.Duration
}

// Core turns lateness into verdicts. It is deterministic and not safe for concurrent use.
type Core struct {
	limit time.Duration
	now   Verdict

	late, calm time.Time // since when lateness has been above the limit, below half of it; zero = it is not
	halved     time.Time // when patience was last
}

// NewCore makes a core that holds lateness, as Meter has it, to a limit.
func NewCore(limit time.Duration) *Core {
	return &Core{limit: limit, now: Verdict{Joins: math.Inf(1)}}
}

// Observe takes in the lateness of the last moment; call it a few times a second.
func (c *Core) Observe(now time.Time, wait time.Duration) Verdict {
	c.late = since(c.late, now, wait >= c.limit)
	c.calm = since(c.calm, now, wait < c.limit/2)
	switch {
	case !c.late.IsZero() && now.Sub(c.late) >= fullAfter:
		c.press(now)
	case c.now.Full && !c.calm.IsZero() && now.Sub(c.calm) >= calmAfter:
		c.now.Full, c.now.Patience = false, 0
	}
	if wait >= c.limit/busyShare {
		c.now.Joins = max(leastJoins, min(c.now.Joins, 2*firstJoins)/2)
	} else if c.now.Joins *= 2; c.now.Joins >= freeJoins {
		c.now.Joins = math.Inf(1)
	}
	return c.now
}

// press makes the process full, or readers shorter of time if that was not enough.
func (c *Core) press(now time.Time) {
	switch {
	case !c.now.Full:
		c.now.Full, c.now.Patience, c.halved = true, firstPatience, now
	case now.Sub(c.halved) >= patienceEvery:
		c.now.Patience, c.halved = max(leastPatience, c.now.Patience/2), now
	}
}

// since keeps the time from which on something has held.
func since(t, now time.Time, holds bool) time.Time {
	switch {
	case !holds:
		return time.Time{}
	case t.IsZero():
		return now
	}
	return t
}
