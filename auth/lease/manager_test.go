package lease_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/paths"
)

// server is an auth server in the process that does as it is told.
type server struct {
	mu     sync.Mutex
	answer func(ctx context.Context, r auth.Request) (auth.Grant, error)
	asked  []auth.Request
	times  []time.Time
	ends   []auth.End
	ended  []string // ids
	now    int      // questions under way
	most   int
	onEnd  func(ctx context.Context)
}

func (s *server) Authorize(ctx context.Context, r auth.Request) (auth.Grant, error) {
	s.mu.Lock()
	s.asked, s.times = append(s.asked, r), append(s.times, time.Now())
	s.now++
	s.most = max(s.most, s.now)
	answer := s.answer
	s.mu.Unlock()
	g, err := answer(ctx, r)
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return g, err
}

func (s *server) End(ctx context.Context, r auth.Request, e auth.End) {
	if s.onEnd != nil {
		s.onEnd(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends, s.ended = append(s.ends, e), append(s.ended, r.ID)
}

func (s *server) set(answer func(context.Context, auth.Request) (auth.Grant, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// Answers.

func grants(revalidate, lasts time.Duration) func(context.Context, auth.Request) (auth.Grant, error) {
	return func(_ context.Context, r auth.Request) (auth.Grant, error) {
		return auth.Grant{
			Root: strings.Trim(r.Path, "/"), Publish: paths.All, Subscribe: paths.All, Revalidate: revalidate, Expires: time.Now().Add(lasts),
		}, nil
	}
}

func refuses(context.Context, auth.Request) (auth.Grant, error) {
	return auth.Grant{}, auth.Refuse("revoked")
}

func down(context.Context, auth.Request) (auth.Grant, error) {
	return auth.Grant{}, auth.Unavailable("connection refused")
}

func hangs(ctx context.Context, _ auth.Request) (auth.Grant, error) {
	<-ctx.Done()
	return auth.Grant{}, auth.Unavailable("no answer")
}

// holder is a session.
type holder struct {
	mu      sync.Mutex
	grants  []auth.Grant
	ended   *lease.Ended
	endedAt time.Time
}

func (h *holder) Granted(g auth.Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants = append(h.grants, g)
}

func (h *holder) Ended(e lease.Ended) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended, h.endedAt = &e, time.Now()
}

func (h *holder) end() (lease.Ended, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		return lease.Ended{}, time.Time{}
	}
	return *h.ended, h.endedAt
}

func request(path string) auth.Request {
	return auth.Request{Transport: auth.TransportQUIC, Remote: "192.0.2.1:1000", Path: path, Query: "jwt=SECRET"}
}

// bubble runs a test in virtual time with a manager around a server.
func bubble(t *testing.T, cfg lease.Config, f func(t *testing.T, m *lease.Manager, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: grants(10*time.Second, time.Hour)}
		cfg.Authorizer = s
		if cfg.Chance == nil {
			cfg.Chance = func() float64 { return 0.5 }
		}
		m := lease.New(cfg)
		defer m.Close()
		f(t, m, s)
	})
}

func open(t *testing.T, m *lease.Manager, path string) (*lease.Lease, *holder) {
	t.Helper()
	l, err := m.Open(t.Context(), request(path))
	if err != nil {
		t.Fatal(err)
	}
	h := new(holder)
	l.Hold(h)
	return l, h
}

// TestOutageAtConnect: nobody new comes in, unless it was granted a moment ago (T4, T4a).
func TestOutageAtConnect(t *testing.T) {
	for name, outage := range map[string]func(context.Context, auth.Request) (auth.Grant, error){"down": down, "hanging": hangs} {
		t.Run(name, func(t *testing.T) {
			bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
				l, _ := open(t, m, "/a")
				l.Close("closed", 0, 0)
				time.Sleep(9 * time.Second)
				s.set(outage)
				if _, err := m.Open(t.Context(), request("/b")); !errors.Is(err, auth.ErrUnavailable) {
					t.Errorf("another question: %v", err)
				}
				l, h := open(t, m, "/a") // 9 or 19 s after the grant
				l.Close("closed", 0, 0)
				if c := m.Counters(); c.Recovered != 1 || c.Connects.Unavailable != 2 || c.Connects.Granted != 1 {
					t.Errorf("%+v", c)
				}
				time.Sleep(31*time.Second - time.Since(s.times[0]))
				if _, err := m.Open(t.Context(), request("/a")); !errors.Is(err, auth.ErrUnavailable) {
					t.Errorf("31 s later: %v", err)
				}
				if e, _ := h.end(); e.Reason != "" {
					t.Error(e)
				}
			})
		})
	}
}

