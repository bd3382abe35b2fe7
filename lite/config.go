package lite

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// Config configures a session. The zero value works.
type Config struct {
	// Hop is our own id, sent in SETUP, ANNOUNCE_OK and ANNOUNCE_REQUEST; 0 = we name none.
	Hop route.Hop
	// Versions are those we are willing to speak; empty = all.
	Versions []message.Version
	// Logger gets what goes wrong on the session; nil = nothing is logged.
	Logger *slog.Logger
	// Counters are written by the session; nil = the session has its own.
	Counters *session.Counters
	Limits   Limits
	// Limited counts what Limits turned away; nil = nobody counts.
	Limited *Limited

	// HandshakeTimeout is how long a handshake may take, and how long requests wait for the peer's SETUP where
	// they need it; 0 = 10 s.
	HandshakeTimeout time.Duration
	// RequestTimeout is how long a peer may take to complete the first message of a stream, and to answer a
	// request of ours that must be answered: TRACK, FETCH (its first byte) and, on 01 to 04, SUBSCRIBE;
	// 0 = 10 s.
	RequestTimeout time.Duration

	// Role, Path and Price go into the SETUP of a session that we dialed (05 and later).
	Role message.Role
	// Path is path[?query] as in the dialed URL. It is sent only where the connection has no URL of its own, and
	// never logged.
	Path string
	// Price is the price of the link that we declare; nil = none.
	Price *uint64
}

// Limits bound what one peer can make us hold. Zero fields have defaults.
type Limits struct {
	// Announcements is the most live advertisements of the peer, all streams together; default 100000. One
	// more ends the session.
	Announcements int
	// AnnounceStreams is the most ANNOUNCE streams that are served at the same time; default 1024.
	AnnounceStreams int
	// Subscriptions is the most subscriptions that are open at the same time, in each direction; default 10000.
	Subscriptions int
	// Groups is the most group streams of one served subscription that are open at the same time; default 64. If
	// one more is due, the lowest ranked one gives way.
	Groups int
	// Backlog is how many of them may be taken up while they are not the newest; default 32.
	Backlog int
	// IncomingGroups is the most group streams of one subscription of ours that are open at the same time;
	// default 2048, so that minutes of one-frame groups may arrive at once. The lowest sequence gives way.
	IncomingGroups int
	// Pending is the most streams of each kind whose first message is not complete; default 256. More wait
	// to be accepted.
	Pending int
	// RequestBytes is the longest body of a message that opens a stream, and of SUBSCRIBE_UPDATE; default 64 KiB.
	// (The wire allows 64 MiB.)
	RequestBytes int
	// Metadata is the most memory for names that the peer makes us hold, in bytes: what it announces, listens to and
	// subscribes to, each with a fixed share for the record of it; default 32 MiB. An announcement beyond it ends the
	// session, a request is refused.
	Metadata int64
	// FrameBytes is the most memory for frames that have arrived in part, all groups of the session together;
	// default 128 MiB. A group that needs more is stopped.
	FrameBytes int64
}

// Limited counts what was turned away, by limit. Many sessions may share one.
type Limited struct{ Announcements, AnnounceStreams, Subscriptions, Metadata, Frames atomic.Uint64 }

// recordBytes is the share of Limits.Metadata that each announcement, announce stream and subscription takes beside its
// names.
const recordBytes = 128

// holdNames takes memory for names of the peer. It reports false if there is not enough left.
func (s *Session) holdNames(n int) bool {
	if s.names.Add(int64(n)+recordBytes) <= s.cfg.Limits.Metadata {
		return true
	}
	s.dropNames(n)
	s.cfg.Limited.Metadata.Add(1)
	return false
}

func (s *Session) dropNames(n int) { s.names.Add(-int64(n) - recordBytes) }

// maxUpfront is the most memory that declared frame sizes alone make a session allocate; beyond it buffers grow as
// bytes arrive. The protocol allows 16 MiB (moq-lite 10), which a few bytes of many sessions would turn into gigabytes.
const maxUpfront = 1 << 20

const defaultTimeout = 10 * time.Second

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Counters == nil {
		c.Counters = new(session.Counters)
	}
	if c.Limited == nil {
		c.Limited = new(Limited)
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = defaultTimeout
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = defaultTimeout
	}
	c.Limits = c.Limits.withDefaults()
	return c
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.Announcements, 100000},
		{&l.AnnounceStreams, 1024},
		{&l.Subscriptions, 10000},
		{&l.Groups, 64},
		{&l.Backlog, 32},
		{&l.IncomingGroups, 2048},
		{&l.Pending, 256},
		{&l.RequestBytes, 64 << 10},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	if l.Metadata == 0 {
		l.Metadata = 32 << 20
	}
	if l.FrameBytes == 0 {
		l.FrameBytes = 128 << 20
	}
	return l
}

// allows reports whether v may be spoken.
func (c *Config) allows(v message.Version) bool {
	return len(c.Versions) == 0 || slices.Contains(c.Versions, v)
}
