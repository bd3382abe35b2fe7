package route_test

import (
	"container/heap"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// mesh is a network of relays that consist of their route tables only. What a table tells a consumer that is
// a link arrives as an event at the other end after the delay of the link, in order.
type mesh struct {
	t      failer
	now    time.Duration
	order  int
	queue  meshQueue
	relays []*meshRelay
	links  []*meshLink
	last   time.Duration // when something was last said on a link or to a viewer
	log    []string
}

type failer interface {
	Fatalf(format string, args ...any)
}

type meshRelay struct {
	m        *mesh
	index    int
	hop      route.Hop
	table    *route.Table
	nextID   uint64
	ends     map[route.SessionID]*meshEnd
	feeds    map[route.ConsumerID]*meshFeed
	viewer   *meshFeed
	expireAt time.Duration // of the scheduled Expire
}

// meshLink connects two relays.
type meshLink struct {
	wire  route.Wire
	delay time.Duration // one way
	ends  [2]*meshEnd
}

// meshEnd is the session at one end of a link, or that of a publisher (no link).
type meshEnd struct {
	relay *meshRelay
	other *meshEnd
	link  *meshLink
	price uint64
	id    route.SessionID // 0 while down
	feed  *meshFeed       // what this end sends
}

// meshFeed is one consumer: a link, or a viewer.
type meshFeed struct {
	relay  *meshRelay
	id     route.ConsumerID
	end    *meshEnd // nil for a viewer
	held   map[string]meshName
	nextID route.AdvertID

	news, changes, gones int
	lastChange           map[string]time.Duration
}

type meshName struct {
	id   route.AdvertID
	hops []route.Hop
	cost route.Cost
}

type meshEvent struct {
	at    time.Duration
	order int
	do    func()
}

type meshQueue []meshEvent

func (q meshQueue) Len() int { return len(q) }
func (q meshQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q meshQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *meshQueue) Push(x any)   { *q = append(*q, x.(meshEvent)) }
func (q *meshQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// newMesh makes relays with the ids 1, 2, ... and a viewer each.
func newMesh(t failer, relays int, cfg route.Config) *mesh {
	m := &mesh{t: t}
	for i := range relays {
		cfg.Hop = route.Hop(i + 1)
		r := &meshRelay{
			m: m, index: i, hop: cfg.Hop, table: route.New(cfg), expireAt: -1,
			ends: map[route.SessionID]*meshEnd{}, feeds: map[route.ConsumerID]*meshFeed{},
		}
		m.relays = append(m.relays, r)
		r.viewer = r.listen(r.session(nil, route.SessionInfo{Wire: route.WireLite06}), nil)
	}
	return m
}

func (m *mesh) after(d time.Duration, do func()) {
	m.order++
	heap.Push(&m.queue, meshEvent{m.now + d, m.order, do})
}

// run lets time pass until the given time.
func (m *mesh) run(until time.Duration) {
	for len(m.queue) > 0 && m.queue[0].at <= until {
		e := heap.Pop(&m.queue).(meshEvent)
		m.now = e.at
		e.do()
	}
	m.now = until
}

func (m *mesh) fail(format string, args ...any) {
	text := ""
	for _, line := range m.log {
		text += line + "\n"
	}
	m.t.Fatalf("%s%v: %s", text, m.now, fmt.Sprintf(format, args...))
}

func (m *mesh) logf(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf("%v ", m.now)+fmt.Sprintf(format, args...))
}

func (r *meshRelay) String() string { return fmt.Sprintf("R%d", r.hop) }

// session adds a session; end is nil for viewers.
func (r *meshRelay) session(end *meshEnd, info route.SessionInfo) route.SessionID {
	r.nextID++
	info.ID = route.SessionID(r.nextID)
	info.Assigned = r.hop*1_000_000 + route.Hop(r.nextID)
	info.Stamp = r.hop*1_000_000 + 500_000 + route.Hop(r.nextID)
	info.Publish, info.Subscribe = paths.All, paths.All
	if end != nil {
		end.id = info.ID
		r.ends[info.ID] = end
	}
	r.apply(route.SessionUp{SessionInfo: info})
	return info.ID
}

func (r *meshRelay) listen(s route.SessionID, end *meshEnd) *meshFeed {
	r.nextID++
	f := &meshFeed{
		relay: r, id: route.ConsumerID(r.nextID), end: end, held: map[string]meshName{}, lastChange: map[string]time.Duration{},
	}
	r.feeds[f.id] = f
	r.apply(route.Listen{Consumer: f.id, Session: s})
	return f
}

// publisher attaches a publisher with the hop id (0: anonymous).
func (r *meshRelay) publisher(hop route.Hop) *meshEnd {
	end := &meshEnd{relay: r}
	r.session(end, route.SessionInfo{Hop: hop, Wire: route.WireLite06, Price: 1})
	return end
}

func (m *mesh) link(a, b int, wire route.Wire, delay time.Duration, priceA, priceB uint64) {
	l := &meshLink{wire: wire, delay: delay}
	l.ends[0] = &meshEnd{relay: m.relays[a], link: l, price: priceA}
	l.ends[1] = &meshEnd{relay: m.relays[b], link: l, price: priceB}
	l.ends[0].other, l.ends[1].other = l.ends[1], l.ends[0]
	m.links = append(m.links, l)
	l.up()
}

// up opens the sessions of both ends.
func (l *meshLink) up() {
	for _, end := range l.ends {
		hop := end.other.relay.hop
		if !among(l.wire, route.WireLite05, route.WireLite06, route.WireMoqtCluster) {
			hop = 0 // not declared; moq-lite 04 says it in its request
		}
		end.relay.session(end, route.SessionInfo{
			Hop: hop, Wire: l.wire, Price: end.price, Source: route.SourcePeer, ClusterPeer: true,
		})
	}
	for _, end := range l.ends {
		end.listen()
	}
}

// listen serves the announce stream that the other end opens.
func (e *meshEnd) listen() {
	r := e.relay
	r.nextID++
	e.feed = &meshFeed{
		relay: r, id: route.ConsumerID(r.nextID), end: e, held: map[string]meshName{}, lastChange: map[string]time.Duration{},
	}
	r.feeds[e.feed.id] = e.feed
	listen := route.Listen{Consumer: e.feed.id, Session: e.id}
	if e.link.wire == route.WireLite04 {
		listen.Exclude = e.other.relay.hop
	}
	r.apply(listen)
}

// down ends the session at one end: the other one finds out by itself.
func (e *meshEnd) down() {
	if e.id == 0 {
		return
	}
	e.relay.apply(route.SessionDown{ID: e.id})
	delete(e.relay.ends, e.id)
	if e.feed != nil {
		delete(e.relay.feeds, e.feed.id)
	}
	e.id, e.feed = 0, nil
}

func (r *meshRelay) apply(e route.Event) {
	effects, err := r.table.Apply(epoch.Add(r.m.now), e)
	if err != nil {
		r.m.fail("%v: %T %+v: %v", r, e, e, err)
	}
	r.carryOut(effects)
}

func (r *meshRelay) carryOut(effects []route.Effect) {
	for _, e := range effects {
		if tell, ok := e.(route.Tell); ok {
			r.feeds[tell.Consumer].tell(tell)
		}
	}
	due, ok := r.table.Deadline()
	if !ok || due.Sub(epoch) == r.expireAt {
		return
	}
	at := due.Sub(epoch)
	r.expireAt = at
	r.m.after(at-r.m.now, func() {
		if r.expireAt == at {
			r.expireAt = -1
			r.carryOut(r.table.Expire(epoch.Add(r.m.now)))
		}
	})
}

// tell checks a message (invariants 1, 3 and 5) and sends it on.
func (f *meshFeed) tell(e route.Tell) {
	m := f.relay.m
	m.last = m.now
	old, held := f.held[e.Name]
	if held == (e.Kind == route.TellNew) {
		m.fail("%v tells a consumer of %q: kind %d, held %v", f.relay, e.Name, e.Kind, held)
	}
	switch e.Kind {
	case route.TellNew:
		f.news++
		f.nextID++
		f.held[e.Name] = meshName{f.nextID, e.Hops, e.Cost}
	case route.TellChange:
		f.changes++
		if last, ok := f.lastChange[e.Name]; ok && m.now-last < 300*time.Millisecond {
			m.fail("%v updates %q twice within %v", f.relay, e.Name, m.now-last)
		}
		f.lastChange[e.Name] = m.now
		f.held[e.Name] = meshName{old.id, e.Hops, e.Cost}
	case route.TellGone:
		f.gones++
		delete(f.held, e.Name)
		delete(f.lastChange, e.Name)
	}
	if f.end == nil {
		return
	}
	if e.Kind != route.TellGone {
		f.checkList(e.Hops)
	}
	id := old.id
	if e.Kind == route.TellNew {
		id = f.nextID
	}
	f.send(e, id)
}

// checkList is invariant 3: on the way out the list gets our id.
func (f *meshFeed) checkList(hops []route.Hop) {
	r := f.relay
	if f.end.link.wire == route.WireMoqt || f.end.link.wire == route.WireLite01 || f.end.link.wire == route.WireLite03 {
		return
	}
	if slices.Contains(hops, r.hop) || slices.Contains(hops, f.end.other.relay.hop) || len(hops) >= route.MaxHops {
		r.m.fail("%v sends %v to %v", r, hops, f.end.other.relay)
	}
}

// send delivers a message to the other end, unless one of the two sessions is gone by then.
func (f *meshFeed) send(e route.Tell, id route.AdvertID) {
	from, to := f.end, f.end.other
	sender, receiver := from.id, to.id
	ad := encode(f.end.link.wire, f.relay.hop, e)
	f.relay.m.after(f.end.link.delay, func() {
		if from.id != sender || to.id != receiver || receiver == 0 {
			return
		}
		switch e.Kind {
		case route.TellNew:
			to.relay.apply(route.Announce{Session: to.id, Advert: id, Prefix: e.Name, Advertised: ad})
		case route.TellChange:
			to.relay.apply(route.Update{Session: to.id, Advert: id, Advertised: ad})
		case route.TellGone:
			to.relay.apply(route.Withdraw{Session: to.id, Advert: id, Explicit: true})
		}
	})
}

// encode is what a wire makes of an advertisement (2.3).
func encode(wire route.Wire, own route.Hop, e route.Tell) route.Advertised {
	full := append(slices.Clone(e.Hops), own)
	switch wire {
	case route.WireLite06:
		return route.Advertised{Hops: e.Hops, Sender: own, Cost: e.Cost}
	case route.WireLite05:
		return route.Advertised{Hops: e.Hops, Sender: own}
	case route.WireLite04:
		return route.Advertised{Hops: full}
	case route.WireMoqtCluster:
		return route.Advertised{Hops: full, Cost: route.Cost{Warm: e.Cost.Warm}}
	case route.WireLite03:
		return route.Advertised{Hops: make([]route.Hop, len(full))}
	default:
		return route.Advertised{}
	}
}

// path follows a request from relay r; it returns the relays asked, and whether a publisher was reached.
func (m *mesh) path(r *meshRelay, name string) ([]*meshRelay, bool) {
	asked := []*meshRelay{r}
	var x route.Requester
	for {
		found, ok := asked[len(asked)-1].table.Lookup(name, x)
		if !ok {
			return asked, false
		}
		end := asked[len(asked)-1].ends[found.Session]
		if end.link == nil {
			return asked, true
		}
		next := end.other.relay
		x = next.table.Requester(end.other.id)
		if slices.Contains(asked, next) {
			return append(asked, next), false
		}
		asked = append(asked, next)
	}
}

// connected are the relays that have a path of live links to one of the given.
func (m *mesh) connected(from ...*meshRelay) map[*meshRelay]bool {
	seen := map[*meshRelay]bool{}
	for len(from) > 0 {
		r := from[0]
		from = from[1:]
		if seen[r] {
			continue
		}
		seen[r] = true
		for _, end := range r.ends {
			if end.link != nil && end.other.id != 0 {
				from = append(from, end.other.relay)
			}
		}
	}
	return seen
}

// checkRoutes is invariant 4 for one name whose publishers are at the given relays: those who can reach it
// have a way that works, and everybody else has forgotten it.
func (m *mesh) checkRoutes(name string, at ...*meshRelay) {
	reachable := m.connected(at...)
	for _, r := range m.relays {
		asked, ok := m.path(r, name)
		if ok != reachable[r] {
			m.fail("a request for %q at %v goes by %v and arrives: %v, want %v", name, r, asked, ok, reachable[r])
		}
		_, held := r.viewer.held[name]
		if held != reachable[r] {
			m.fail("the viewer of %v holds %q: %v, want %v", r, name, held, reachable[r])
		}
	}
}

// checkFeeds is invariant 2: what a consumer holds is what a new one would be told.
func (m *mesh) checkFeeds() {
	for _, r := range m.relays {
		for _, f := range r.feeds {
			session := r.session(nil, route.SessionInfo{Wire: route.WireLite06})
			if f.end != nil {
				session = f.end.id
			}
			r.nextID++
			effects, err := r.table.Apply(epoch.Add(m.now), route.Listen{Consumer: route.ConsumerID(r.nextID), Session: session})
			if err != nil {
				m.fail("%v", err)
			}
			r.apply(route.Unlisten{Consumer: route.ConsumerID(r.nextID)})
			if len(effects) != len(f.held) {
				m.fail("a consumer of %v holds %v, should %v", r, f.held, effects)
			}
			for _, e := range effects {
				want := e.(route.Tell)
				got, ok := f.held[want.Name]
				same := ok
				if f.end == nil || f.end.link.wire == route.WireLite06 {
					same = ok && got.cost == want.Cost
				}
				if !same || (f.end == nil || f.end.link.wire >= route.WireLite04 && f.end.link.wire != route.WireMoqt) &&
					!slices.Equal(got.hops, want.Hops) {
					m.fail("a consumer of %v holds %+v, should %+v", r, got, want)
				}
			}
		}
	}
}

// longest is an upper bound of the delay of any loop-free path.
func (m *mesh) longest() time.Duration {
	var delays []time.Duration
	for _, l := range m.links {
		delays = append(delays, l.delay)
	}
	slices.Sort(delays)
	slices.Reverse(delays)
	var sum time.Duration
	for _, d := range delays[:min(len(delays), len(m.relays)-1)] {
		sum += d
	}
	return sum
}

func (m *mesh) resetCounts() {
	for _, r := range m.relays {
		for _, f := range r.feeds {
			f.news, f.changes, f.gones = 0, 0, 0
		}
	}
}

// TestChainRetracts is E43 with its relays: the publisher's departure is one retraction, 12 ms later.
func TestChainRetracts(t *testing.T) {
	m := newMesh(t, 4, route.Config{}) // R1; A2, B3, C4
	m.link(1, 2, route.WireLite06, 5*time.Millisecond, 1, 1)
	m.link(1, 3, route.WireLite06, 5*time.Millisecond, 1, 1)
	m.link(2, 0, route.WireLite06, 5*time.Millisecond, 1, 1)
	m.link(3, 0, route.WireLite06, 7*time.Millisecond, 1, 1)
	p := m.relays[1].publisher(9)
	m.relays[1].apply(route.Announce{Session: p.id, Advert: 1, Prefix: "room", Advertised: route.Advertised{Sender: 9}})
	m.run(5 * time.Second)
	m.checkRoutes("room", m.relays[1])
	m.checkFeeds()
	m.resetCounts()
	m.relays[1].apply(route.Withdraw{Session: p.id, Advert: 1, Explicit: true})
	start := m.now
	m.run(10 * time.Second)
	v := m.relays[0].viewer
	if v.news != 0 || v.changes != 0 || v.gones != 1 || m.last-start != 12*time.Millisecond {
		t.Errorf("%d announcements, %d updates, %d retractions, the last after %v", v.news, v.changes, v.gones, m.last-start)
	}
}