// TestRefusalErases: a refusal that was seen before the outage stays one (T4a).
func TestRefusalErases(t *testing.T) {
	bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
		l, _ := open(t, m, "/a")
		defer l.Close("closed", 0, 0)
		s.set(refuses)
		if _, err := m.Open(t.Context(), request("/a")); !errors.Is(err, auth.ErrRefused) {
			t.Error(err)
		}
		s.set(down)
		if _, err := m.Open(t.Context(), request("/a")); !errors.Is(err, auth.ErrRefused) {
			t.Error(err)
		}
		// A running session's refusal counts as much.
		s.set(grants(10*time.Second, time.Hour))
		other, h := open(t, m, "/b")
		defer other.Close("closed", 0, 0)
		s.set(refuses)
		m.Revalidate([]string{other.ID()})
		synctest.Wait()
		if e, _ := h.end(); e.Reason != lease.ReasonRefused {
			t.Error(e)
		}
		s.set(down)
		if _, err := m.Open(t.Context(), request("/b")); !errors.Is(err, auth.ErrRefused) {
			t.Error(err)
		}
		time.Sleep(31 * time.Second)
		if _, err := m.Open(t.Context(), request("/b")); !errors.Is(err, auth.ErrUnavailable) {
			t.Errorf("long after: %v", err)
		}
	})
}

func TestRecoveryOff(t *testing.T) {
	bubble(t, lease.Config{NoRecovery: true}, func(t *testing.T, m *lease.Manager, s *server) {
		l, _ := open(t, m, "/a")
		defer l.Close("closed", 0, 0)
		s.set(down)
		if _, err := m.Open(t.Context(), request("/a")); !errors.Is(err, auth.ErrUnavailable) {
			t.Error(err)
		}
	})
}

// TestRecoveredIsAskedAbout: within the first step of the back-off the answer is known, and a refusal ends the session.
func TestRecoveredIsAskedAbout(t *testing.T) {
	bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
		l, _ := open(t, m, "/a")
		l.Close("closed", 0, 0)
		s.set(down)
		l, h := open(t, m, "/a")
		s.set(refuses)
		time.Sleep(1250 * time.Millisecond)
		synctest.Wait()
		if e, _ := h.end(); e.Reason != lease.ReasonRefused || !errors.Is(e.Kind, auth.ErrRefused) {
			t.Error(e)
		}
		l.Close("closed", 1, 2)
		synctest.Wait()
		if e := s.ends[1]; e.Reason != "refused" || e.Sent != 1 || e.Received != 2 || s.ended[1] != l.ID() {
			t.Errorf("%+v", e)
		}
	})
}

