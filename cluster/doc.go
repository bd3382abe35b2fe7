// Package cluster finds and dials the peers of a relay.
//
// Its parts, from pure to running:
//
//   - [Parse] turns a configured peer list into entries or refuses it as a whole; [ParseNode] does the same for our
//     own address, which is filtered out of every list.
//   - [Peers] reconciles what several sources say about one peer: there is at most one dial per peer key (C3).
//   - [CheckRedirect] decides whether a GOAWAY may move a session elsewhere.
//   - [Cluster] runs one dial loop per peer: dial, serve, pause, again, for ever (C9).
//
// The package knows neither QUIC nor MoQ: it is given a function that dials and returns a [Session].
//
// Addresses of peers carry credentials. What this package prints of an entry is scheme, host and port; see [Entry].
package cluster
