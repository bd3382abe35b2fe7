package route_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/memory"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

const benchRoutes = 100_000

// benchTable has a peer with a route each for broadcasts such as "event-0012/cam-3", a second peer without
// routes, and as many consumers of everything.
func benchTable(tb testing.TB, routes, consumers int) (*route.Table, []string) {
	tb.Helper()
	t := route.New(route.Config{Hop: 1})
	apply := func(e route.Event) {
		if _, err := t.Apply(epoch, e); err != nil {
			tb.Fatal(err)
		}
	}
	for id := range route.SessionID(2) {
		apply(route.SessionUp{SessionInfo: route.SessionInfo{
			ID: id + 1, Hop: route.Hop(id + 2), Wire: route.WireLite06, Price: 1, Source: route.SourcePeer,
			Publish: paths.All, Subscribe: paths.All,
		}})
	}
	for i := range consumers {
		id := route.SessionID(10 + i)
		apply(route.SessionUp{SessionInfo: route.SessionInfo{
			ID: id, Assigned: route.Hop(1_000_000 + i), Wire: route.WireLite06, Publish: paths.All, Subscribe: paths.All,
		}})
		apply(route.Listen{Consumer: route.ConsumerID(i + 1), Session: id})
	}
	names := make([]string, routes)
	for i := range names {
		names[i] = fmt.Sprintf("event-%04d/cam-%d", i/10, i%10)
		apply(route.Announce{Session: 1, Advert: route.AdvertID(i + 1), Prefix: names[i], Advertised: benchAdvertised(i)})
	}
	return t, names
}

// benchAdvertised is an advertisement by one of 100 publishers.
func benchAdvertised(i int) route.Advertised {
	return route.Advertised{
		Hops: []route.Hop{route.Hop(1000 + i%100), 7}, Sender: 2, Cost: route.Cost{Warm: 3, Cold: 3},
	}
}

// BenchmarkBytesPerRoute reports the memory that one route takes, and what each consumer that holds it adds.
func BenchmarkBytesPerRoute(b *testing.B) {
	for _, consumers := range []int{0, 1, 10} {
		b.Run(fmt.Sprintf("consumers=%d", consumers), func(b *testing.B) {
			for b.Loop() {
				before := memory.Live()
				t, names := benchTable(b, benchRoutes, consumers)
				b.ReportMetric(float64(memory.Live()-before)/benchRoutes, "B/route")
				runtime.KeepAlive(t)
				runtime.KeepAlive(names)
			}
		})
	}
}

// BenchmarkAnnounce adds and withdraws a route beside 100,000 others: two events, each seen by all consumers.
func BenchmarkAnnounce(b *testing.B) {
	for _, consumers := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("consumers=%d", consumers), func(b *testing.B) {
			t, _ := benchTable(b, benchRoutes, consumers)
			announce := route.Announce{Session: 2, Advert: 1, Prefix: "event-new/cam-1", Advertised: benchAdvertised(1)}
			announce.Sender = 3
			b.ReportAllocs()
			for b.Loop() {
				apply(b, t, epoch, announce)
				apply(b, t, epoch, route.Withdraw{Session: 2, Advert: 1, Explicit: true})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N*max(consumers, 1)), "ns/event/consumer")
		})
	}
}

// BenchmarkUpdate changes the price of one of 100,000 routes; every other update falls into the hold of the
// one before and drops it.
func BenchmarkUpdate(b *testing.B) {
	for _, consumers := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("consumers=%d", consumers), func(b *testing.B) {
			t, _ := benchTable(b, benchRoutes, consumers)
			events := [2]route.Event{
				route.Update{Session: 1, Advert: 5000, Advertised: benchAdvertised(4999)},
				route.Update{Session: 1, Advert: 5000, Advertised: benchAdvertised(4998)},
			}
			now := epoch
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now = now.Add(time.Millisecond)
				apply(b, t, now, events[i%2])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*max(consumers, 1)), "ns/event/consumer")
		})
	}
}

