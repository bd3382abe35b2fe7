package route_test

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/memory"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

// scaleNames is the number of broadcasts of BenchmarkMesh. Names do not influence each other, so a few tell as much as
// many; docs/scale.md has figures for 10,000.
var (
	scaleNames      = flag.Int("scale.names", 10, "broadcasts in BenchmarkMesh")
	scaleMaxHops    = flag.Int("scale.maxhops", 0, "hop cap of every relay in BenchmarkMesh; 0 = the default")
	scaleQuarantine = flag.Bool("scale.quarantine", false, "with the wait of R35")
)

// linkDelay is one way over each link of the mesh: a hop of convergence time.
const linkDelay = 10 * time.Millisecond

// bigMesh is a mesh of relays that are their route tables only, made for size: nothing is checked, everything counted.
type bigMesh struct {
	tb     testing.TB
	now    time.Duration
	queue  bigQueue
	order  uint64
	relays []*bigRelay

	messages    int           // that links carried
	held        int           // names that are held over links, per direction
	news, quiet time.Duration // when the last new name, and the last message, arrived
	events      int           // that tables were given
}

type bigRelay struct {
	table *route.Table
	peers []bigPeer // by session id - 1
	due   time.Duration
}

// bigPeer is the other end of a session; relay is -1 for a publisher.
type bigPeer struct {
	relay   int
	session route.SessionID // there
}

type bigMessage struct {
	at      time.Duration
	order   uint64
	to      int
	session route.SessionID
	kind    route.TellKind
	wake    bool // a timer instead of a message
	name    string
	hops    []route.Hop
	cost    route.Cost
}

type bigQueue []bigMessage

func (q bigQueue) Len() int { return len(q) }
func (q bigQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q bigQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *bigQueue) Push(x any)   { *q = append(*q, x.(bigMessage)) }
func (q *bigQueue) Pop() any {
	last := len(*q) - 1
	m := (*q)[last]
	(*q)[last] = bigMessage{}
	*q = (*q)[:last]
	return m
}

// newBigMesh makes relays in a random connected graph of about the given degree; relays-1 means a full mesh.
func newBigMesh(tb testing.TB, relays, degree int) *bigMesh {
	tb.Helper()
	m := &bigMesh{tb: tb}
	cfg := route.Config{Quarantine: *scaleQuarantine, MaxHops: *scaleMaxHops}
	for i := range relays {
		cfg.Hop = route.Hop(i + 1)
		m.relays = append(m.relays, &bigRelay{table: route.New(cfg), due: -1})
	}
	rng := rand.New(rand.NewPCG(1, uint64(degree)))
	linked := make(map[[2]int]bool)
	connect := func(a, b int) {
		if a > b {
			a, b = b, a
		}
		if a != b && !linked[[2]int{a, b}] {
			linked[[2]int{a, b}] = true
			m.link(a, b)
		}
	}
	for i := range relays {
		connect(i, (i+1)%relays)
	}
	for len(linked) < relays*degree/2 {
		connect(rng.IntN(relays), rng.IntN(relays))
	}
	return m
}

func (m *bigMesh) link(a, b int) {
	sa, sb := route.SessionID(len(m.relays[a].peers)+1), route.SessionID(len(m.relays[b].peers)+1)
	m.join(a, sa, bigPeer{b, sb}, route.Hop(b+1))
	m.join(b, sb, bigPeer{a, sa}, route.Hop(a+1))
}

// join adds a session to a relay, and what it is told.
func (m *bigMesh) join(at int, id route.SessionID, peer bigPeer, hop route.Hop) {
	m.relays[at].peers = append(m.relays[at].peers, peer)
	m.apply(at, route.SessionUp{SessionInfo: route.SessionInfo{
		ID: id, Hop: hop, Wire: route.WireLite06, Price: 1, Source: route.SourcePeer, Publish: paths.All,
		Subscribe: paths.All, ClusterPeer: true,
	}})
	if peer.relay >= 0 {
		m.apply(at, route.Listen{Consumer: route.ConsumerID(id), Session: id})
	}
}

// publish attaches a publisher of one name to a relay.
func (m *bigMesh) publish(at int, name string, hop route.Hop) route.SessionID {
	id := route.SessionID(len(m.relays[at].peers) + 1)
	m.join(at, id, bigPeer{relay: -1}, hop)
	m.apply(at, route.Announce{Session: id, Advert: 1, Prefix: name, Advertised: route.Advertised{Sender: hop}})
	return id
}

func (m *bigMesh) apply(at int, e route.Event) {
	m.events++
	effects, err := m.relays[at].table.Apply(epoch.Add(m.now), e)
	if err != nil {
		m.tb.Fatalf("relay %d: %T: %v", at, e, err)
	}
	m.carryOut(at, effects)
}

func (m *bigMesh) carryOut(at int, effects []route.Effect) {
	r := m.relays[at]
	for _, e := range effects {
		tell, ok := e.(route.Tell)
		if !ok {
			continue
		}
		peer := r.peers[tell.Consumer-1]
		m.push(bigMessage{
			at: m.now + linkDelay, to: peer.relay, session: peer.session, kind: tell.Kind, name: tell.Name,
			hops: tell.Hops, cost: tell.Cost,
		})
	}
	if due, ok := r.table.Deadline(); ok && due.Sub(epoch) != r.due {
		r.due = due.Sub(epoch)
		m.push(bigMessage{at: r.due, to: at, wake: true})
	}
}

