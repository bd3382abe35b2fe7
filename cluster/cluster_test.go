package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/internal/backoff"
)

var errGone = errors.New("connection lost")

// session is a scripted session: it lasts until end is called or its context ends.
type session struct {
	id     uint64
	url    string
	over   chan error
	goaway chan string
	slow   time.Duration // what it takes to end after its context
	ended  atomic.Bool
}

func (s *session) Serve(ctx context.Context) error {
	defer s.ended.Store(true)
	select {
	case err := <-s.over:
		return err
	case <-ctx.Done():
		time.Sleep(s.slow)
		return context.Cause(ctx)
	}
}

func (s *session) Goaway() <-chan string { return s.goaway }
func (s *session) ID() uint64            { return s.id }
func (s *session) end(err error)         { s.over <- err }

// network is a scripted dial function that records its calls.
type network struct {
	mu    sync.Mutex
	start time.Time
	dials []time.Duration // since start
	urls  []string
	all   []*session
	// answer decides on a dial; nil = a session.
	answer    func(ctx context.Context, e cluster.Entry, n int) error
	lasts     time.Duration // ends every session after that time, if not 0
	slowFirst time.Duration // what the first session takes to end after its context
}

func newNetwork() *network { return &network{start: time.Now()} }

func (n *network) dial(ctx context.Context, e cluster.Entry) (cluster.Session, error) {
	n.mu.Lock()
	n.dials = append(n.dials, time.Since(n.start))
	n.urls = append(n.urls, e.URL().String())
	count, answer := len(n.dials), n.answer
	n.mu.Unlock()
	if answer != nil {
		if err := answer(ctx, e, count); err != nil {
			return nil, err
		}
	}
	s := &session{id: uint64(count), url: e.URL().String(), over: make(chan error, 1), goaway: make(chan string, 1)}
	if count == 1 {
		s.slow = n.slowFirst
	}
	if n.lasts != 0 {
		time.AfterFunc(n.lasts, func() { s.end(errGone) })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, s)
	return s, nil
}

func (n *network) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dials)
}

// last returns the newest session.
func (n *network) last() *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[len(n.all)-1]
}

func (n *network) times() []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]time.Duration(nil), n.dials...)
}

// dialed returns the URLs of all dials.
func (n *network) dialed() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.urls...)
}

// sessions returns all that there were.
func (n *network) sessions() []*session {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*session(nil), n.all...)
}

func always(err error) func(context.Context, cluster.Entry, int) error {
	return func(context.Context, cluster.Entry, int) error { return err }
}

// hang answers no dial.
func hang(ctx context.Context, _ cluster.Entry, _ int) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// half is chance without chance.
func half() float64 { return 0.5 }

func only(t *testing.T, c *cluster.Cluster) cluster.Status {
	t.Helper()
	all := c.Status()
	if len(all) != 1 {
		t.Fatalf("%d peers, want 1", len(all))
	}
	return all[0]
}

// TestBackoffSequence (C10): the ceiling doubles from 1 s to 30 s; with chance fixed at one half the pauses are half
// of it.
func TestBackoffSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = always(errGone)
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
		defer c.Close()
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		time.Sleep(61 * time.Second)
		synctest.Wait()
		const ms = time.Millisecond
		want := []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms, 7500 * ms, 15500 * ms, 30500 * ms, 45500 * ms, 60500 * ms}
		if diff := cmp.Diff(want, n.times()); diff != "" {
			t.Error(diff)
		}
		s := only(t, c)
		if s.State != cluster.StateWaiting || s.Attempts != 9 || s.LastError != errGone.Error() ||
			s.NextDial.Sub(n.start) != 75500*ms || s.LastErrorAt.Sub(n.start) != 60500*ms {
			t.Errorf("status %+v", s)
		}
		if got := c.Counters(); got != (cluster.Counters{Dials: 9, Failures: 9}) {
			t.Errorf("counters %+v", got)
		}
	})
}

// configured is the back-off of a relay whose configuration says nothing of it.
var configured = backoff.Policy{Early: 5 * time.Second, For: 10 * time.Second}

