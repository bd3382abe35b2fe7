package route_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/route"
	"pgregory.net/rapid"
)

// wiresWithIDs carry hop lists; wiresWithout do not.
var (
	wiresWithIDs = []route.Wire{route.WireLite06, route.WireLite06, route.WireLite05, route.WireLite04, route.WireMoqtCluster}
	wiresWithout = []route.Wire{route.WireLite06, route.WireLite06, route.WireMoqt, route.WireLite03, route.WireLite01}
)

// randomMesh is a connected graph of 2 to 12 relays.
func randomMesh(t *rapid.T, wires []route.Wire) *mesh {
	n := rapid.IntRange(2, 12).Draw(t, "relays")
	m := newMesh(t, n, route.Config{Quarantine: rapid.Bool().Draw(t, "quarantine")})
	connect := func(a, b int) {
		wire := rapid.SampledFrom(wires).Draw(t, "wire")
		delay := time.Duration(rapid.IntRange(1, 150).Draw(t, "delay")) * time.Millisecond
		price := rapid.SampledFrom([]uint64{1, 1, 1, 0, 2, 10})
		m.link(a, b, wire, delay, price.Draw(t, "price"), price.Draw(t, "price"))
		m.logf("link R%d R%d %v %v", a+1, b+1, wire, delay)
	}
	for b := 1; b < n; b++ {
		connect(rapid.IntRange(0, b-1).Draw(t, "to"), b)
	}
	for range rapid.IntRange(0, n).Draw(t, "more") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		if a != b && !slices.ContainsFunc(m.links, func(l *meshLink) bool {
			return l.ends[0].relay.index == a && l.ends[1].relay.index == b || l.ends[0].relay.index == b && l.ends[1].relay.index == a
		}) {
			connect(a, b)
		}
	}
	return m
}

// meshPublisher offers one name, or not at the moment.
type meshPublisher struct {
	end  *meshEnd
	hop  route.Hop
	name string
	live bool
	next route.AdvertID
}

// meshRun makes random changes to a mesh.
type meshRun struct {
	*mesh
	t          *rapid.T
	publishers []*meshPublisher
}

func newMeshRun(t *rapid.T, m *mesh) *meshRun {
	r := &meshRun{mesh: m, t: t}
	for i := range rapid.IntRange(1, 3).Draw(t, "publishers") {
		p := &meshPublisher{name: rapid.SampledFrom([]string{"room", "room", "cam"}).Draw(t, "name")}
		switch rapid.IntRange(0, 2).Draw(t, "identity") {
		case 1:
			p.hop = route.Hop(900 + i)
		case 2: // two sessions of one publisher (E54)
			if p.hop = 900; i > 0 {
				p.name = r.publishers[0].name
			}
		}
		r.publishers = append(r.publishers, p)
		r.attach(p, rapid.IntRange(0, len(m.relays)-1).Draw(t, "at"))
	}
	return r
}

func (r *meshRun) attach(p *meshPublisher, at int) {
	p.end = r.relays[at].publisher(p.hop)
	r.announce(p)
}

func (r *meshRun) announce(p *meshPublisher) {
	p.next++
	p.live = true
	r.logf("%v: publisher %d announces %s", p.end.relay, p.hop, p.name)
	p.end.relay.apply(route.Announce{
		Session: p.end.id, Advert: p.next, Prefix: p.name, Advertised: route.Advertised{Sender: p.hop, Cost: r.price()},
	})
}

func (r *meshRun) price() route.Cost {
	c := rapid.SampledFrom([]uint64{0, 0, 1, 5}).Draw(r.t, "price")
	return route.Cost{Warm: c, Cold: c}
}

