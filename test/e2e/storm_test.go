//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
)

// stormRate is limits.announce_rate of the relays in storms, so low that the ten seconds' worth that may come at once are
// soon over.
const stormRate = 100

// stormy starts a relay for storms.
func stormy(t *testing.T) drive.Relay {
	t.Helper()
	t.Setenv("MOQ_LIMITS_ANNOUNCE_RATE", fmt.Sprint(stormRate))
	t.Setenv("GOGC", "20")
	return drive.StartRelayWith(t, "relay", func(drive.Relay) string { return "" })
}

// announcing makes a stranger a publisher that has announced nothing yet.
func (g *garbage) announcing(t *testing.T) *stranger {
	t.Helper()
	s := g.meet(t, quicCarrier, message.Lite06).greet()
	s.feed = s.request(message.StreamAnnounce, new(message.AnnounceRequest))
	s.send(s.feed, message.AnnounceOK{Hop: 7})
	return s
}

// pour writes announcements at so many a second, in batches, as long as the relay takes them and ctx lasts. It returns how
// many it wanted to write.
func (s *stranger) pour(ctx context.Context, perSecond int, next func(i uint64) message.Announce) (n uint64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	stop := context.AfterFunc(ctx, func() { s.feed.Reset(1) })
	defer stop()
	for ctx.Err() == nil {
		var parts []any
		for range perSecond / 100 {
			parts = append(parts, next(n))
			n++
		}
		if _, err := s.feed.Write(s.parts(parts)); err != nil {
			return n
		}
		<-tick.C
	}
	return n
}

// TestAnnounceStorms has one session change what it announces much faster than it may. Its changes wait, the relay neither
// works for it alone nor remembers what it cannot come to, and all others get what they want as if nothing were.
func TestAnnounceStorms(t *testing.T) {
	r := stormy(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	feed, err := g.viewer.Announced(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for name, storm := range map[string]struct {
		perSecond int
		first     []any
		next      func(i uint64) message.Announce
		most      float64 // announcements and withdrawals that the relay takes in a second, once it has had enough
	}{
		"10000 pairs a second": {perSecond: 20_000, next: func(i uint64) message.Announce {
			if i%2 == 0 {
				return message.Announce{Suffix: "storm/pair", Hops: []message.Hop{9}}
			}
			return message.Announce{Kind: message.AnnounceEnd, ID: i / 2}
		}, most: 2 * stormRate},
		"10000 names a second": {perSecond: 20_000, next: func(i uint64) message.Announce {
			if i%2 == 0 {
				return message.Announce{Suffix: fmt.Sprint("storm/", i)}
			}
			return message.Announce{Kind: message.AnnounceEnd, ID: i / 2}
		}, most: 2 * stormRate},
		"a price every millisecond": {
			perSecond: 1000, first: []any{message.Announce{Suffix: "storm/price"}},
			next: func(i uint64) message.Announce {
				return message.Announce{Kind: message.AnnounceRestart, Warm: i % 50, Cold: i % 50}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := g.announcing(t)
			s.send(s.feed, storm.first...)
			ctx, cancel := context.WithCancel(t.Context())
			poured := make(chan uint64, 1)
			go func() { poured <- s.pour(ctx, storm.perSecond, storm.next) }()
			limited := func() float64 { return r.Metric(t, "moqmesh_limited_total", "announce_rate") }
			was := limited()
			drive.WaitFor(t, patience, "the storm to be slowed", func() bool { return limited() > was })
			g.bearsStorm(t, r, feed, storm.most)
			if now := loadOf(t, r); now.memory > before.memory+2*maxGrowth {
				t.Errorf("the relay holds %+v, %+v before", now, before)
			}
			cancel()
			t.Logf("%d messages were to be sent", <-poured)
			s.conn.Close(0, "")
		})
	}
	wantLoad(t, r, before, patience)
	check()
}

// bearsStorm looks at a relay in a storm for three seconds.
func (g *garbage) bearsStorm(t *testing.T, r drive.Relay, feed *client.Announcements, most float64) {
	t.Helper()
	const length = 3 * time.Second
	taken := func() float64 {
		return r.Metric(t, "moq_relay_announces_started_total", "subscriber") + r.Metric(t, "moq_relay_announces_ended_total", "subscriber")
	}
	publisher, err := client.Dial(t.Context(), g.r.MOQT(), client.Config{Dialer: g.dialers[message.Lite06], Role: client.RolePublisher})
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	begin, cpu, had := time.Now(), r.Metric(t, "process_cpu_seconds_total"), taken()
	var worst time.Duration
	for i := 0; time.Since(begin) < length; i++ {
		worst = max(worst, hears(t, publisher, feed, fmt.Sprint("calm/", i)))
		time.Sleep(50 * time.Millisecond)
	}
	took := time.Since(begin).Seconds()
	rate := (taken() - had) / took
	t.Logf("%.0f announcements and withdrawals a second, %.0f %% of a core, others hear of new names within %v",
		rate, 100*(r.Metric(t, "process_cpu_seconds_total")-cpu)/took, worst)
	if worst > 2*time.Second {
		t.Errorf("others hear of a new name after %v", worst)
	}
	if limit := 1.5*most + 200; most > 0 && rate > limit { // with those of others, and some slack
		t.Errorf("the relay takes %.0f announcements and withdrawals a second", rate)
	}
}

// hears announces a name and returns how long it takes until a listener hears of it.
func hears(t *testing.T, publisher *client.Client, feed *client.Announcements, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	b, err := publisher.Publish(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		a, err := feed.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for %s: %v", name, err)
		}
		if a.Path == name && a.Active {
			return time.Since(begin)
		}
	}
}

// TestManyPrefixes has one session announce as many prefixes as it may: all are held, others go on, and one more ends the
// session and takes all of them away.
func TestManyPrefixes(t *testing.T) {
	const most = 100_000
	r := stormy(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	s := g.announcing(t)
	begin := time.Now()
	var parts []any
	for i := range most {
		parts = append(parts, message.Announce{Suffix: fmt.Sprintf("tenant/%d/room", i)})
	}
	b := s.parts(parts)
	for len(b) > 0 {
		n, err := s.feed.Write(b[:min(len(b), 32<<10)])
		if err != nil {
			t.Fatal(err)
		}
		b = b[n:]
	}
	drive.WaitFor(t, 2*patience, "all prefixes", func() bool { return r.Metric(t, "moqmesh_routes") >= most })
	held := loadOf(t, r)
	t.Logf("%d prefixes after %v, %.0f bytes each", most, time.Since(begin), (held.memory-before.memory)/most)
	if grown := held.memory - before.memory; grown > most*3000 { // the race detector makes it more
		t.Errorf("%d prefixes take %.0f bytes", most, grown)
	}
	other := g.announcing(t)
	other.send(other.feed, message.Announce{Suffix: "other"})
	feed, err := g.viewer.Announced(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	if told := hear(t, feed); !active(told) || len(told) == 0 {
		t.Errorf("beside them a viewer hears %+v", told)
	}
	s.send(s.feed, message.Announce{Suffix: "one more"})
	s.wantClose(lite.SessionInternal)
	if n := r.Metric(t, "moqmesh_limited_total", `limit="announcements"`); n == 0 {
		t.Error("nothing was turned away")
	}
	drive.WaitFor(t, patience, "the prefixes to go", func() bool { return r.Metric(t, "moqmesh_routes") < 10 })
	other.wantAlive()
	other.conn.Close(0, "")
	check()
}
