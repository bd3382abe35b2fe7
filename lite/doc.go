// Package lite speaks moq-lite, versions 01 to 06, over one connection: both roles, both directions at once.
//
// [Accept] and [Connect] do the handshake and return a [Session]; [Session.Run] serves it until it ends. What the
// peer asks for is put to a session.Handler. What we want from the peer is asked through the methods of
// session.Upstream, which Session implements.
//
// # Goroutines
//
// An idle session costs two: one accepts bidirectional streams (the caller of Run), one unidirectional streams.
// Each stream that the peer opened costs one more while it lives, an ANNOUNCE stream two. A subscription that we
// serve costs one for its SUBSCRIBE stream and, while its reader keeps up, one that writes all its groups. Run
// returns after the last of them has ended.
//
// # Who writes
//
// Ingest never writes to a subscriber. It appends to the cache and wakes readers through media.Waker and
// media.Waiter, neither of which blocks. Only the workers of a subscription (sender.go) call Write, which blocks
// on flow and congestion control, so a slow reader holds up nobody but itself.
//
// # Failures
//
// What a peer does wrong is confined to the smallest scope (moq-lite 10): a frame ends its group, a message its
// stream, and only problems of SETUP, of an ANNOUNCE stream that we opened, a second GOAWAY and the end of the
// session stream of 01 and 02 end the session.
package lite
