package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/internal/memory"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// Limits bound what strangers can make the relay do and hold. Media in memory is bounded by Cache.
type Limits struct {
	Handshakes         uint64 // under way at the same time
	SessionsPerAddress uint64 // of one IPv4 address or IPv6 /64
	Lateness           time.Duration
	Memory             Capacity // of the process
	// The rest is per session.
	Announcements   uint64
	AnnounceRate    uint64 // changes a second
	AnnounceStreams uint64
	Subscriptions   uint64 // in each direction
	Metadata        uint64 // bytes of names
	Frames          uint64 // bytes of frames that have arrived in part
}

// mostLimit keeps limits within what counters hold.
const mostLimit = 1 << 30

var limitKeys = []*key{
	newKey("limits.handshakes", numberKind, about{
		def: "10000",
		doc: "Connections that may be in their handshake at the same time. More are refused on their first packet.",
	}, func(d *draft) *uint64 { return &d.Limits.Handshakes }, between(uint64(1), mostLimit)),
	newKey("limits.sessions_per_address", numberKind, about{
		def: "10000",
		doc: "Connections from one IPv4 address, or IPv6 network of 64 bits; loopback addresses are free. More are refused on their first packet. Whole companies and carriers sit behind one address.",
	}, func(d *draft) *uint64 { return &d.Limits.SessionsPerAddress }, between(uint64(1), mostLimit)),
	newKey("limits.lateness", durationKind, about{
		def: `"100ms"`,
		doc: "How long nine in ten of the relay's goroutines, or all of it, may have to wait for a core before it counts as overloaded, which takes two seconds of it: new clients are then refused, and readers that are furthest behind skip groups. From a quarter of it on, new connections have to wait for their turn. `0s` = never.",
	}, func(d *draft) *time.Duration { return &d.Limits.Lateness }),
	newKey("limits.memory", capacityKind, about{
		def: `"85%"`,
		doc: "Most memory for this process: a size, or a part of what it may use. The garbage collector keeps to it as long as it can, unless GOMEMLIMIT is set. From 80% of it on the cache shrinks; when 90% are taken without the cache, new clients are refused until it is less than 85%.",
	}, func(d *draft) *Capacity { return &d.Limits.Memory }),
	newKey("limits.announcements", numberKind, about{
		def: "100000",
		doc: "Live announcements of one session. One more ends it.",
	}, func(d *draft) *uint64 { return &d.Limits.Announcements }, between(uint64(1), mostLimit)),
	newKey("limits.announce_rate", numberKind, about{
		def: "1000",
		doc: "Changes a second of what one session announces, after ten seconds' worth at once; a relay of the cluster may ten times as many. More wait. Withdrawals do not count, nor what makes a session announce more than ever before.",
	}, func(d *draft) *uint64 { return &d.Limits.AnnounceRate }, between(uint64(1), 1_000_000)),
	newKey("limits.announce_streams", numberKind, about{
		def: "1000",
		doc: "Prefixes that one session may follow at the same time. More are refused.",
	}, func(d *draft) *uint64 { return &d.Limits.AnnounceStreams }, between(uint64(1), mostLimit)),
	newKey("limits.subscriptions", numberKind, about{
		def: "10000",
		doc: "Subscriptions of one session at the same time, in each direction. More are refused.",
	}, func(d *draft) *uint64 { return &d.Limits.Subscriptions }, between(uint64(1), mostLimit)),
	newKey("limits.metadata", sizeKind, about{
		def: `"32MiB"`,
		doc: "Memory for names that one session announces, follows and subscribes to, with 128 bytes on top of each. An announcement beyond it ends the session, a request is refused.",
	}, func(d *draft) *uint64 { return &d.Limits.Metadata }, between(uint64(1<<10), 1<<40)),
	newKey("limits.frames", sizeKind, about{
		def: `"128MiB"`,
		doc: "Memory for frames of one session that have arrived in part. A group that needs more is given up.",
	}, func(d *draft) *uint64 { return &d.Limits.Frames }, between(uint64(1<<16), 1<<40)),
}

// session are the limits of one session.
func (l Limits) session() lite.Limits {
	return lite.Limits{
		Announcements: int(l.Announcements), AnnounceStreams: int(l.AnnounceStreams), Subscriptions: int(l.Subscriptions),
		Metadata: int64(l.Metadata), FrameBytes: int64(l.Frames),
	}
}

// listener puts the limits of connections into the settings of the listener.
func (l Limits) listener(c endpoint.Config) endpoint.Config {
	c.MaxPending, c.MaxPerAddr = int(l.Handshakes), int(l.SessionsPerAddress)
	return c
}

// memory is the limit of the process in bytes. Where it is a part of a memory that is unknown, there is none.
func (l Limits) memory() (int64, error) {
	limit, err := l.Memory.Resolve()
	switch {
	case errors.Is(err, memory.ErrUnknown):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("limits.memory: %w", err)
	}
	return limit, nil
}
