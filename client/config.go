package client

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Version is a version of moq-lite.
type Version = message.Version

// ParseVersion knows the versions as lite-05, moq-lite-05 or 05.
func ParseVersion(name string) (Version, error) {
	number := strings.TrimPrefix(strings.TrimPrefix(name, "moq-"), "lite-")
	for v := message.Lite01; v <= message.Lite06; v++ {
		if v.String() == "moq-lite-"+number {
			return v, nil
		}
	}
	return 0, fmt.Errorf("unknown version %q: lite-01 to lite-06", name)
}

// Role says which directions a client will use; a relay may refuse early what its grant does not allow, and leaves out
// what is of no use to the role.
type Role = message.Role

// Roles. The zero value uses both directions.
const (
	RoleBoth       = message.RoleBoth
	RolePublisher  = message.RolePublisher
	RoleSubscriber = message.RoleSubscriber
)

// ParseFingerprint reads the SHA-256 of a certificate: 64 hex digits.
func ParseFingerprint(s string) (tlsconf.Fingerprint, error) { return tlsconf.ParseFingerprint(s) }

// DefaultCacheBytes bounds what a client holds of media, published and subscribed.
const DefaultCacheBytes = 256 << 20

// Config of a client. The zero value works.
type Config struct {
	// Versions may be spoken; nil allows all.
	Versions []Version
	// Role is told to the relay.
	Role Role
	// Hop is the identity of this client as a publisher: the first hop of what it announces. 0 picks a random one. Two
	// clients with the same hop that publish the same path count as one publisher (routing prefers the newer).
	Hop route.Hop
	// Price is what the link to the relay costs, told to it; nil leaves it at 1.
	Price *uint64

	// TLS says which servers are trusted; the zero value trusts the system's roots.
	TLS tlsconf.ClientConfig
	// QUIC settings; zero fields take the defaults.
	QUIC endpoint.QUIC
	// Dialer is used, and left open, if set: many clients can share one socket. TLS and QUIC are then the dialer's.
	Dialer *endpoint.Dialer
	// DialTimeout bounds Dial, the MoQ handshake included (10 s).
	DialTimeout time.Duration

	// CacheBytes bounds the media that is held (DefaultCacheBytes); beyond it the oldest groups go.
	CacheBytes int64
	// Logger gets a line when the session starts and one when it ends; nil logs nothing. It never sees paths or
	// queries of URLs.
	Logger *slog.Logger
}

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	if c.Hop == 0 {
		c.Hop = randomHop()
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// randomHop is between 1 and 2^53-1: browsers read hops as doubles.
func randomHop() route.Hop {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if hop := binary.BigEndian.Uint64(b[:]) >> 11; hop != 0 {
			return route.Hop(hop)
		}
	}
}
