// Package lease keeps the life of what an auth server grants: asking again, narrowing, expiry, outages, and the memory
// that bridges them (auth 5.4).
//
// What happens is decided by a pure state machine, see machine.go; a [Manager] gives it time, questions and answers. A
// session that was let in holds a [Lease], and is told through its [Holder] when the grant changes or ends.
//
// Two memories bridge outages, and neither overrides a refusal. A running session keeps its grant while nobody can be
// asked, until the grant expires or the stale window is over. A new one is let in by the [recovery] cache if exactly its
// question was granted in the last 30 s.
package lease
