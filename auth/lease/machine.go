package lease

import (
	"errors"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// The fixed words for the end of a session (A11). Other reasons are free text.
const (
	ReasonDropped     = "dropped"     // it never came about
	ReasonExpired     = "expired"     // the grant's own end
	ReasonRefused     = "refused"     // asked again, the auth server said no
	ReasonInvalid     = "invalid"     // asked again, it broke the contract
	ReasonUnavailable = "unavailable" // nobody could be asked for longer than the stale window
)

// Ended is why a lease ended before its session.
type Ended struct {
	Reason string
	// Kind is auth.ErrRefused, ErrInvalid or ErrUnavailable: what to tell the client.
	Kind error
}

const (
	firstRetry = time.Second
	maxRetry   = time.Minute
)

// effect is what the machine wants done.
type effect struct {
	ask     bool   // put the question again
	adopted bool   // the grant is another one now
	end     *Ended // the session must end; nothing happens after it
}

// machine decides the life of one lease. It is pure: time comes in, and nothing is done by it.
type machine struct {
	window *time.Duration // stale window; nil = up to the end of the grant
	chance func() float64 // in [0, 1)

	grant    auth.Grant
	at       time.Time // when it was granted
	next     time.Time // when to ask again; zero = not by itself
	asking   bool
	again    bool // asked to ask again meanwhile
	failures int  // since the last answer
	failing  time.Time
	over     bool
}

// newMachine starts with a grant that was given at some time: now, or a moment ago if it was remembered.
func newMachine(window *time.Duration, chance func() float64, now time.Time, g auth.Grant, at time.Time, recovered bool) *machine {
	m := &machine{window: window, chance: chance}
	m.adopt(g, at)
	if recovered {
		m.failed(now)
	}
	return m
}

func (m *machine) adopt(g auth.Grant, at time.Time) {
	m.grant, m.at = g, at
	m.failures, m.failing, m.next = 0, time.Time{}, time.Time{}
	if g.Revalidate > 0 {
		// Up to a tenth early, so that sessions that came together do not ask together.
		m.next = at.Add(g.Revalidate - time.Duration(m.chance()*float64(g.Revalidate)/10))
	}
}

// failed counts an outage and sets the time of the next question.
func (m *machine) failed(now time.Time) {
	if m.failures == 0 {
		m.failing = now
	}
	limit := maxRetry
	if m.grant.Revalidate > 0 {
		limit = min(limit, m.grant.Revalidate)
	}
	pause := min(firstRetry<<min(m.failures, 10), limit)
	m.failures++
	m.next = now.Add(time.Duration(float64(pause) * (0.75 + m.chance()/2)))
}

// stale is when the stale window is over; false if it never is.
func (m *machine) stale() (time.Time, bool) {
	switch {
	case m.window == nil:
		return time.Time{}, false
	case m.grant.Revalidate > 0: // the grant's own time to live, then the window
		return m.at.Add(m.grant.Revalidate + *m.window), true
	case m.failures > 0:
		return m.failing.Add(*m.window), true
	}
	return time.Time{}, false
}

// deadline is when tick is due; zero = never.
func (m *machine) deadline() time.Time {
	var first time.Time
	earlier := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if m.over {
		return first
	}
	earlier(m.grant.Expires)
	if t, ok := m.stale(); ok {
		earlier(t)
	}
	if !m.asking {
		earlier(m.next)
	}
	return first
}

// tick lets time pass.
func (m *machine) tick(now time.Time) effect {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch t, bounded := m.stale(); {
	case m.over:
		return effect{}
	case due(m.grant.Expires):
		return m.end(ReasonExpired, auth.ErrRefused)
	case bounded && due(t):
		return m.end(ReasonUnavailable, auth.ErrUnavailable)
	case !m.asking && due(m.next):
		return m.ask()
	}
	return effect{}
}

// push is the wish of an operator to ask now. While a question is under way, all wishes together make one more.
func (m *machine) push() effect {
	switch {
	case m.over:
		return effect{}
	case m.asking:
		m.again = true
		return effect{}
	}
	return m.ask()
}

func (m *machine) ask() effect {
	m.asking = true
	return effect{ask: true}
}

// answered takes an answer in, or that there was none.
func (m *machine) answered(now time.Time, g auth.Grant, err error) effect {
	if m.over {
		return effect{}
	}
	m.asking = false
	if err == nil {
		g, err = g.At(now)
	}
	switch {
	case err == nil:
	case errors.Is(err, auth.ErrRefused):
		return m.end(ReasonRefused, auth.ErrRefused)
	case errors.Is(err, auth.ErrInvalid):
		return m.end(ReasonInvalid, auth.ErrInvalid)
	default:
		m.failed(now)
		e := m.tick(now) // the end of the grant may have passed meanwhile
		return m.more(e)
	}
	if why, ok := g.Replaces(m.grant); !ok {
		return m.end(why, auth.ErrRefused)
	}
	adopted := differs(g, m.grant)
	m.adopt(g, now)
	e := m.more(effect{})
	e.adopted = adopted
	return e
}

// more asks once more if somebody wished for it meanwhile.
func (m *machine) more(e effect) effect {
	if !m.again || e.end != nil || e.ask {
		return e
	}
	m.again = false
	return m.ask()
}

func differs(a, b auth.Grant) bool {
	return a.Tier != b.Tier || !a.Publish.Equal(b.Publish) || !a.Subscribe.Equal(b.Subscribe)
}

func (m *machine) end(reason string, kind error) effect {
	m.over = true
	return effect{end: &Ended{Reason: reason, Kind: kind}}
}
