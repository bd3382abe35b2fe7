// Package config reads the settings of a relay: a TOML file, environment variables and command line flags become one
// checked [Config]. Whatever is set but wrong, misspelled or not supported is refused by name and place; nothing is
// ignored in silence.
//
// One table of keys drives the parsers, the help text, the example file and the reference page.
package config

import (
	"log/slog"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/internal/backoff"
	"github.com/moqmesh/moqmesh/lite/message"
)

// Config is a checked configuration. It holds no secrets apart from the credentials in Cluster.Peers and in
// addresses of type Secret, which do not print.
type Config struct {
	Listen   Listen
	Connect  Connect
	QUIC     QUIC
	Cluster  Cluster
	Auth     Auth
	Web      Web
	Limits   Limits
	Internal Internal
	Stats    Stats
	Cache    Cache
	Log      Log
	// DrainTimeout is the time given to sessions after the first signal; 0 = none, they are closed at once.
	DrainTimeout time.Duration

	// Warnings are lines to log once at the start: settings that are accepted without effect, or unwise.
	Warnings []string
}

// Listen is the QUIC listener.
type Listen struct {
	Bind     string            // host:port of the UDP socket
	Versions []message.Version // accepted, newest first; never empty
	Timeout  time.Duration     // from the first packet to an admitted session, and for HTTP headers; 0 = no limit
	TLS      ServerTLS
}

// ServerTLS are the certificates of a listener.
type ServerTLS struct {
	Pairs    []CertPair
	Generate []string // host names of a self-signed certificate; empty = none
	Roots    []string // PEM files of the authorities of client certificates; empty = none are asked for
}

// CertPair names the PEM files of one certificate.
type CertPair struct{ Cert, Key string }

// Connect is how peers are dialed.
type Connect struct {
	Bind             string            // local address of the UDP socket
	Race             time.Duration     // between the starts of dials to the addresses of one host
	ResolutionDelay  time.Duration     // how long a first answer of DNS waits for the other family
	Timeout          time.Duration     // of one dial with all its handshakes
	Versions         []message.Version // offered, newest first; never empty
	Backoff          Backoff
	Redirect         cluster.Redirect
	HandoverDuration time.Duration // how long a session serves beside its successor
	TLS              ClientTLS
}

// Backoff shapes the pauses between dials of one peer (C10): their ceilings grow from Initial by Multiplier, stay within
// Max for Timeout after the loss, and then grow on to backoff.DefaultMax.
type Backoff struct {
	Initial    time.Duration
	Multiplier float64
	Max        time.Duration
	Timeout    time.Duration // 0 = Max bounds nothing
}

func (b Backoff) policy() backoff.Policy {
	return backoff.Policy{
		Initial: b.Initial, Multiplier: b.Multiplier, Max: max(b.Max, backoff.DefaultMax), Early: b.Max, For: b.Timeout,
	}
}

// ClientTLS says whom a dial trusts and what it presents.
type ClientTLS struct {
	Roots        []string // PEM files
	SystemRoots  bool     // trust the system's roots, beside Roots
	Fingerprints []string // SHA-256 of leaf certificates, 64 lower-case hex digits; these bypass the chain
	Cert, Key    string   // PEM files of a client certificate; both or none
	Insecure     bool     // trust everybody
	HostName     string   // expected instead of the dialed host; empty = the dialed host
}

// QUIC are the settings of every connection, accepted or dialed.
type QUIC struct {
	IdleTimeout         time.Duration
	KeepAlive           time.Duration // 0 = off
	MaxStreams          int64         // of each kind, in each direction
	ReceiveWindow       uint64        // bytes per connection
	StreamReceiveWindow uint64        // bytes per stream; 0 = the library's default
}

// Cluster is who we are among relays, and whom we dial.
type Cluster struct {
	ID        uint64 // our hop id; 0 = random at each start
	MaxHops   int
	Node      cluster.Node       // our own address; may be zero
	Peers     []cluster.Entry    // from cluster.connect, without ourselves
	PeerList  peerlist.Source    // cluster.connect_api; may be zero
	TokenFile *cluster.TokenFile // read once already; nil = none
	LAN       LAN                // discovery of peers on the local network
	Tier      string             // label of peer sessions in statistics
	// Congestion is the congestion control of peer sessions over WebSocket; empty = the system's.
	Congestion string
	Hedge      time.Duration // shortest silence after which a track is asked for elsewhere too; 0 = off
}

// Web are the public HTTP listeners.
type Web struct {
	HTTPListen  string // TCP host:port; empty = off
	HTTPSListen string // TCP host:port; empty = off
	HTTPSPairs  []CertPair
	HTTPSRoots  []string // as ServerTLS.Roots
	WebSocket   bool     // sessions over WebSocket are taken
}

// Internal is the listener for operators.
type Internal struct {
	Listen string // TCP host:port; empty = off
}

// Stats are broadcasts about the relay itself.
type Stats struct {
	Enabled  bool
	Prefix   string        // normalized
	Interval time.Duration // at least a second
	Node     string        // normalized; may be empty
	Depth    int           // leading segments that make a group
	Linger   time.Duration
}

// Cache bounds what is kept of tracks.
type Cache struct {
	Capacity Capacity
	Headroom uint64        // bytes of memory to keep free; 0 = none
	Idle     time.Duration // how long a group nobody reads is kept
	MaxAge   time.Duration // cap on the retention window of every track; 0 = none
}

// Log says what is logged.
type Log struct {
	Level slog.Level // LevelTrace to slog.LevelError
}

// LevelTrace is below slog.LevelDebug.
const LevelTrace = slog.Level(-8)
