package relay

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
)

// protocol is a MoQ session, whatever protocol it speaks, as far as the relay must steer it.
type protocol interface {
	session.Upstream
	Goaway(uri string)
	Close(code uint32, reason string)
	Counters() *session.Counters
}

// live is one established session.
type live struct {
	protocol
	id      uint64
	tier    string // guarded by the registry
	dialed  bool
	peer    bool // of the cluster
	lan     bool // came in by LAN discovery
	version message.Version
	kind    string // of the carrier
	remote  string
	local   string
	name    string // SNI
	alpn    string
	path    string
	role    string
	node    string         // key of the peer, if dialed
	lease   *lease.Lease   // nil if dialed
	tls     *auth.Identity // the client certificate; nil = none
	started time.Time
}

// registry knows the established sessions and their totals.
type registry struct {
	mu       sync.Mutex
	byID     map[uint64]*live
	totals   map[string]*totals // of ended sessions, by tier
	draining bool
	none     chan struct{} // closed while draining with no session left
}

func (g *registry) init() {
	g.byID = make(map[uint64]*live)
	g.totals = make(map[string]*totals)
	g.none = make(chan struct{})
}

// add takes a session in. If the relay drains, the session is told to go.
func (g *registry) add(s *live) {
	g.mu.Lock()
	g.byID[s.id] = s
	s.tier = g.label(s.tier)
	g.tier(s.tier).opened++
	draining := g.draining
	g.mu.Unlock()
	if draining {
		s.Goaway("")
	}
}

// remove forgets a session and keeps its totals.
func (g *registry) remove(s *live) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byID, s.id)
	t := g.tier(s.tier)
	t.closed++
	t.add(s.Counters())
	g.settle()
}

// move counts a session under another tier from now on. What has been counted stays where it is: totals do not fall.
func (g *registry) move(s *live, tier string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tier = g.label(tier); s.tier == tier || g.byID[s.id] != s {
		return
	}
	now := totalsOf(s.Counters())
	old, next := g.tier(s.tier), g.tier(tier)
	old.count(now, 1)
	next.count(now, minus)
	old.closed++
	next.opened++
	s.tier = tier
}

// settle closes none when the drain is over. g.mu is held.
func (g *registry) settle() {
	if !g.draining || len(g.byID) > 0 {
		return
	}
	select {
	case <-g.none:
	default:
		close(g.none)
	}
}

// maxTiers bounds the tiers that are told apart: each costs rows in metrics and tracks of statistics, for ever.
const maxTiers = 64

// otherTier is what the rest is counted as.
const otherTier = "other"

// label is what a tier is counted as. g.mu is held.
func (g *registry) label(tier string) string {
	if _, known := g.totals[tier]; known || len(g.totals) < maxTiers {
		return tier
	}
	return otherTier
}

func (g *registry) tier(name string) *totals {
	t := g.totals[name]
	if t == nil {
		t = new(totals)
		g.totals[name] = t
	}
	return t
}

// tierOf is the tier that a session counts under now.
func (g *registry) tierOf(s *live) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.tier
}

func (g *registry) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.byID)
}

// isDraining reports whether sessions are told to go.
func (g *registry) isDraining() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

// list returns the sessions in the order in which they came.
func (g *registry) list() []*live {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*live, 0, len(g.byID))
	for _, id := range slices.Sorted(maps.Keys(g.byID)) {
		out = append(out, g.byID[id])
	}
	return out
}

// drain tells every session to go, now and from now on, and returns how many there are.
func (g *registry) drain() int {
	g.mu.Lock()
	first := !g.draining
	g.draining = true
	g.settle()
	g.mu.Unlock()
	sessions := g.list()
	if first {
		for _, s := range sessions {
			s.Goaway("")
		}
	}
	return len(sessions)
}

// empty is closed when a drain has no session left to wait for.
func (g *registry) empty() <-chan struct{} { return g.none }

// closeAll closes every session, side by side, and returns how many there were.
func (g *registry) closeAll(code uint32, reason string) int {
	sessions := g.list()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() { s.Close(code, reason) })
	}
	wg.Wait()
	return len(sessions)
}
