package cluster

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/internal/backoff"
)

// Defaults of Config.
const (
	DefaultTimeout  = 30 * time.Second // one dial with its handshakes (C11)
	DefaultHandover = 10 * time.Second // how long a session serves beside its successor (C12)
	// GoodSession is how long a session must last to reset the back-off (C10).
	GoodSession = 10 * time.Second
)

// Session is one established session with a peer, as the dial function returns it.
type Session interface {
	// Serve runs the session. It returns why the session ended, after everything it started has ended too. When ctx
	// ends it closes the session and returns soon. It is called once, always.
	Serve(ctx context.Context) error
	// Goaway delivers the URI of the peer's GOAWAY, once at most; it may be empty. A nil channel never does.
	Goaway() <-chan string
	// ID is the number of the session in log lines and pages.
	ID() uint64
}

// DialFunc establishes a session: connection, version, SETUP. It must honour ctx, which ends with the dial's time and
// must not bound the session. Errors may wrap ErrRefused or ErrSelf. The entry's URL holds the credential to use.
type DialFunc func(ctx context.Context, e Entry) (Session, error)

// Config of a Cluster. Only Dial is required.
type Config struct {
	Dial DialFunc
	// Token is the shared credential; nil = none.
	Token *TokenFile
	// Backoff shapes the pauses between dials of one peer; the zero value is 1 s doubling to 30 s.
	Backoff  backoff.Policy
	Timeout  time.Duration // of one dial; 0 = DefaultTimeout
	Redirect Redirect      // which GOAWAY URIs are followed
	Handover time.Duration // 0 = DefaultHandover
	Logger   *slog.Logger  // nil discards
	// Rand returns a uniform number in [0, 1) and may be called concurrently; nil = math/rand/v2.
	Rand func() float64
}

func (c Config) normal() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Handover == 0 {
		c.Handover = DefaultHandover
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// Cluster dials the peers that its sources name, each in a loop of its own. Its methods may be called concurrently.
type Cluster struct {
	cfg      Config
	counters counters
	loops    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	peers  Peers
	dials  map[string]*dial // by key
}

// counters outlive the peers they count.
type counters struct{ dials, failures atomic.Uint64 }

// Counters are totals since the start.
type Counters struct {
	Dials    uint64 // attempts
	Failures uint64 // attempts that led to no session
}

// New returns a Cluster without peers.
func New(cfg Config) *Cluster {
	return &Cluster{cfg: cfg.normal(), dials: make(map[string]*dial)}
}

// Set replaces the list of one source: new peers are dialed at once, changed ones dropped and dialed anew, missing
// ones dropped (see Peers). It does not wait for any of it. After Close it does nothing.
func (c *Cluster) Set(src Source, entries []Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	for _, a := range c.peers.Set(src, entries) {
		if d := c.dials[a.Key]; d != nil {
			d.cancel()
			delete(c.dials, a.Key)
		}
		if a.Kind != ActionDrop {
			c.start(a.Entry)
		}
	}
}

// start begins the dial loop of an entry. c.mu is held.
func (c *Cluster) start(e Entry) {
	ctx, cancel := context.WithCancel(context.Background())
	d := &dial{
		cfg: &c.cfg, counters: &c.counters, entry: e, cancel: cancel,
		log:   c.cfg.Logger.With("peer", e.Name()),
		pause: backoff.New(c.cfg.Backoff, c.cfg.Rand),
		state: Status{Key: e.key, Name: e.Name(), Cost: e.effectiveCost(), State: StateDialing, Since: time.Now()},
	}
	c.dials[e.key] = d
	c.loops.Go(func() {
		defer cancel()
		d.run(ctx)
	})
}

// Close ends every dial and session and returns when the last has ended.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	for _, d := range c.dials {
		d.cancel()
	}
	c.mu.Unlock()
	c.loops.Wait()
}

// Status describes every peer, ordered by key.
func (c *Cluster) Status() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Status, 0, len(c.dials))
	for _, key := range slices.Sorted(maps.Keys(c.dials)) {
		s := c.dials[key].status()
		s.Source, _ = c.peers.Active(key)
		out = append(out, s)
	}
	return out
}

// Counters returns the totals over all peers, also those that are gone.
func (c *Cluster) Counters() Counters {
	return Counters{Dials: c.counters.dials.Load(), Failures: c.counters.failures.Load()}
}
