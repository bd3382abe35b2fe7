package relay

import (
	"maps"
	"slices"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/session"
)

// state shows the relay to the operators' pages.
type state struct{ relay *Relay }

var _ admin.State = state{}

// Nodes implements admin.State: the peers that we dialed and hold a session with.
func (s state) Nodes() []admin.Node {
	byNode := make(map[string]*admin.Node)
	for _, l := range s.relay.sessions.list() {
		if !l.dialed {
			continue
		}
		n := byNode[l.node]
		if n == nil {
			n = &admin.Node{Node: l.node}
			byNode[l.node] = n
		}
		n.Connections = append(n.Connections, admin.Connection{ID: l.id})
	}
	out := make([]admin.Node, 0, len(byNode))
	for _, key := range slices.Sorted(maps.Keys(byNode)) {
		out = append(out, *byNode[key])
	}
	return out
}

// Sessions implements admin.State: those that were admitted, which peers on the LAN are not in this sense (L12).
func (s state) Sessions() []admin.Session {
	var out []admin.Session
	for _, l := range s.relay.sessions.list() {
		if l.lease == nil {
			continue
		}
		a := admin.Session{
			ID: l.lease.ID(), Node: s.relay.cfg.Node, Transport: string(authTransport(l.kind)), Remote: l.remote, Local: l.local,
			ServerName: l.name, ALPN: l.alpn, Path: l.path, Role: l.role, TLS: identity(l.tls), Started: l.started.Unix(),
		}
		s.relay.detail(l, &a)
		out = append(out, a)
	}
	return out
}

// Metrics implements admin.State.
func (s state) Metrics() admin.Metrics {
	r := s.relay
	tiers, live, draining := r.sessions.metrics()
	m := admin.Metrics{Tiers: tiers, DrainingSessions: draining, Accepts: r.web.metrics()}
	o, c := r.origin.Counters(), r.cache.Stats()
	m.Own = admin.OwnMetrics{
		Sessions: live, Routes: o.Routes, HoldsPending: o.HoldsPending, UpstreamSubscriptions: o.Upstreams,
		Failovers: o.Failovers, Refusals: o.Refusals, Tracks: o.Tracks, Readers: o.Readers,
		Hedges: o.Hedges, HedgesWon: o.HedgesWon, HedgesNeedless: o.HedgesNeedless, HedgesRefused: o.HedgesRefused,
		DuplicateFrames: c.Repeated,
		CacheBytes:      c.Bytes, CacheCapacity: c.Capacity, CacheGroups: int(c.Groups), CacheEvictions: c.Evicted, GroupsShed: c.Shed,
		Lateness: time.Duration(r.pressure.wait.Load()), Overloaded: r.pressure.full.Load(), JoinsDelayed: r.pressure.delayed.Load(),
		MemoryUsed: r.pressure.memory.used.Load(), MemoryLimit: r.cfg.Memory, MemoryShort: r.pressure.memory.full.Load(),
		Peers: make(map[string]int),
	}
	for _, p := range r.Peers() {
		m.Own.Peers[string(p.State)]++
	}
	if l := r.peerList.Load(); l != nil && l.Status().Error != "" {
		m.Own.PeerListFailing = true
	}
	m.Own.Auth, m.Own.Limited = authMetrics(r.leases.Counters()), r.limitMetrics()
	if c := r.cluster.Load(); c != nil {
		n := c.Counters()
		m.Own.Dials, m.Own.DialFailures = n.Dials, n.Failures
	}
	return m
}

// totals are the sums over the ended sessions of one tier.
type totals struct {
	opened, closed               uint64
	sent, received               admin.ContentMetrics
	controlSent, controlReceived [session.ControlClasses]uint64
}

// add sums up the counters of a session.
func (t *totals) add(c *session.Counters) { t.count(totalsOf(c), 1) }

