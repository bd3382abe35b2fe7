package endpoint

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// QUIC holds the QUIC settings of a socket. Zero fields take the defaults.
type QUIC struct {
	// IdleTimeout ends a connection on which nothing arrives (10 s). The smaller value of both ends
	// counts, but quic-go takes a peer's value below 5 s for 5 s.
	IdleTimeout time.Duration
	// KeepAlive is the interval of pings on a quiet connection (3 s; negative: none). It is capped at
	// half the idle timeout.
	KeepAlive time.Duration
	// MaxStreams is how many bidirectional, and as many unidirectional, streams a peer may have open
	// (10000).
	MaxStreams int64
	// ReceiveWindow and StreamReceiveWindow bound what a peer may send ahead of our reading, in bytes
	// (64 MiB and 8 MiB).
	ReceiveWindow, StreamReceiveWindow uint64
}

// Config is what Listen takes. TLS and Protocols are required.
type Config struct {
	// Addr is the UDP address to bind, host:port. Unused if PacketConn is set.
	Addr string
	// PacketConn is the socket to use. The listener owns it from then on, also if Listen fails.
	PacketConn net.PacketConn

	// TLS supplies the certificates, see tlsconf.Store.Server. Its NextProtos is ignored.
	TLS *tls.Config
	// Protocols are the MoQ tokens to offer, preferred first: the ALPN list of raw QUIC (where our
	// order decides) and the sub-protocols of WebTransport (where the client's does).
	Protocols []string
	// PlainCodes tells for which tokens stream codes go unmapped on raw QUIC, which is so for
	// moq-transport. Nil maps them for every token, as moq-lite wants (moq-lite 7.3).
	PlainCodes func(protocol string) bool
	// Handler answers HTTP/3 requests that are no WebTransport CONNECT; nil answers 404.
	Handler http.Handler

	// Timeout bounds a handshake from the first packet to the accepted connection, HTTP headers
	// included (10 s; negative: no limit but QUIC's own 10 s).
	Timeout time.Duration
	// Backlog is how many accepted connections wait for Accept (128). A connection that finds the
	// queue full waits within its Timeout and is then closed.
	Backlog int
	// MaxPending is how many connections may be in their handshake at once (10000); more are refused
	// on their first packet.
	MaxPending int
	// MaxPerAddr is how many connections one IPv4 address or IPv6 /64 may have (10000; negative: no
	// limit). More are refused on their first packet. The number is generous because whole companies
	// and carriers sit behind one address.
	MaxPerAddr int
	// Exempt names addresses that MaxPerAddr does not apply to. Nil exempts loopback addresses. The
	// address may be spoofed at this point.
	Exempt func(netip.Addr) bool
	// Pace, if there is one, is asked before the expensive part of each handshake: it waits for its turn, or fails, and
	// the handshake with it. Its ctx ends with the handshake's time, and with the listener.
	Pace func(ctx context.Context) error
	// VerifyRate is how many handshakes a second are taken without validating the client's address
	// first, which costs a round trip (200; negative: always validate).
	VerifyRate int

	QUIC   QUIC
	Keys   *Keys // nil: random, and no stateless resets
	Logger *slog.Logger
}

// Resolver looks up host names; *net.Resolver is one. network is "ip4" or "ip6".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DialConfig is what NewDialer takes. Protocols is required.
type DialConfig struct {
	// Socket is shared with a listener or another dialer, who closes it. Nil opens one on Addr (or
	// PacketConn), which the dialer closes.
	Socket *Socket
	// Addr is the local UDP address, host:port ("[::]:0").
	Addr string
	// PacketConn is used instead of binding Addr; the dialer owns it, also if NewDialer fails.
	PacketConn net.PacketConn

	TLS        tlsconf.ClientConfig
	Protocols  []string                   // MoQ tokens to offer, preferred first
	PlainCodes func(protocol string) bool // as in Config

	// Race is the head start of one address before the next is tried too (250 ms).
	Race time.Duration
	// ResolutionDelay is how long IPv4 addresses wait for the answer about IPv6 ones (50 ms).
	ResolutionDelay time.Duration
	// Timeout bounds a whole dial (30 s; negative: only the caller's context does).
	Timeout time.Duration
	// Resolver is net.DefaultResolver if nil.
	Resolver Resolver
	// HTTP fetches /certificate.sha256 for http:// URLs; nil uses a plain client without proxy.
	HTTP *http.Client

	// Congestion is the congestion control of TCP connections, as the system calls it; empty leaves it to the system. If
	// the system does not have it, that is logged once.
	Congestion string

	QUIC   QUIC
	Logger *slog.Logger
}

// Target is one thing to dial. Only URL is required.
type Target struct {
	// URL has the scheme moqt or moql (raw QUIC), https (WebTransport), wss or ws (qmux over WebSocket, with TLS and
	// without) or http (for development: fetches /certificate.sha256 over TCP, pins it and dials WebTransport). Port
	// 443 is the default, with ws 80.
	// On raw QUIC path and query are not sent: they belong into the SETUP of the protocol.
	URL *url.URL
	// Addrs are tried, in this order, instead of what the host resolves to.
	Addrs []netip.AddrPort
	// Fingerprints replaces the dialer's pins, if not empty. They hold even where the dialer trusts everybody.
	Fingerprints []tlsconf.Fingerprint
	// Protocols replaces the dialer's, if not empty.
	Protocols []string
	// ServerName replaces the dialer's, if not empty.
	ServerName string
	// KeepAlive replaces the dialer's interval, if not zero.
	KeepAlive time.Duration
	// Confirm, if set, has the last word on each candidate: the first connection for which it
	// returns nil wins the race. It runs on its own goroutine, at most once at a time per address,
	// and may run for several addresses at once. ctx ends when another address has won.
	Confirm func(ctx context.Context, conn transport.Conn) error
}
