package origin

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// Defaults of Config.
const (
	DefaultRequestTimeout = 10 * time.Second
	DefaultIdleTimeout    = 10 * time.Second
	DefaultAdverts        = 100_000
	DefaultFeeds          = 1000
	DefaultTracks         = 1 << 16
)

// Limits that keep what peers choose in bounds.
const (
	maxIdleFronts = 10_000 // fronts that only remember properties
	maxProperties = 4096   // tracks whose properties a front remembers
	maxFetches    = 1024   // upstream fetches of one track
	inboxSize     = 256
)

// Config of an Origin. The zero value works.
type Config struct {
	// Hop is our own identity (R1); 0 = random.
	Hop route.Hop
	// MaxHops caps hop lists (R4); 0 = 32.
	MaxHops int
	// Quarantine delays a worse route of the same publisher for 2 s after a retraction (R35).
	Quarantine bool
	// Cache holds the content; nil = an unbounded one. It has a single user; the origin sweeps it.
	Cache *media.Cache
	// Limits: advertisements and announce streams of one session, tracks in all; 0 = the default.
	Adverts, Feeds, Tracks int
	// AnnounceRate is how often a second one session may change what it announces, without what makes it announce more
	// than ever before, and after ten seconds' worth at once; what comes faster waits. A relay of the cluster may ten times
	// as often, what is published in this process always. 0 = 1000.
	AnnounceRate int
	// Linger is how long a track stays after its last reader (F16); 0 = 30 s.
	Linger time.Duration
	// RequestTimeout bounds what is asked of a peer, and what is asked of us; 0 = 10 s.
	RequestTimeout time.Duration
	// Hedge is the shortest silence of a track after which it is asked for elsewhere too (H2); 0 = never.
	Hedge time.Duration
	// IdleTimeout is how long a silent session lives; 0 = 10 s.
	IdleTimeout time.Duration
	Logger      *slog.Logger // nil discards
	// Random returns 64 random bits; nil = a good generator. Ids are made from it.
	Random func() uint64
}

func (cfg *Config) fill() {
	if cfg.Random == nil {
		cfg.Random = rand.Uint64
	}
	if cfg.Hop == 0 {
		cfg.Hop = randomHop(cfg.Random)
	}
	if cfg.Cache == nil {
		cfg.Cache = media.NewCache(media.CacheConfig{})
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Adverts = orDefault(cfg.Adverts, DefaultAdverts)
	cfg.Feeds = orDefault(cfg.Feeds, DefaultFeeds)
	cfg.Tracks = orDefault(cfg.Tracks, DefaultTracks)
	cfg.AnnounceRate = orDefault(cfg.AnnounceRate, DefaultAnnounceRate)
	cfg.Linger = orDefault(cfg.Linger, media.Linger)
	cfg.IdleTimeout = orDefault(cfg.IdleTimeout, DefaultIdleTimeout)
	cfg.RequestTimeout = orDefault(cfg.RequestTimeout, DefaultRequestTimeout)
}

func orDefault[T int | time.Duration](v, def T) T {
	if v > 0 {
		return v
	}
	return def
}

// randomHop returns an id that browsers can decode too (R1).
func randomHop(random func() uint64) route.Hop {
	for {
		if h := route.Hop(random() & (1<<53 - 1)); h != 0 {
			return h
		}
	}
}

// Origin is the live set of one relay. Its methods may be called concurrently.
type Origin struct {
	cfg      Config
	log      *slog.Logger
	maxAge   time.Duration // the cache's cap on retention windows
	inbox    chan message
	done     chan struct{} // the owner has ended
	counters counters
	heard    atomic.Pointer[[]*Session] // peers to listen to
}

// New starts an Origin. Close ends it.
func New(cfg Config) *Origin {
	cfg.fill()
	o := &Origin{
		cfg:    cfg,
		log:    cfg.Logger,
		maxAge: retentionCap(cfg.Cache),
		inbox:  make(chan message, inboxSize),
		done:   make(chan struct{}),
	}
	go newOwner(o).run()
	return o
}

// retentionCap asks the cache what it makes of an unlimited window.
func retentionCap(c *media.Cache) time.Duration {
	t := c.NewTrack(media.Info{MaxAge: media.Unlimited, Timescale: media.DefaultTimescale})
	defer t.Close(media.ErrCancelled)
	return t.Info().MaxAge
}

// Hop is our own identity.
func (o *Origin) Hop() route.Hop { return o.cfg.Hop }

// Close ends all tracks and feeds and returns when every goroutine of the origin has ended. Sessions are not closed, but
// have no host any more: what they ask fails with net.ErrClosed. It may be called twice.
func (o *Origin) Close() {
	_ = o.send(shutdown{}) // it may be closed already
	<-o.done
}

// message is what the owner goroutine is told. It has a method of its own per type.
type message interface{ handle(*owner) }

// send gives the owner a message; it waits for room in the inbox, which the owner always makes.
func (o *Origin) send(m message) error {
	select {
	case <-o.done:
		return net.ErrClosed
	default:
	}
	select {
	case o.inbox <- m:
		return nil
	case <-o.done:
		return net.ErrClosed
	}
}

// call sends a message that has a reply, and waits for it.
func call[T any](o *Origin, reply chan T, m message) (T, error) {
	var none T
	if err := o.send(m); err != nil {
		return none, err
	}
	select {
	case v := <-reply:
		return v, nil
	case <-o.done:
		return none, net.ErrClosed
	}
}
