// Package backoff draws the pauses between attempts: uniformly from zero to a ceiling that grows with every failure
// ("full jitter"). It is pure: the caller sleeps, and time and chance are injected.
package backoff

import "time"

// Floor is the smallest first ceiling; a smaller one counts as this.
const Floor = 50 * time.Millisecond

// DefaultMax is the last ceiling unless a Policy says otherwise.
const DefaultMax = 30 * time.Second

// Policy says how the ceiling of the pauses grows. Zero fields take the defaults.
type Policy struct {
	Initial    time.Duration // first ceiling; default 1 s, at least Floor
	Max        time.Duration // last ceiling; default 30 s, at least Initial
	Multiplier float64       // growth per pause; default 2, at least 1
	// Early bounds the pauses that end, if they are as long as this, within For of the first of a series: what is gone for
	// a moment is soon tried again, what is gone for long ever more rarely. The ceiling grows underneath. Zero = no bound;
	// it never lowers the first ceiling.
	Early, For time.Duration
}

func (p Policy) normal() Policy {
	if p.Initial == 0 {
		p.Initial = time.Second
	}
	if p.Max == 0 {
		p.Max = DefaultMax
	}
	if p.Multiplier == 0 {
		p.Multiplier = 2
	}
	p.Initial = max(p.Initial, Floor)
	p.Max = max(p.Max, p.Initial)
	p.Multiplier = max(p.Multiplier, 1)
	if p.Early == 0 {
		p.Early = p.Max
	}
	p.Early = max(p.Early, p.Initial)
	return p
}

// Backoff is the state of one series of attempts. It is not safe for concurrent use.
type Backoff struct {
	policy  Policy
	rand    func() float64
	ceiling time.Duration
	began   time.Time // of the series: the first pause; zero = there was none
}

// New starts at the first ceiling. rand returns a uniform number in [0, 1).
func New(p Policy, rand func() float64) *Backoff {
	p = p.normal()
	return &Backoff{policy: p, rand: rand, ceiling: p.Initial}
}

// Next is the pause before the next attempt, in [0, Ceiling). It raises the ceiling for the one after.
func (b *Backoff) Next(now time.Time) time.Duration {
	ceiling := b.Ceiling(now)
	if b.began.IsZero() {
		b.began = now
	}
	grown := float64(b.ceiling) * b.policy.Multiplier
	if grown >= float64(b.policy.Max) {
		b.ceiling = b.policy.Max
	} else {
		b.ceiling = time.Duration(grown)
	}
	return time.Duration(b.rand() * float64(ceiling))
}

// Last raises the ceiling to the last one and returns it as the pause, without jitter: for a failure that no retry
// is expected to mend.
func (b *Backoff) Last() time.Duration {
	b.ceiling = b.policy.Max
	return b.ceiling
}

// Reset goes back to the first ceiling, after an attempt that did well.
func (b *Backoff) Reset() { b.ceiling, b.began = b.policy.Initial, time.Time{} }

// Ceiling is the bound of a pause that begins now.
func (b *Backoff) Ceiling(now time.Time) time.Duration {
	age := time.Duration(0)
	if !b.began.IsZero() {
		age = now.Sub(b.began)
	}
	if age+b.policy.Early <= b.policy.For {
		return min(b.ceiling, b.policy.Early)
	}
	return b.ceiling
}