// TestExpiry: on time, also in an outage, also while a question hangs (T5).
func TestExpiry(t *testing.T) {
	for name, outage := range map[string]func(context.Context, auth.Request) (auth.Grant, error){"down": down, "hanging": hangs, "no cadence": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
				s.set(grants(time.Second, 3*time.Second))
				if outage == nil {
					s.set(grants(0, 3*time.Second))
				}
				start := time.Now()
				l, h := open(t, m, "/a")
				if outage != nil {
					s.set(outage)
				}
				time.Sleep(2999 * time.Millisecond)
				synctest.Wait()
				if e, _ := h.end(); e.Reason != "" {
					t.Fatalf("ended early: %v", e)
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				e, at := h.end()
				if e.Reason != lease.ReasonExpired || !errors.Is(e.Kind, auth.ErrRefused) || at.Sub(start) != 3*time.Second {
					t.Errorf("%v after %v", e, at.Sub(start))
				}
				l.Close("whatever", 0, 0)
				l.Close("again", 0, 0)
				synctest.Wait()
				if diff := cmp.Diff([]auth.End{{Reason: "expired", Duration: 3 * time.Second}}, s.ends); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestAnswersThatEnd: refused, invalid, narrowed (T6, T7), and how they are reported.
func TestAnswersThatEnd(t *testing.T) {
	narrowed := func(ctx context.Context, r auth.Request) (auth.Grant, error) {
		g, err := grants(time.Second, time.Hour)(ctx, r)
		g.Subscribe = paths.Set{}
		return g, err
	}
	odd := func(context.Context, auth.Request) (auth.Grant, error) {
		return auth.DecodeGrant([]byte(`{"publish":5}`), "")
	}
	for name, tt := range map[string]struct {
		answer func(context.Context, auth.Request) (auth.Grant, error)
		reason string
		kind   error
	}{
		"refused":  {refuses, "refused", auth.ErrRefused},
		"narrowed": {narrowed, "grant narrowed", auth.ErrRefused},
		"invalid":  {odd, "invalid", auth.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
				s.set(grants(time.Second, time.Hour))
				l, h := open(t, m, "/a")
				s.set(tt.answer)
				time.Sleep(time.Second)
				synctest.Wait()
				if e, _ := h.end(); e.Reason != tt.reason || !errors.Is(e.Kind, tt.kind) {
					t.Errorf("%+v", e)
				}
				l.Close("closed", 0, 0)
				synctest.Wait()
				if s.ends[0].Reason != tt.reason {
					t.Errorf("%+v", s.ends)
				}
			})
		})
	}
}

