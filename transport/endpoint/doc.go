// Package endpoint puts MoQ connections on UDP sockets: a Listener accepts raw QUIC connections and
// WebTransport sessions on one socket, a Dialer opens either from that socket or one of its own.
//
// Both take any net.PacketConn, so that they run on simulated networks in virtual time as they do on
// real ones.
package endpoint
