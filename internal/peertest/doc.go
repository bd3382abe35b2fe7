// Package peertest helps to test one session. Pair is a connection in memory: both ends implement transport.Conn with
// the rules of QUIC that a session depends on (stream credit, flow control, reset, STOP_SENDING, close codes,
// datagrams), without packets and without delay. Peer plays one end of such a connection from a script and checks
// what the session at the other end does.
//
// Everything here blocks durably, so it works in bubbles of testing/synctest.
package peertest