// TestStaleWindow: the grant stands for so long and no longer.
func TestStaleWindow(t *testing.T) {
	w := 20 * time.Second
	bubble(t, lease.Config{StaleWindow: &w}, func(t *testing.T, m *lease.Manager, s *server) {
		start := time.Now()
		l, h := open(t, m, "/a")
		s.set(down)
		time.Sleep(15 * time.Second)
		if c := m.Counters(); c.Stale != 1 {
			t.Errorf("%+v", c)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if e, at := h.end(); e.Reason != lease.ReasonUnavailable || !errors.Is(e.Kind, auth.ErrUnavailable) || at.Sub(start) != 30*time.Second {
			t.Errorf("%+v after %v", e, at.Sub(start))
		}
		l.Close("closed", 0, 0)
		if c := m.Counters(); c.Stale != 0 || c.Unavailable != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// TestGrantsReachTheHolder: a new tier is passed on and the session goes on (T8).
func TestGrantsReachTheHolder(t *testing.T) {
	bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
		l, h := open(t, m, "/a")
		s.set(func(ctx context.Context, r auth.Request) (auth.Grant, error) {
			g, err := grants(10*time.Second, time.Hour)(ctx, r)
			g.Tier = "gold"
			return g, err
		})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(h.grants) != 1 || h.grants[0].Tier != "gold" || l.Grant().Tier != "gold" {
			t.Errorf("%+v", h.grants)
		}
		l.Close("closed", 0, 0)
	})
}

// TestEvents: one id in all events of a session, another for the next.
func TestEvents(t *testing.T) {
	bubble(t, lease.Config{Node: "https://relay/"}, func(t *testing.T, m *lease.Manager, s *server) {
		l, _ := open(t, m, "/a")
		time.Sleep(15 * time.Second)
		l.Close("closed", 7, 8)
		synctest.Wait()
		other, _ := open(t, m, "/a")
		other.Close("closed", 0, 0)
		synctest.Wait()
		if len(s.asked) != 3 || s.asked[0].Event != auth.EventConnect || s.asked[1].Event != auth.EventRevalidate ||
			s.asked[0].ID != l.ID() || s.asked[1].ID != l.ID() || s.asked[2].ID == l.ID() || len(l.ID()) != 32 || s.asked[0].Node != "https://relay/" {
			t.Errorf("%+v", s.asked)
		}
		if diff := cmp.Diff(auth.End{Reason: "closed", Duration: 15 * time.Second, Sent: 7, Received: 8}, s.ends[0]); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSingleFlight counts at the server: wishes while a question is under way make exactly one more, and nothing but
// the sessions that were asked for is asked about.
func TestSingleFlight(t *testing.T) {
	bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
		s.set(grants(time.Hour, 2*time.Hour))
		l, _ := open(t, m, "/a")
		defer l.Close("closed", 0, 0)
		other, _ := open(t, m, "/b")
		defer other.Close("closed", 0, 0)
		gate := make(chan struct{})
		s.set(func(ctx context.Context, r auth.Request) (auth.Grant, error) {
			<-gate
			return grants(time.Hour, 2*time.Hour)(ctx, r)
		})
		for range 100 {
			if got := m.Revalidate([]string{l.ID(), "unknown"}); len(got) != 1 || got[0] != l.ID() {
				t.Fatal(got)
			}
			synctest.Wait()
		}
		if n := s.count(); n != 3 {
			t.Errorf("%d questions, want one", n-2)
		}
		close(gate)
		synctest.Wait()
		if n := s.count(); n != 4 {
			t.Errorf("%d questions, want two", n-2)
		}
		time.Sleep(time.Minute)
		if n := s.count(); n != 4 {
			t.Errorf("%d questions later", n-2)
		}
	})
}

// TestNoStampede: 1000 sessions of one moment, through an outage of a minute and its end. What the server sees is
// counted: never more at once than the limit, never many in the same tenth of a second.
func TestNoStampede(t *testing.T) {
	cfg := lease.Config{}
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: grants(10*time.Second, time.Hour)}
		cfg.Authorizer = s
		m := lease.New(cfg)
		defer m.Close()
		const sessions = 1000
		for range sessions {
			l, h := open(t, m, "/a")
			defer func() {
				if e, _ := h.end(); e.Reason != "" {
					t.Error(e)
				}
				l.Close("closed", 0, 0)
			}()
		}
		slow := func(answer func(context.Context, auth.Request) (auth.Grant, error)) func(context.Context, auth.Request) (auth.Grant, error) {
			return func(ctx context.Context, r auth.Request) (auth.Grant, error) {
				time.Sleep(5 * time.Millisecond)
				return answer(ctx, r)
			}
		}
		s.set(slow(down))
		time.Sleep(time.Minute)
		before := s.count()
		s.set(slow(grants(10*time.Second, time.Hour)))
		time.Sleep(13*time.Second + 200*time.Millisecond) // a probe and one step of the back-off, which the cadence caps
		if n := s.count() - before; n < sessions || n > sessions+sessions/2 {
			t.Errorf("%d questions for %d sessions", n, sessions)
		}
		worst, from := 0, before
		for i := before; i < len(s.times); i++ {
			for s.times[i].Sub(s.times[from]) > 100*time.Millisecond {
				from++
			}
			worst = max(worst, i-from+1)
		}
		if worst > sessions/10 || s.most > 128 {
			t.Errorf("%d questions within 100 ms, %d at once", worst, s.most)
		}
		if c := m.Counters(); c.Refreshes.Granted < sessions || c.Stale != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestClientLeaves: nobody waits for an answer that nobody wants, no outage is seen in it, and the server is told.
func TestClientLeaves(t *testing.T) {
	bubble(t, lease.Config{}, func(t *testing.T, m *lease.Manager, s *server) {
		l, _ := open(t, m, "/a")
		l.Close("closed", 0, 0)
		s.set(hangs)
		left, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(errors.New("left")) })
		start := time.Now()
		if _, err := m.Open(left, request("/a")); err == nil || err.Error() != "left" || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if c := m.Counters(); c.Connects.Unavailable != 0 || s.ends[1].Reason != lease.ReasonDropped {
			t.Errorf("%+v, %+v", c, s.ends)
		}
	})
}

// TestLogsTheOutageOnce: one line when it begins and one when it ends, however many sessions there are, and no secret.
func TestLogsTheOutageOnce(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.Level(-8)}))
	bubble(t, lease.Config{Logger: log}, func(t *testing.T, m *lease.Manager, s *server) {
		for range 50 {
			l, _ := open(t, m, "/a")
			defer l.Close("closed", 0, 0)
		}
		s.set(down)
		time.Sleep(time.Minute)
		s.set(grants(10*time.Second, time.Hour))
		time.Sleep(time.Minute)
	})
	if n := strings.Count(out.String(), "authorization is unavailable"); n != 2 { // message and error
		t.Errorf("%d in\n%s", n, &out)
	}
	if n := strings.Count(out.String(), "available again"); n != 1 || strings.Contains(out.String(), "SECRET") {
		t.Errorf("%d in\n%s", n, &out)
	}
}