// TestPeerThatAcceptsThenCloses (faults 4): a session that is over at once, with or without an error, or after 9 s,
// does not reset the pause; one of 11 s does.
func TestPeerThatAcceptsThenCloses(t *testing.T) {
	tests := map[string]struct {
		lasts    time.Duration
		least    int // dials in 5 minutes
		most     int
		attempts bool // whether attempts go on counting
	}{
		"at once":  {time.Nanosecond, 15, 40, true},
		"9 s":      {9 * time.Second, 10, 20, true},
		"11 s":     {11 * time.Second, 25, 27, false},
		"10 s":     {10 * time.Second, 27, 30, false},
		"1 second": {time.Second, 15, 40, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork()
					n.lasts = tt.lasts
					r := rand.New(rand.NewPCG(seed, 0))
					c := cluster.New(cluster.Config{Dial: n.dial, Rand: r.Float64, Backoff: configured})
					defer c.Close()
					c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
					time.Sleep(5 * time.Minute)
					if got := n.count(); got < tt.least || got > tt.most {
						t.Errorf("seed %d: %d dials in 5 minutes, want %d to %d", seed, got, tt.least, tt.most)
					}
					if s := only(t, c); (s.Attempts > 2) != tt.attempts {
						t.Errorf("seed %d: %d attempts", seed, s.Attempts)
					}
				})
			}
		})
	}
}

// TestRecovery (C10): a peer that is back from a long outage is picked up within 30 s.
func TestRecovery(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			const back = 20 * time.Minute
			n.answer = func(context.Context, cluster.Entry, int) error {
				if time.Since(n.start) < back {
					return errGone
				}
				return nil
			}
			r := rand.New(rand.NewPCG(seed, 1))
			c := cluster.New(cluster.Config{Dial: n.dial, Rand: r.Float64})
			defer c.Close()
			c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
			time.Sleep(back + 30*time.Second)
			if s := only(t, c); s.State != cluster.StateConnected || len(s.Sessions) != 1 {
				t.Errorf("seed %d: 30 s after the outage the peer is %s", seed, s.State)
			}
		})
	}
}

// TestRedialsSpread (faults 4): 30 relays lose one hub; from 10 s after the loss no second holds more than half of
// their redials.
func TestRedialsSpread(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			const relays, lost = 30, time.Minute
			slots := map[int]int{}
			var mu sync.Mutex
			start := time.Now()
			for i := range relays {
				n := newNetwork()
				n.answer = func(context.Context, cluster.Entry, int) error {
					since := time.Since(start) - lost
					if since < 0 {
						return nil
					}
					mu.Lock()
					defer mu.Unlock()
					slots[int(since/time.Second)]++
					return errGone
				}
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				c := cluster.New(cluster.Config{Dial: n.dial, Rand: r.Float64, Backoff: configured})
				defer c.Close()
				c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
				synctest.Wait()
				time.AfterFunc(lost-time.Since(start), func() { n.last().end(errGone) })
			}
			time.Sleep(lost + 2*time.Minute)
			mu.Lock()
			defer mu.Unlock()
			late := 0
			for second, dials := range slots {
				if second >= 10 {
					late += dials
					if dials > relays/2 {
						t.Errorf("seed %d: %d dials in second %d", seed, dials, second)
					}
				}
			}
			if late < relays {
				t.Errorf("seed %d: only %d dials from 10 s on, the test shows nothing", seed, late)
			}
		})
	}
}

// TestDialIsBounded: one dial takes 30 s at most, and its time does not bound the session.
func TestDialIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = func(ctx context.Context, e cluster.Entry, count int) error {
			if count == 1 {
				return hang(ctx, e, count)
			}
			return nil
		}
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
		defer c.Close()
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		time.Sleep(31 * time.Second)
		synctest.Wait()
		want := []time.Duration{0, 30500 * time.Millisecond}
		if diff := cmp.Diff(want, n.times()); diff != "" {
			t.Error(diff)
		}
		if got := only(t, c).LastError; got != context.DeadlineExceeded.Error() {
			t.Errorf("last error %q", got)
		}
		time.Sleep(time.Hour)
		if n.last().ended.Load() {
			t.Error("the session ended with the time of its dial")
		}
	})
}

