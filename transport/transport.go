// Package transport describes one connection to a MoQ peer, whatever carries it: raw QUIC, a
// WebTransport session, or qmux over WebSocket, TCP or a Unix socket. The carriers live in the packages below this one; the
// protocol packages see only these interfaces.
package transport

import (
	"context"
	"crypto/x509"
	"net"
	"net/url"
	"time"
)

// Kind names what carries a connection.
type Kind string

// The carriers.
const (
	KindQUIC         Kind = "quic"
	KindWebTransport Kind = "webtransport"
	KindWebSocket    Kind = "websocket" // qmux, as on the next two
	KindTCP          Kind = "tcp"
	KindUnix         Kind = "unix"
)

// Conn is one connection to a peer. All methods may be called concurrently.
type Conn interface {
	// OpenStream opens a bidirectional stream. It blocks while the peer's stream limit is reached,
	// until ctx or the connection ends.
	OpenStream(ctx context.Context) (Stream, error)
	// OpenUniStream opens a unidirectional stream for sending; it blocks as OpenStream does.
	OpenUniStream(ctx context.Context) (SendStream, error)
	// AcceptStream and AcceptUniStream wait for the next stream of the peer.
	AcceptStream(ctx context.Context) (Stream, error)
	AcceptUniStream(ctx context.Context) (ReceiveStream, error)

	// SendDatagram queues one datagram. It may block while the queue is full: call it from a
	// goroutine of the session, never from ingest. The payload may be reused after it returns.
	SendDatagram(payload []byte) error
	// ReceiveDatagram waits for the next datagram; the caller owns the result.
	ReceiveDatagram(ctx context.Context) ([]byte, error)
	// MaxDatagramSize is the largest payload that SendDatagram takes now, in bytes; 0 means that the
	// connection carries no datagrams.
	MaxDatagramSize() int

	// Close ends the connection with a session code (plain, not mapped) and a short reason. It
	// returns once the carrier has done what it can to deliver both, at most about half a second.
	// Later calls do nothing.
	Close(code uint32, reason string)
	// Context ends when the connection has ended; its cause is the *SessionError.
	Context() context.Context

	Info() Info
	Stats() Stats
}

// SendStream is the sending half of a stream. Write and Close must not be called concurrently with each
// other; Reset, SetPriority and SetWriteDeadline may be called at any time.
type SendStream interface {
	// Write blocks on flow and congestion control; see package lite for who may call it. After
	// STOP_SENDING it fails with a *StreamError whose Remote is true.
	Write(p []byte) (int, error)
	// Close sends FIN after what was written.
	Close() error
	// Reset abandons the stream with a code (plain: the carrier maps it). It does nothing after Close has
	// been acknowledged, and discards what is not yet delivered.
	Reset(code uint64)
	SetWriteDeadline(t time.Time) error
	// SetPriority sets the urgency, 0 (first) to 7 (last); 3 is the default of a new stream.
	// Streams of urgency 4 and above are sent one after the other, others share round-robin.
	// Where the carrier has no priorities it does nothing.
	SetPriority(urgency int)
	// Context ends as soon as the stream is closed, reset or stopped by the peer; after STOP_SENDING its
	// cause is a *StreamError.
	Context() context.Context
}

// ReceiveStream is the receiving half of a stream.
type ReceiveStream interface {
	// Read returns io.EOF after FIN and a *StreamError after a reset by the peer.
	Read(p []byte) (int, error)
	// Stop sends STOP_SENDING with a code (plain) and discards the rest. Every accepted stream must be
	// read to its end or stopped, else the peer runs out of streams.
	Stop(code uint64)
	SetReadDeadline(t time.Time) error
}

// Stream is a bidirectional stream.
type Stream interface {
	SendStream
	ReceiveStream
}

// Info says what is known of a connection; it does not change.
type Info struct {
	Kind   Kind
	Dialed bool // we dialed it
	// Protocol is the negotiated MoQ token: the ALPN on raw QUIC, the WebTransport sub-protocol, on qmux what was
	// agreed beside the draft. Empty when none was negotiated.
	Protocol string
	// URL is what the client asked for, where the carrier has one (WebTransport, WebSocket): path, query
	// and authority. Nil on others. It may hold credentials: never log it.
	URL        *url.URL
	ServerName string // TLS SNI, may be empty
	Remote     net.Addr
	Local      net.Addr
	// PeerCertificates is the verified chain of the peer, leaf first; empty without one.
	PeerCertificates []*x509.Certificate
}

// Stats is a snapshot of a connection's counters.
type Stats struct {
	RTT              time.Duration // smoothed; 0 before the first sample
	MinRTT           time.Duration
	CongestionWindow uint64 // bytes; 0 = unknown
	BytesSent        uint64
	BytesReceived    uint64
	PacketsSent      uint64
	PacketsReceived  uint64
	PacketsLost      uint64
}
