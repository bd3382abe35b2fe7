// Package route is the relay's route table: which advertisement of a prefix is best, who may see it, and what each
// consumer must be told when. It is pure: no goroutine, lock, clock, randomness or logger.
package route

// Hop is the 62-bit identity of a relay or publisher; 0 names nobody.
type Hop uint64

// Cost is a pair of prices: of one more subscription (warm) and of the same path with nothing cached (cold).
type Cost struct{ Warm, Cold uint64 }

// Limits of costs and hop lists.
const (
	MaxCost = 1<<62 - 1 // unknown (cold) or draining
	MaxSum  = 1<<62 - 2 // where a sum stops (R15)
	MaxHops = 32
)
