package bench_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/bench"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/relay"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// start runs a relay in this process and returns its address.
func start(t *testing.T) string {
	t.Helper()
	public, err := auth.NewPublic(auth.PublicRules{Both: []string{"**"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Listen: endpoint.Config{Addr: "127.0.0.1:0"}, Certificates: tlsconf.Config{Generate: []string{"localhost"}}, Auth: public,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r.Addr()
}

// runner is any mode.
type runner interface {
	Run(ctx context.Context) (bench.Result, error)
}

func target(url string) bench.Target {
	return bench.Target{Publish: url, TLS: tlsconf.ClientConfig{Insecure: true}, PIDs: []int{os.Getpid()}}
}

func media(url string) bench.Media {
	return bench.Media{
		Target: target(url), Mode: "fanout", Viewers: 5, Rate: 50, Size: 1000, Group: 5, MaxAge: 5 * time.Second,
		Warmup: 100 * time.Millisecond, Window: time.Second, Drain: 5 * time.Second, Connecting: 3, PerSocket: 2,
	}
}

// TestModes makes a short run of each mode against a relay in this process, which must lose nothing.
func TestModes(t *testing.T) {
	addr := start(t)
	web, raw := "https://"+addr+"/", "moqt://"+addr+"/"
	bulk := media(raw)
	bulk.Rate, bulk.InFlight, bulk.Size, bulk.Viewers = 0, 4, 100_000, 2
	old := media(web)
	old.Versions = []message.Version{message.Lite05}
	join := bench.Join{
		Target: target(web), Joiners: 6, PerSec: 20, Wait: true, Viewers: 2, Rate: 50, Size: 1000, Group: 5, MaxAge: 5 * time.Second,
		Drain: 5 * time.Second, Connecting: 2, PerSocket: 2,
	}
	storm := join
	storm.PerSec, storm.AtOnce, storm.Stay, storm.Wait, storm.Viewers = 0, 3, true, false, 0
	for name, test := range map[string]struct {
		run     runner
		carrier string
		version string
		check   func(r bench.Result) bool
	}{
		"web": {media(web), "webtransport", "moq-lite-06", func(r bench.Result) bool {
			m := r.Media
			return m.Frames >= 5*5 && m.Mbit > 0.1 && m.Delay.P50 > 0 && m.Delay.Max >= m.Delay.P99 && m.Late.Max > 0 && m.PerGbit > 0 && m.PerFrame > 0
		}},
		"raw": {media(raw), "quic", "moq-lite-06", func(r bench.Result) bool { return r.Media.Frames >= 5*5 }},
		"05":  {old, "webtransport", "moq-lite-05", func(r bench.Result) bool { return r.Media.Frames >= 5*5 }},
		"bulk": {bulk, "quic", "moq-lite-06", func(r bench.Result) bool {
			return r.Media.Frames > 0 && r.Media.Rate == 0 && r.Media.Late.Max == 0
		}},
		"join": {join, "webtransport", "moq-lite-06", func(r bench.Result) bool {
			j := r.Join
			return j.Joiners == 6 && j.Failed == 0 && j.Total.P50 >= j.Connect.P50 && j.Announced.P50 > 0 && j.Frame.P50 > 0 && j.Delay.P50 > 0
		}},
		"storm": {storm, "webtransport", "moq-lite-06", func(r bench.Result) bool {
			return r.Join.Failed == 0 && r.Join.Announced.P50 == 0 && r.Join.Viewers == 0 && r.Join.Delay.P50 == 0
		}},
		"announce": {bench.Announce{Target: target(web), Broadcasts: 50, Watchers: 3, Limit: 20 * time.Second}, "webtransport", "moq-lite-06", func(r bench.Result) bool {
			a := r.Announce
			return a.Missing == 0 && a.Announced > 0 && a.Late > 0 && a.Withdrawn > 0
		}},
		"idle": {bench.Idle{Target: target(raw), Sessions: 6, Settle: 10 * time.Millisecond, Window: 200 * time.Millisecond, Connecting: 2, PerSocket: 4}, "quic", "moq-lite-06", func(r bench.Result) bool {
			return r.Idle.Alive == 6 && r.Idle.Ready.P50 > 0
		}},
		"bare": {bench.Idle{Target: target(raw), Sessions: 3, Bare: true, Window: 100 * time.Millisecond, Connecting: 2, PerSocket: 4}, "quic", "moq-lite-06", func(r bench.Result) bool {
			return r.Idle.Alive == 3
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.run.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !got.Good || len(got.Faults) > 0 || got.Carrier != test.carrier || got.Version != test.version || !test.check(got) {
				text, _ := json.Marshal(got)
				t.Errorf("%s", text)
			}
			lasted := got.Seconds > 0 || name == "announce" // which may take less than a millisecond
			if len(got.Relays) != 1 || got.Relays[0].RSS <= 0 || !lasted || got.OwnCores < 1 {
				t.Errorf("load %+v", got.Load)
			}
			if !strings.Contains(string(got.Table()), "good") {
				t.Errorf("table\n%s", got.Table())
			}
		})
	}
}

// TestFailover: when the publisher leaves the first relay, what a viewer of the same relay sees goes on from the second
// session.
func TestFailover(t *testing.T) {
	url := "moqt://" + start(t) + "/"
	got, err := bench.Failover{
		Target: target(url), Second: url, Viewers: 2, Rate: 50, Size: 500, Group: 10, MaxAge: 30 * time.Second,
		Before: 200 * time.Millisecond, After: 1500 * time.Millisecond, Connecting: 2, PerSocket: 2,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := got.Failover; !got.Good || f.Event != "publisher left" || f.Gap <= 0 || f.Interval != 20 || f.Silent != 0 {
		t.Errorf("%+v %v", got.Failover, got.Faults)
	}
}

// TestRefused: what cannot be run is an error, and nothing is left behind.
func TestRefused(t *testing.T) {
	good := media("moqt://127.0.0.1:1/")
	change := func(f func(*bench.Media)) bench.Media { m := good; f(&m); return m }
	for name, r := range map[string]runner{
		"no viewers":     change(func(m *bench.Media) { m.Viewers = 0 }),
		"no window":      change(func(m *bench.Media) { m.Window = 0 }),
		"no pace":        change(func(m *bench.Media) { m.Rate = 0 }),
		"small frames":   change(func(m *bench.Media) { m.Size = 31 }),
		"large groups":   change(func(m *bench.Media) { m.Size, m.Group = 1<<20, 1<<20 }),
		"no URL":         change(func(m *bench.Media) { m.Publish = "relay" }),
		"nobody there":   change(func(m *bench.Media) { m.Publish = "moqt://127.0.0.1:1/" }),
		"both paces":     bench.Join{Target: good.Target, Joiners: 1, PerSec: 1, AtOnce: 1, Rate: 1, Size: 100, Group: 1, Connecting: 1, PerSocket: 1},
		"neither pace":   bench.Join{Target: good.Target, Joiners: 1, Rate: 1, Size: 100, Group: 1, Connecting: 1, PerSocket: 1},
		"no broadcasts":  bench.Announce{Target: good.Target, Watchers: 1, Limit: time.Second},
		"no sessions":    bench.Idle{Target: good.Target, Window: time.Second, Connecting: 1, PerSocket: 1},
		"ends init":      bench.Failover{Target: good.Target, Second: "x", PID: 1, Signal: syscall.SIGKILL, Viewers: 1, Rate: 1, Size: 100, Group: 1, After: time.Second, Connecting: 1, PerSocket: 1},
		"no such second": bench.Failover{Target: good.Target, Second: "x", Viewers: 1, Rate: 1, Size: 100, Group: 1, After: time.Second, Connecting: 1, PerSocket: 1},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if _, err := r.Run(ctx); err == nil {
			t.Errorf("%s: it runs", name)
		}
		cancel()
	}
	gone := media("moqt://" + start(t) + "/")
	gone.PIDs = []int{1 << 30}
	if _, err := gone.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "1073741824") {
		t.Errorf("a process that is not there: %v", err)
	}
}