// change does one thing at random.
func (r *meshRun) change() {
	p := rapid.SampledFrom(r.publishers).Draw(r.t, "publisher")
	switch rapid.IntRange(0, 6).Draw(r.t, "change") {
	case 0, 1:
		if p.live {
			p.live = false
			r.logf("%v: publisher %d withdraws %s", p.end.relay, p.hop, p.name)
			p.end.relay.apply(route.Withdraw{Session: p.end.id, Advert: p.next, Explicit: true})
		} else {
			r.announce(p)
		}
	case 2:
		if p.live {
			r.logf("%v: publisher %d re-prices %s", p.end.relay, p.hop, p.name)
			p.end.relay.apply(route.Update{
				Session: p.end.id, Advert: p.next, Advertised: route.Advertised{Sender: p.hop, Cost: r.price()},
			})
		}
	case 3: // the publisher moves
		r.logf("%v: publisher %d is lost", p.end.relay, p.hop)
		p.end.down()
		r.attach(p, rapid.IntRange(0, len(r.relays)-1).Draw(r.t, "at"))
	case 4, 5:
		r.flip(rapid.SampledFrom(r.links).Draw(r.t, "link"))
	case 6:
		end := rapid.SampledFrom(r.links).Draw(r.t, "link").ends[0]
		if end.id != 0 && end.other.id != 0 {
			r.logf("%v: GOAWAY from %v", end.relay, end.other.relay)
			end.relay.apply(route.Goaway{Session: end.id})
		}
	}
}

// flip takes a link down, which its ends find out at different times, or up again.
func (r *meshRun) flip(l *meshLink) {
	switch a, b := l.ends[0], l.ends[1]; {
	case a.id != 0 && b.id != 0:
		r.logf("link %v %v is lost", a.relay, b.relay)
		a.down()
		id := b.id
		r.after(time.Duration(rapid.IntRange(0, 500).Draw(r.t, "discovery"))*time.Millisecond, func() {
			if b.id == id {
				b.down()
			}
		})
	case a.id == 0 && b.id == 0:
		r.logf("link %v %v is back", a.relay, b.relay)
		l.up()
	}
}

// settled runs until nothing can happen any more by invariant 4, and checks that nothing does.
func (r *meshRun) settled(discovery time.Duration) {
	changed := r.now
	bound := discovery + time.Duration(len(r.relays))*300*time.Millisecond + r.longest()
	r.run(changed + bound + 2*time.Second)
	r.run(changed + bound + 60*time.Second)
	if r.last > changed+bound+2*time.Second {
		r.fail("still talking %v after the last change, bound %v and 2s", r.last-changed, bound)
	}
}

func (r *meshRun) check() {
	for _, name := range []string{"room", "cam"} {
		var at []*meshRelay
		for _, p := range r.publishers {
			if p.live && p.name == name {
				at = append(at, p.end.relay)
			}
		}
		r.checkRoutes(name, at...)
	}
	r.checkFeeds()
}

// TestMeshConverges is invariant 4, with 1, 2, 3 and 5 on the way, over wires that carry hop ids.
func TestMeshConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newMeshRun(t, randomMesh(t, wiresWithIDs))
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			r.run(r.now + time.Duration(rapid.IntRange(0, 1500).Draw(t, "pause"))*time.Millisecond)
			r.change()
		}
		r.settled(500 * time.Millisecond)
		r.check()

		for _, p := range r.publishers {
			if p.live {
				p.live = false
				p.end.relay.apply(route.Withdraw{Session: p.end.id, Advert: p.next, Explicit: true})
			}
		}
		r.settled(0)
		r.check()
	})
}

// TestMeshForgets is the end of invariant 4 over wires without ids: however they are mixed, no name outlives
// its publishers, nor is there endless talk (R33b).
func TestMeshForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newMeshRun(t, randomMesh(t, append(wiresWithout, wiresWithIDs...)))
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			r.run(r.now + time.Duration(rapid.IntRange(0, 1500).Draw(t, "pause"))*time.Millisecond)
			r.change()
		}
		r.settled(500 * time.Millisecond)
		for _, p := range r.publishers {
			if p.live {
				p.live = false
				p.end.relay.apply(route.Withdraw{Session: p.end.id, Advert: p.next, Explicit: true})
			}
		}
		r.settled(0)
		r.check()
	})
}

