package relay

import (
	"log/slog"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/internal/overload"
	"github.com/moqmesh/moqmesh/lan"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Config is what New takes. Auth and one kind of certificate are required; the rest has defaults.
type Config struct {
	// Hop is our id in hop lists, below 2^62; 0 = random and below 2^53 (R1).
	Hop route.Hop
	// MaxHops is the hop cap (R4); 0 = 32.
	MaxHops int
	// Node is our own address as operators see it; may be empty.
	Node string
	// Self is our own address as peers know it: lists may name it, and it is not dialed. May be zero.
	Self cluster.Node

	// Listen is the QUIC listener. TLS and Protocols are filled in here.
	Listen endpoint.Config
	// Certificates are served on it.
	Certificates tlsconf.Config
	// Versions are the moq-lite versions that are accepted; nil = all.
	Versions []message.Version
	// Handshake bounds what comes before admission, SETUP included; 0 = 10 s.
	Handshake time.Duration

	// Dial is how peers are dialed. Protocols is filled in here.
	Dial endpoint.DialConfig
	// DialVersions are offered to peers; nil = all.
	DialVersions []message.Version
	// Peers are dialed and kept.
	Peers []cluster.Entry
	// PeerList names more of them, and is followed (C15). May be zero.
	PeerList peerlist.Source
	// LAN finds more of them on the local network.
	LAN LAN
	// Cluster shapes the dial loops. Dial is filled in here.
	Cluster cluster.Config
	// Hedge is the shortest silence of a track after which it is asked for elsewhere too (H2); 0 = never. Peers that we
	// dial are then pinged twice as often.
	Hedge time.Duration
	// Congestion is the congestion control of peer sessions that run over TCP, of those that we dial and of those that are
	// accepted; empty leaves it to the system. Where the system does not have it, that is logged once.
	Congestion string
	// PeerTier labels the statistics of sessions that we dialed.
	PeerTier string

	// Limits bound what one session can make the relay hold. Those of connections are in Listen.
	Limits lite.Limits
	// AnnounceRate bounds how often a second one session may change what it announces, see origin.Config; 0 = 1000.
	AnnounceRate int

	// Auth admits everybody else. Where it is an auth.Leaser it is asked again about sessions, and told of their ends;
	// if it has a method Close() the relay calls it in the end.
	Auth  auth.Authorizer
	Lease Lease

	// ClientRoots signed the certificates that clients may present on the QUIC listener; nil = none is asked for.
	ClientRoots *tlsconf.Roots

	Web Web
	// Internal is the TCP address of the operators' listener; empty = none. It has no authentication.
	Internal string

	Cache media.CacheConfig
	// Stats are broadcasts about the relay itself.
	Stats Stats

	// CacheHeadroom is memory to keep free, in bytes: the cache shrinks for it; 0 = the cache takes what it may.
	CacheHeadroom int64

	// Memory is how much the process may use, in bytes: near it the cache shrinks, then new clients are refused; 0 = no
	// limit.
	Memory int64
	// Lateness is how long goroutines may wait for a core before the relay counts as overloaded: new clients are then
	// refused, and readers that are furthest behind skip. From a quarter of it on, joining is slowed down. 0 = never.
	Lateness time.Duration

	Logger *slog.Logger // nil discards

	fileLimit uint64 // descriptors that the process may have; tests set it
}

// LAN is the discovery of peers on the local network. The zero value is none.
type LAN struct {
	Enabled bool
	App     string      // empty = lan.DefaultApp
	Secret  *lan.Secret // nil = whoever can reach the listener may join
	// Node is the address to advertise, see lan.Config. It may be empty if the certificate of the listener is generated.
	Node string
}

// Web are the public HTTP listeners; an empty address means none.
type Web struct {
	HTTP  string
	HTTPS string
	// Certificates are served on HTTPS.
	Certificates tlsconf.Config
	// ClientRoots is as that of the QUIC listener, for HTTPS.
	ClientRoots *tlsconf.Roots
	// NoWebSocket refuses sessions over WebSocket, which both listeners take otherwise.
	NoWebSocket bool
}

const defaultHandshake = 10 * time.Second

func (c Config) normal() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Handshake == 0 {
		c.Handshake = defaultHandshake
	}
	if c.fileLimit == 0 {
		c.fileLimit = overload.FileLimit()
	}
	if c.MaxHops == 0 {
		c.MaxHops = route.MaxHops
	}
	if c.Listen.Logger == nil {
		c.Listen.Logger = c.Logger
	}
	if c.Dial.Logger == nil {
		c.Dial.Logger = c.Logger
	}
	if c.Cluster.Logger == nil {
		c.Cluster.Logger = c.Logger
	}
	if c.Certificates.Logger == nil {
		c.Certificates.Logger = c.Logger
	}
	if c.Web.Certificates.Logger == nil {
		c.Web.Certificates.Logger = c.Logger
	}
	return c
}