// TestRemovalStopsDialing (faults 5): removed while waiting, dialing or serving, a peer is not dialed again, its
// session ends at once, and coming back dials at once.
func TestRemovalStopsDialing(t *testing.T) {
	tests := map[string]struct {
		answer func(context.Context, cluster.Entry, int) error
		state  cluster.State
	}{
		"during the pause":  {always(errGone), cluster.StateWaiting},
		"during the dial":   {hang, cluster.StateDialing},
		"during a session":  {nil, cluster.StateConnected},
		"long after a loss": {always(errGone), cluster.StateWaiting},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				n.answer = tt.answer
				c := cluster.New(cluster.Config{Dial: n.dial, Rand: func() float64 { return 0.999 }})
				defer c.Close()
				list := []cluster.Entry{entry(t, "https://hub/")}
				c.Set(cluster.SourceAPI, list)
				time.Sleep(10 * time.Millisecond)
				if name == "long after a loss" {
					time.Sleep(10 * time.Minute)
				}
				synctest.Wait()
				if got := only(t, c).State; got != tt.state {
					t.Fatalf("state %s, want %s", got, tt.state)
				}
				before := n.count()
				c.Set(cluster.SourceAPI, nil)
				synctest.Wait()
				if got := c.Status(); len(got) != 0 {
					t.Fatalf("status %+v after removal", got)
				}
				if tt.state == cluster.StateConnected && !n.last().ended.Load() {
					t.Error("the session goes on")
				}
				time.Sleep(time.Hour)
				if got := n.count(); got != before {
					t.Fatalf("%d dials after removal", got-before)
				}
				c.Set(cluster.SourceAPI, list)
				synctest.Wait()
				if got := n.count(); got != before+1 {
					t.Errorf("%d dials after coming back, want 1 at once", got-before)
				}
			})
		})
	}
}

// TestChangedSettingsRedial: only the changed peer is dropped and dialed, at once and with the new settings.
func TestChangedSettingsRedial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		c := cluster.New(cluster.Config{Dial: n.dial})
		defer c.Close()
		c.Set(cluster.SourceAPI, []cluster.Entry{entry(t, "https://a/"), entry(t, "https://b/?jwt=old")})
		synctest.Wait()
		first := n.sessions()
		c.Set(cluster.SourceAPI, []cluster.Entry{entry(t, "https://a/"), entry(t, "https://b/?jwt=new")})
		synctest.Wait()
		for _, s := range first {
			if changed := strings.HasPrefix(s.url, "https://b/"); s.ended.Load() != changed {
				t.Errorf("%s: ended %v", s.url, s.ended.Load())
			}
		}
		if got := n.last().url; n.count() != 3 || got != "https://b/?jwt=new" {
			t.Errorf("%d dials, the last to %s", n.count(), got)
		}
	})
}

// TestCloseWaits for a dial that is slow to give up and for sessions.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Bool
		n := newNetwork()
		n.answer = func(ctx context.Context, e cluster.Entry, _ int) error {
			if e.Key() != "https://slow/" {
				return nil
			}
			<-ctx.Done()
			time.Sleep(300 * time.Millisecond)
			slow.Store(true)
			return ctx.Err()
		}
		c := cluster.New(cluster.Config{Dial: n.dial})
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://slow/"), entry(t, "https://b/")})
		synctest.Wait()
		c.Close()
		if !slow.Load() || !n.last().ended.Load() {
			t.Error("Close did not wait")
		}
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://late/")})
		time.Sleep(time.Minute)
		if n.count() != 2 {
			t.Error("dialed after Close")
		}
		c.Close()
	})
}

// TestDialWonByRemoval: a session that is established although the peer was removed meanwhile ends at once.
func TestDialWonByRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = func(ctx context.Context, _ cluster.Entry, _ int) error {
			time.Sleep(time.Second) // deaf to ctx
			return nil
		}
		c := cluster.New(cluster.Config{Dial: n.dial})
		defer c.Close()
		c.Set(cluster.SourceAPI, []cluster.Entry{entry(t, "https://hub/")})
		synctest.Wait()
		c.Set(cluster.SourceAPI, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if !n.last().ended.Load() {
			t.Error("the session lives on")
		}
	})
}

// TestRefusalsAreLoud (C9): one warning per attempt, without path or credential.
func TestRefusalsAreLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = func(_ context.Context, e cluster.Entry, _ int) error {
			return fmt.Errorf("GET %s: %w", e.URL(), cluster.ErrRefused)
		}
		var log strings.Builder
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub:4443/SECRET/x?jwt=SECRET&a=SECRET")})
		time.Sleep(20 * time.Second)
		shown := only(t, c).LastError
		c.Close()
		if got := strings.Count(log.String(), `level=WARN msg="cluster peer refused us" peer=https://hub:4443`); got != n.count() || got < 5 {
			t.Errorf("%d warnings for %d attempts:\n%s", got, n.count(), log.String())
		}
		if strings.Contains(log.String()+shown, "SECRET") {
			t.Errorf("a secret is shown:\n%s\n%s", log.String(), shown)
		}
	})
}