// TestMeshFindsCheapest: over moq-lite 06 the route of each relay costs what the cheapest path costs.
func TestMeshFindsCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := randomMesh(t, []route.Wire{route.WireLite06})
		from := rapid.SampledFrom(m.relays).Draw(t, "publisher at")
		p := from.publisher(900)
		from.apply(route.Announce{Session: p.id, Advert: 1, Prefix: "room", Advertised: route.Advertised{Sender: 900}})
		m.run(20 * time.Second)

		cost := map[*meshRelay]uint64{from: 1}
		for range m.relays { // Bellman, Ford
			for _, l := range m.links {
				for _, end := range l.ends {
					if c, ok := cost[end.other.relay]; ok {
						if old, ok := cost[end.relay]; !ok || c+end.price < old {
							cost[end.relay] = c + end.price
						}
					}
				}
			}
		}
		for r, want := range cost {
			got, ok := r.table.Lookup("room", route.Requester{})
			if !ok || got.Cost.Warm != want {
				m.fail("%v has a route of cost %v, want %d", r, got.Cost, want)
			}
		}
	})
}

// departure has one publisher leave and demands exactly one retraction per consumer that held the name
// (invariant 6).
func departure(m *mesh, at int) {
	p := m.relays[at].publisher(900)
	m.relays[at].apply(route.Announce{Session: p.id, Advert: 1, Prefix: "room", Advertised: route.Advertised{Sender: 900}})
	m.run(m.now + 20*time.Second)
	m.checkRoutes("room", m.relays[at])
	m.resetCounts()
	var holders []*meshFeed
	for _, r := range m.relays {
		for _, f := range r.feeds {
			if len(f.held) > 0 {
				holders = append(holders, f)
			}
		}
	}
	m.relays[at].apply(route.Withdraw{Session: p.id, Advert: 1, Explicit: true})
	m.run(m.now + 20*time.Second)
	m.checkRoutes("room")
	for _, f := range holders {
		if f.news+f.changes != 0 || f.gones != 1 {
			m.fail("a consumer of %v heard %d announcements, %d updates, %d retractions", f.relay, f.news, f.changes, f.gones)
		}
	}
}

func TestDepartureIsOneRetraction(t *testing.T) {
	delay := func(t *rapid.T) time.Duration {
		return time.Duration(rapid.IntRange(1, 60).Draw(t, "delay")) * time.Millisecond
	}
	t.Run("full mesh", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(2, 12).Draw(t, "relays")
			m := newMesh(t, n, route.Config{})
			for b := range n {
				for a := range b {
					m.link(a, b, route.WireLite06, delay(t), 1, 1)
				}
			}
			departure(m, rapid.IntRange(0, n-1).Draw(t, "at"))
		})
	})
	// The last news of a departure reaches a relay of a ring by the long way round, which must not take longer
	// than the hold.
	t.Run("ring", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(3, 6).Draw(t, "relays")
			m := newMesh(t, n, route.Config{})
			for a := range n {
				m.link(a, (a+1)%n, route.WireLite06, delay(t), 1, 1)
			}
			departure(m, rapid.IntRange(0, n-1).Draw(t, "at"))
		})
	})
}

// TestHopCapEndsPaths: a relay that has no room for itself in the list does not forward (R4).
func TestHopCapEndsPaths(t *testing.T) {
	m := newMesh(t, 6, route.Config{MaxHops: 4})
	for i := range 5 {
		m.link(i, i+1, route.WireLite06, time.Millisecond, 1, 1)
	}
	p := m.relays[0].publisher(900)
	m.relays[0].apply(route.Announce{Session: p.id, Advert: 1, Prefix: "room", Advertised: route.Advertised{Sender: 900}})
	m.run(time.Second)
	var have []bool
	for _, r := range m.relays {
		_, ok := r.table.Lookup("room", route.Requester{})
		have = append(have, ok)
	}
	// Stored: [900], [900 1], [900 1 2], [900 1 2 3]; the last is full.
	if want := "[true true true true false false]"; fmt.Sprint(have) != want {
		t.Errorf("relays with a route: %v, want %v", have, want)
	}
}