// BenchmarkStandby adds and loses a second route at a prefix that all consumers hold: nothing to tell.
func BenchmarkStandby(b *testing.B) {
	t, names := benchTable(b, benchRoutes, 100)
	announce := route.Announce{Session: 2, Advert: 1, Prefix: names[700], Advertised: benchAdvertised(1)}
	announce.Sender, announce.Cost.Warm = 3, 50
	b.ReportAllocs()
	for b.Loop() {
		apply(b, t, epoch, announce)
		apply(b, t, epoch, route.Withdraw{Session: 2, Advert: 1})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N*100), "ns/event/consumer")
}

// BenchmarkWideClaim re-prices a claim to everything, with 100,000 routes and 100 consumers below.
func BenchmarkWideClaim(b *testing.B) {
	t, _ := benchTable(b, benchRoutes, 0)
	for i := range 100 {
		id := route.SessionID(10 + i)
		apply(b, t, epoch, route.SessionUp{SessionInfo: route.SessionInfo{
			ID: id, Assigned: route.Hop(1_000_000 + i), Wire: route.WireLite06, Publish: paths.All, Subscribe: paths.All,
		}})
		apply(b, t, epoch, route.Listen{Consumer: route.ConsumerID(i + 1), Session: id, Root: fmt.Sprintf("event-%04d", i)})
	}
	apply(b, t, epoch, route.Announce{Session: 2, Advert: 1, Advertised: route.Advertised{Sender: 3}})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		cost := route.Cost{Warm: uint64(i % 2)}
		apply(b, t, epoch, route.Update{Session: 2, Advert: 1, Advertised: route.Advertised{Sender: 3, Cost: cost}})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*100), "ns/event/consumer")
}

func BenchmarkLookup(b *testing.B) {
	t, names := benchTable(b, benchRoutes, 0)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(names)
		if _, ok := t.Lookup(names[i], route.Requester{Session: 9, Hop: 77}); !ok {
			b.Fatal("not found")
		}
	}
}

// BenchmarkListen opens and closes a consumer of 100,000 names, and one that may see ten of them.
func BenchmarkListen(b *testing.B) {
	for _, grant := range []string{"**", "event-0012/**"} {
		b.Run(grant, func(b *testing.B) {
			t, _ := benchTable(b, benchRoutes, 0)
			subscribe, err := paths.ParseSet(grant)
			if err != nil {
				b.Fatal(err)
			}
			apply(b, t, epoch, route.SessionUp{SessionInfo: route.SessionInfo{ID: 9, Wire: route.WireLite06, Subscribe: subscribe}})
			b.ReportAllocs()
			for b.Loop() {
				apply(b, t, epoch, route.Listen{Consumer: 1, Session: 9})
				apply(b, t, epoch, route.Unlisten{Consumer: 1})
			}
		})
	}
}

// BenchmarkSessionDown loses a peer with all its 100,000 routes.
func BenchmarkSessionDown(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		t, _ := benchTable(b, benchRoutes, 1)
		b.StartTimer()
		apply(b, t, epoch, route.SessionDown{ID: 1})
	}
}

func apply(tb testing.TB, t *route.Table, now time.Time, e route.Event) {
	tb.Helper()
	if _, err := t.Apply(now, e); err != nil {
		tb.Fatal(err)
	}
}

// TestBytesPerRoute holds the memory budget: 400 bytes a route.
func TestBytesPerRoute(t *testing.T) {
	before := memory.Live()
	table, names := benchTable(t, 50_000, 0)
	got := float64(memory.Live()-before) / 50_000
	runtime.KeepAlive(table)
	runtime.KeepAlive(names)
	if got > 400 {
		t.Errorf("%.0f bytes per route", got)
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	table, names := benchTable(t, 100, 0)
	got := testing.AllocsPerRun(100, func() {
		table.Lookup(names[5], route.Requester{Session: 9, Hop: 77})
		table.Through(names[5], route.Requester{Session: 9, Hop: 77})
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