// TestOurselves (C22a): said once, redialed at the ceiling only.
func TestOurselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = always(fmt.Errorf("setup: %w", &cluster.SelfError{Local: "192.0.2.1:9", Remote: "192.0.2.2:443"}))
		var log strings.Builder
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		time.Sleep(95 * time.Second)
		synctest.Wait()
		want := []time.Duration{0, 30 * time.Second, 60 * time.Second, 90 * time.Second}
		if diff := cmp.Diff(want, n.times()); diff != "" {
			t.Error(diff)
		}
		shown := only(t, c).LastError
		c.Close()
		if got := strings.Count(log.String(), "level=WARN"); got != 1 {
			t.Errorf("%d warnings:\n%s", got, log.String())
		}
		for _, text := range []string{log.String(), shown} {
			if !strings.Contains(text, "192.0.2.1:9") || !strings.Contains(text, "192.0.2.2:443") {
				t.Errorf("an address is missing: %s", text)
			}
		}
	})
}

// TestSharedToken (C8): read anew for each dial, beside an own one never.
func TestSharedToken(t *testing.T) {
	path := t.TempDir() + "/token"
	write(t, path, "one")
	token, err := cluster.OpenTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = always(errGone)
		var log strings.Builder
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half, Token: token, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		c.Set(cluster.SourceAPI, []cluster.Entry{entry(t, "https://a/?x=1")})
		synctest.Wait()
		write(t, path, "two")
		time.Sleep(time.Second)
		synctest.Wait()
		write(t, path, "")
		time.Sleep(7 * time.Second)
		synctest.Wait()
		c.Set(cluster.SourceAPI, []cluster.Entry{entry(t, "https://b/?jwt=own")})
		synctest.Wait()
		c.Close()
		want := []string{"https://a/?x=1&jwt=one", "https://a/?x=1&jwt=two", "https://a/?x=1&jwt=two", "https://a/?x=1&jwt=two", "https://a/?x=1&jwt=two", "https://b/?jwt=own"}
		if diff := cmp.Diff(want, n.dialed()); diff != "" {
			t.Error(diff)
		}
		if got := strings.Count(log.String(), "token file is unusable"); got != 1 {
			t.Errorf("%d lines about the empty file:\n%s", got, log.String())
		}
	})
}

// TestPolicyReachesTheLoop: a configured back-off is used.
func TestPolicyReachesTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = always(errGone)
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half, Backoff: backoff.Policy{Initial: 10 * time.Second, Multiplier: 1}})
		defer c.Close()
		c.Set(cluster.SourceConnect, []cluster.Entry{entry(t, "https://hub/")})
		time.Sleep(12 * time.Second)
		want := []time.Duration{0, 5 * time.Second, 10 * time.Second}
		if diff := cmp.Diff(want, n.times()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestStatusAsJSON: what the page for operators shows.
func TestStatusAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.answer = func(_ context.Context, e cluster.Entry, _ int) error {
			if e.Key() == "https://a/x" {
				return nil
			}
			return errGone
		}
		c := cluster.New(cluster.Config{Dial: n.dial, Rand: half})
		defer c.Close()
		c.Set(cluster.SourceLAN, []cluster.Entry{entry(t, "https://a/x?jwt=T"), entry(t, "https://b/")})
		synctest.Wait()
		id := n.last().id
		got, err := json.Marshal(c.Status())
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`[{"key":"https://a/x","name":"https://a:443","source":"lan","cost":1,"state":"connected","since":"2000-01-01T00:00:00Z","attempts":1,"sessions":[%d]},`+
			`{"key":"https://b/","name":"https://b:443","source":"lan","cost":1,"state":"waiting","since":"2000-01-01T00:00:00Z","attempts":1,`+
			`"last_error":"connection lost","last_error_at":"2000-01-01T00:00:00Z","next_dial":"2000-01-01T00:00:00.5Z","sessions":[]}]`, id)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Error(diff)
		}
	})
}