// totalsOf reads the counters of a session once.
func totalsOf(c *session.Counters) *totals {
	t := &totals{sent: contentOf(&c.Sent), received: contentOf(&c.Received)}
	for class := range t.controlSent {
		t.controlSent[class] = c.ControlSent[class].Load()
		t.controlReceived[class] = c.ControlReceived[class].Load()
	}
	return t
}

// minus takes counters off again: sums wrap around, and what is taken off is in the counters of a live session, which
// come on top.
const minus = ^uint64(0)

// count adds what was read, once or minus once. Numbers of sessions are not touched.
func (t *totals) count(read *totals, times uint64) {
	addContent(&t.sent, &read.sent, times)
	addContent(&t.received, &read.received, times)
	for class := range t.controlSent {
		t.controlSent[class] += times * read.controlSent[class]
		t.controlReceived[class] += times * read.controlReceived[class]
	}
}

// byClass leaves out classes of which nothing was seen.
func byClass(sums *[session.ControlClasses]uint64) map[admin.ControlClass]uint64 {
	out := make(map[admin.ControlClass]uint64)
	for class, n := range sums {
		if n > 0 {
			out[admin.ControlClass(session.ControlClass(class).String())] = n
		}
	}
	return out
}

func contentOf(t *session.Traffic) admin.ContentMetrics {
	return admin.ContentMetrics{
		Bytes: t.Bytes.Load(), Frames: t.Frames.Load(), Groups: t.Groups.Load(), Datagrams: t.Datagrams.Load(),
		StaleBytes: t.StaleBytes.Load(), StaleFrames: t.StaleFrames.Load(),
		StaleGroups: t.StaleGroups.Load(), StaleDatagrams: t.StaleDatagrams.Load(),
		Fetches:          t.Fetches.Load(),
		AnnouncesStarted: t.AnnouncesStarted.Load(), AnnouncesEnded: t.AnnouncesEnded.Load(),
		SubscriptionsOpened: t.SubscriptionsOpened.Load(), SubscriptionsClosed: t.SubscriptionsClosed.Load(),
		ViewersOpened: t.ViewersOpened.Load(), ViewersClosed: t.ViewersClosed.Load(),
	}
}

func addContent(m, x *admin.ContentMetrics, times uint64) {
	for _, f := range [][2]*uint64{
		{&m.Bytes, &x.Bytes},
		{&m.Frames, &x.Frames},
		{&m.Groups, &x.Groups},
		{&m.Datagrams, &x.Datagrams},
		{&m.StaleBytes, &x.StaleBytes},
		{&m.StaleFrames, &x.StaleFrames},
		{&m.StaleGroups, &x.StaleGroups},
		{&m.StaleDatagrams, &x.StaleDatagrams},
		{&m.Fetches, &x.Fetches},
		{&m.AnnouncesStarted, &x.AnnouncesStarted},
		{&m.AnnouncesEnded, &x.AnnouncesEnded},
		{&m.SubscriptionsOpened, &x.SubscriptionsOpened},
		{&m.SubscriptionsClosed, &x.SubscriptionsClosed},
		{&m.ViewersOpened, &x.ViewersOpened},
		{&m.ViewersClosed, &x.ViewersClosed},
	} {
		*f[0] += times * *f[1]
	}
}

// metrics sums up ended and live sessions by tier; it also tells how many live, and how many of them are told to go.
func (g *registry) metrics() (tiers []admin.TierMetrics, live, draining int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sums := make(map[string]*totals, len(g.totals))
	for name, t := range g.totals {
		sum := *t
		sums[name] = &sum
	}
	for _, l := range g.byID {
		sums[l.tier].add(l.Counters())
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		t := sums[name]
		tiers = append(tiers, admin.TierMetrics{
			Tier: name, SessionsOpened: t.opened, SessionsClosed: t.closed, Publisher: t.sent, Subscriber: t.received,
			ControlSent: byClass(&t.controlSent), ControlReceived: byClass(&t.controlReceived),
		})
	}
	if g.draining {
		draining = len(g.byID)
	}
	return tiers, len(g.byID), draining
}