func (m *bigMesh) push(msg bigMessage) {
	m.order++
	msg.order = m.order
	heap.Push(&m.queue, msg)
}

// settle lets time pass until nothing is left to be said.
func (m *bigMesh) settle() {
	for len(m.queue) > 0 {
		msg := heap.Pop(&m.queue).(bigMessage)
		m.now = msg.at
		if msg.wake {
			if r := m.relays[msg.to]; r.due == msg.at {
				r.due = -1
				m.carryOut(msg.to, r.table.Expire(epoch.Add(m.now)))
			}
			continue
		}
		m.deliver(msg)
	}
}

func (m *bigMesh) deliver(msg bigMessage) {
	m.messages++
	m.quiet = m.now
	sender := route.Hop(m.relays[msg.to].peers[msg.session-1].relay + 1)
	adv := route.Advertised{Hops: msg.hops, Sender: sender, Cost: msg.cost}
	id := advertOf(msg.name)
	switch msg.kind {
	case route.TellNew:
		m.news = m.now
		m.held++
		m.apply(msg.to, route.Announce{Session: msg.session, Advert: id, Prefix: msg.name, Advertised: adv})
	case route.TellChange:
		m.apply(msg.to, route.Update{Session: msg.session, Advert: id, Advertised: adv})
	case route.TellGone:
		m.held--
		m.apply(msg.to, route.Withdraw{Session: msg.session, Advert: id, Explicit: true})
	}
}

// advertOf numbers the adverts of a session by name: one name is live at most once on it.
func advertOf(name string) route.AdvertID {
	var n uint64
	if _, err := fmt.Sscanf(name, "show/%d", &n); err != nil {
		panic(err)
	}
	return route.AdvertID(n + 1)
}

// count runs one change to its end and returns the messages it took and how long until the last one arrived.
func (m *bigMesh) count(change func()) (messages int, hops float64) {
	m.messages, m.quiet = 0, m.now
	begin := m.now
	change()
	m.settle()
	return m.messages, float64(m.quiet-begin) / float64(linkDelay)
}

// BenchmarkMesh drives whole meshes of route tables by messages alone. It reports, per broadcast: events until all is said
// about a new one (events/new), and messages when its publisher leaves (messages/gone), where one retraction for each
// direction of a link that carried it (held/name) would be best; the longest time, in hops, until all relays know a new name (hops-news) and until nothing more
// is said of it (hops-quiet), and until all is quiet after it left (hops-gone); the memory of a route; what one event costs a
// table.
func BenchmarkMesh(b *testing.B) {
	for _, c := range []struct{ relays, degree int }{
		{12, 3},
		{25, 3},
		{50, 3},
		{100, 3},
		{200, 3},
		{12, 6},
		{25, 6},
		{50, 6},
		{100, 6},
		{200, 6},
		{12, 11},
		{50, 49},
		{200, 199},
	} {
		b.Run(fmt.Sprintf("relays=%d/degree=%d", c.relays, c.degree), func(b *testing.B) {
			names := *scaleNames
			if c.degree > 100 {
				names = max(names/50, 1) // every relay holds a route by every other
			}
			for b.Loop() {
				benchMesh(b, c.relays, c.degree, names)
			}
		})
	}
}

func benchMesh(b *testing.B, relays, degree, names int) {
	b.Helper()
	m := newBigMesh(b, relays, degree)
	before := memory.Live()
	rng := rand.New(rand.NewPCG(2, 2))
	type publisher struct {
		at int
		id route.SessionID
	}
	pubs := make([]publisher, names)
	m.events = 0
	begin := time.Now()
	var news, quiet float64
	for i := range pubs {
		at := rng.IntN(relays)
		start := m.now
		_, hops := m.count(func() {
			pubs[i] = publisher{at, m.publish(at, fmt.Sprintf("show/%d", i), route.Hop(1_000_000+i))}
		})
		quiet = max(quiet, hops)
		news = max(news, float64(m.news-start)/float64(linkDelay))
	}
	elapsed := time.Since(begin)
	b.ReportMetric(float64(m.events)/float64(names), "events/new")
	b.ReportMetric(float64(elapsed.Nanoseconds())/float64(m.events), "ns/event")
	b.ReportMetric(news, "hops-news")
	b.ReportMetric(quiet, "hops-quiet")
	routes := 0
	for _, r := range m.relays {
		for _, p := range r.table.Snapshot().Prefixes {
			routes += len(p.Routes)
		}
	}
	b.ReportMetric(float64(routes)/float64(names*relays), "routes/name/relay")
	b.ReportMetric(float64(memory.Live()-before)/float64(routes), "B/route")
	b.ReportMetric(float64(m.held)/float64(names), "held/name")
	gone, longest := 0, 0.0
	for _, p := range pubs {
		n, hops := m.count(func() { m.apply(p.at, route.SessionDown{ID: p.id}) })
		gone, longest = gone+n, max(longest, hops)
	}
	b.ReportMetric(float64(gone)/float64(names), "messages/gone")
	b.ReportMetric(longest, "hops-gone")
	runtime.KeepAlive(m)
}
