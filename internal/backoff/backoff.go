// Package backoff draws the pauses between attempts: uniformly from zero to a ceiling that grows with every failure
// ("full jitter"). It is pure: the caller sleeps, and chance is injected.
package backoff

import "time"

// Floor is the smallest first ceiling; a smaller one counts as this.
const Floor = 50 * time.Millisecond

// Policy says how the ceiling of the pauses grows. Zero fields take the defaults.
type Policy struct {
	Initial    time.Duration // first ceiling; default 1 s, at least Floor
	Max        time.Duration // last ceiling; default 30 s, at least Initial
	Multiplier float64       // growth per pause; default 2, at least 1
}

func (p Policy) normal() Policy {
	if p.Initial == 0 {
		p.Initial = time.Second
	}
	if p.Max == 0 {
		p.Max = 30 * time.Second
	}
	if p.Multiplier == 0 {
		p.Multiplier = 2
	}
	p.Initial = max(p.Initial, Floor)
	p.Max = max(p.Max, p.Initial)
	p.Multiplier = max(p.Multiplier, 1)
	return p
}

// Backoff is the state of one series of attempts. It is not safe for concurrent use.
type Backoff struct {
	policy  Policy
	rand    func() float64
	ceiling time.Duration
}

// New starts at the first ceiling. rand returns a uniform number in [0, 1).
func New(p Policy, rand func() float64) *Backoff {
	p = p.normal()
	return &Backoff{policy: p, rand: rand, ceiling: p.Initial}
}

// Next is the pause before the next attempt, in [0, Ceiling). It raises the ceiling for the one after.
func (b *Backoff) Next() time.Duration {
	pause := time.Duration(b.rand() * float64(b.ceiling))
	grown := float64(b.ceiling) * b.policy.Multiplier
	if grown >= float64(b.policy.Max) {
		b.ceiling = b.policy.Max
	} else {
		b.ceiling = time.Duration(grown)
	}
	return pause
}

// Last raises the ceiling to the last one and returns it as the pause, without jitter: for a failure that no retry
// is expected to mend.
func (b *Backoff) Last() time.Duration {
	b.ceiling = b.policy.Max
	return b.ceiling
}

// Reset goes back to the first ceiling, after an attempt that did well.
func (b *Backoff) Reset() { b.ceiling = b.policy.Initial }

// Ceiling is the bound of the next pause.
func (b *Backoff) Ceiling() time.Duration { return b.ceiling }