// TestCloseDoesNotWaitForEver: a server that hangs on ends holds the shutdown for two seconds.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: grants(0, time.Hour), onEnd: func(ctx context.Context) { <-ctx.Done() }}
		m := lease.New(lease.Config{Authorizer: s})
		for range 300 {
			l, _ := open(t, m, "/a")
			l.Close("shutdown", 0, 0)
		}
		start := time.Now()
		m.Close()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestPublicHasNoLease: public rules are asked once and never again.
func TestPublicHasNoLease(t *testing.T) {
	p, err := auth.NewPublic(auth.PublicRules{Both: []string{"**"}})
	if err != nil {
		t.Fatal(err)
	}
	m := lease.New(lease.Config{Authorizer: p})
	defer m.Close()
	l, err := m.Open(t.Context(), auth.Request{Path: "/a"})
	if err != nil {
		t.Fatal(err)
	}
	l.Hold(new(holder))
	if l.Leased() || len(m.Revalidate([]string{l.ID()})) != 0 {
		t.Error("public rules are asked again")
	}
	l.Close("closed", 0, 0)
	if _, err := m.Open(t.Context(), request("/a")); !errors.Is(err, auth.ErrRefused) {
		t.Error(err)
	}
	if c := m.Counters(); c.Connects.Granted != 1 || c.Connects.Refused != 1 {
		t.Errorf("%+v", c)
	}
}

// TestHangingServer: a server that accepts and never answers is an outage like any other. It is hardly asked while it
// lasts, those who may come in from the recovery cache do not wait long, and its end is noticed at once, without a rush.
func TestHangingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: grants(10*time.Second, time.Hour)}
		w := 40 * time.Second
		m := lease.New(lease.Config{Authorizer: s, StaleWindow: &w})
		defer m.Close()
		const sessions = 500
		for range sessions {
			l, h := open(t, m, "/a")
			defer func() {
				if e, _ := h.end(); e.Reason != "" {
					t.Error(e)
				}
				l.Close("closed", 0, 0)
			}()
		}
		time.Sleep(15 * time.Second) // past the first questions
		l, _ := open(t, m, "/recent")
		l.Close("closed", 0, 0)
		s.set(hangs)
		before := s.count()
		time.Sleep(time.Second)
		start := time.Now()
		l, _ = open(t, m, "/recent")
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("the recovery cache lets in after %v", took)
		}
		l.Close("closed", 0, 0)
		if _, err := m.Open(t.Context(), request("/new")); !errors.Is(err, auth.ErrUnavailable) {
			t.Error(err)
		}
		time.Sleep(time.Until(start.Add(24 * time.Second)))
		if n := s.count() - before; n > 128+100 {
			t.Errorf("%d questions to a server that hangs", n)
		}
		back, asked := time.Now(), s.count()
		s.set(grants(10*time.Second, time.Hour))
		time.Sleep(time.Second)
		synctest.Wait()
		if s.count() == asked {
			t.Error("not asked within a second of its return")
		}
		time.Sleep(13 * time.Second)
		if c := m.Counters(); c.Stale != 0 {
			t.Errorf("%d sessions are stale %v later", c.Stale, time.Since(back))
		}
		worst, from := 0, asked
		for i := asked; i < len(s.times); i++ {
			for s.times[i].Sub(s.times[from]) > 100*time.Millisecond {
				from++
			}
			worst = max(worst, i-from+1)
		}
		if worst > sessions/10 {
			t.Errorf("%d questions within 100 ms of the end", worst)
		}
	})
}
