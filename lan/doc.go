// Package lan finds the relays of one's own kind on the local network, without any list: DNS-SD over multicast DNS
// (RFC 6762, RFC 6763), with a proof in the record that its writer holds the shared secret, if there is one.
//
// Pure parts, which get packets and the time and return packets and lists:
//
//   - record, proof and candidates: what a relay says of itself, whether that is accepted, and how it is dialed.
//   - responder: probes for our names on one interface, announces them, answers queries, says goodbye.
//   - browser: the cache of one interface; asks for the subtype and for what is about to expire.
//   - directory: what all interfaces have found, as one list of peers to dial.
//
// Discovery runs them: one goroutine owns them all, one more per socket reads. There is a socket per interface and
// address family; interfaces are looked at again every five seconds.
//
// The package dials nobody. What it finds is returned by Discovery.Next as a list.
package lan
