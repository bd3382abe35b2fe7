// Package origin is the relay's live set: who announces what, who reads what, and what connects the two.
//
// An [Origin] has one owner goroutine. It runs the route table, keeps the fronts (one per path and horizon, that is, per
// set of routes that a requester may use) and feeds the announce streams; it never waits for a peer. Each logical
// track, one name in one front, has a goroutine of its own that lives as long as the track is read and 30 s longer
// (F16). It owns the readers, their aggregate and the upstream copies, of which one serves, however many readers there
// are. What it does is decided by a pure state machine, see core.go.
//
// [Origin.Attach] makes a session part of the set. The returned [Session] is the session's host: it joins names with the
// session's root on the way in and makes them relative on the way out, and checks its grants. Programs that embed the
// relay attach publishers and readers in the process in the same way.
//
// Rule ids such as (R26) and (F16) are those of the routing design and of the design of subscriptions and failover.
package origin
