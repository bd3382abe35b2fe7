package lease

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/paths"
)

var epoch = time.Unix(1_800_000_000, 0)

// seconds after the epoch.
func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

func sets(tb testing.TB, texts ...string) paths.Set {
	tb.Helper()
	s, err := paths.ParseSet(texts...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func never() float64                  { return 0 }   // asks as late as can be, retries as early
func middle() float64                 { return 0.5 } // retries exactly
func window(s float64) *time.Duration { d := time.Duration(s * float64(time.Second)); return &d }

var (
	errRefused = auth.Refuse("no")
	errOutage  = auth.Unavailable("down")
	errInvalid = &auth.Error{Status: 502, Invalid: true, Reason: "odd"}
)

// step is one thing that happens, and what the machine must want then.
type step struct {
	at    float64
	do    string // tick, push, grant, wide, narrow, root, peer, tier, refused, outage, invalid, late
	want  string // "", ask, adopt, ask+adopt, or the reason of an end
	due   float64
	never bool // no deadline
}

func base(tb testing.TB) auth.Grant {
	return auth.Grant{
		Root: "r", Publish: sets(tb, "r/a/**"), Subscribe: sets(tb, "r/**"), Expires: at(100), Revalidate: 10 * time.Second, Tier: "x",
	}
}

func do(tb testing.TB, m *machine, s step) effect {
	tb.Helper()
	g := base(tb)
	g.Expires = at(s.at + 100)
	switch s.do {
	case "tick":
		return m.tick(at(s.at))
	case "push":
		return m.push()
	case "refused":
		return m.answered(at(s.at), auth.Grant{}, errRefused)
	case "outage":
		return m.answered(at(s.at), auth.Grant{}, errOutage)
	case "odd": // not an error of ours
		return m.answered(at(s.at), auth.Grant{}, errors.New("odd"))
	case "invalid":
		return m.answered(at(s.at), auth.Grant{}, errInvalid)
	case "grant":
	case "wide":
		g.Publish = sets(tb, "r/**")
	case "narrow":
		g.Subscribe = sets(tb, "r/a/**")
	case "root":
		g.Root = ""
	case "mounts":
		g.Mounts = paths.Mounts{{At: "r/x", Target: "t"}}
	case "peer":
		g.Peer = true
	case "tier":
		g.Tier = "y"
	case "late": // its end is just past
		g.Expires = at(s.at - 4)
	case "too late":
		g.Expires = at(s.at - 5)
	case "forever":
		g.Expires, g.Revalidate = time.Time{}, 0
	default:
		tb.Fatal(s.do)
	}
	return m.answered(at(s.at), g, nil)
}

func (e effect) String() string {
	var parts []string
	if e.ask {
		parts = append(parts, "ask")
	}
	if e.adopted {
		parts = append(parts, "adopt")
	}
	if e.end != nil {
		parts = append(parts, fmt.Sprintf("%s (%v)", e.end.Reason, e.end.Kind))
	}
	return strings.Join(parts, "+")
}

const (
	denied      = " (refused)"
	unavailable = " (authorization is unavailable)"
)

// TestLife is the table of auth 5.4. The grant is given at 0, asks every 10 s and ends at 100.
func TestLife(t *testing.T) {
	type life struct {
		window *time.Duration
		steps  []step
	}
	tests := map[string]life{
		"covered": {nil, []step{
			{at: 9, do: "tick", due: 10},
			{at: 10, do: "tick", want: "ask", due: 100},
			{at: 10.5, do: "grant", due: 20.5},
			{at: 20.5, do: "tick", want: "ask", due: 110.5},
		}},
		"tier changes": {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "tier", want: "adopt", due: 20}}},
		"wider":        {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "wide", want: "adopt", due: 20}}},
		"wider, then as before": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100},
			{at: 10, do: "wide", want: "adopt", due: 20},
			{at: 20, do: "tick", want: "ask", due: 110},
			{at: 20, do: "grant", want: "grant narrowed" + denied, never: true},
		}},
		"narrower":     {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "narrow", want: "grant narrowed" + denied, never: true}}},
		"another root": {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "root", want: "root changed" + denied, never: true}}},
		"other mounts": {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "mounts", want: "mounts changed" + denied, never: true}}},
		"another peer": {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "peer", want: "peer changed" + denied, never: true}}},
		"refused":      {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "refused", want: "refused" + denied, never: true}}},
		"invalid":      {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "invalid", want: "invalid (invalid grant)", never: true}}},
		"ended before it came": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "too late", want: "invalid (invalid grant)", never: true},
		}},
		"ended as it came": {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "late", due: 11}, {at: 11, do: "tick", want: "expired" + denied, never: true}}},
		"for ever":         {nil, []step{{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "forever", never: true}, {at: 1e6, do: "tick", never: true}}},
		"outage up to the end": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100},
			{at: 20, do: "outage", due: 21},
			{at: 21, do: "tick", want: "ask", due: 100},
			{at: 21, do: "outage", due: 23},
			{at: 23, do: "tick", want: "ask", due: 100},
			{at: 23, do: "odd", due: 27},
			{at: 27, do: "tick", want: "ask", due: 100},
			{at: 27, do: "outage", due: 35},
			{at: 35, do: "tick", want: "ask", due: 100},
			{at: 36, do: "outage", due: 46}, // no longer than the cadence
			{at: 46, do: "tick", want: "ask", due: 100},
			{at: 56, do: "outage", due: 66},
			{at: 66, do: "tick", want: "ask", due: 100},
			{at: 99.9, do: "outage", due: 100},
			{at: 100, do: "tick", want: "expired" + denied, never: true},
		}},
		"expires while asking": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100}, {at: 100, do: "tick", want: "expired" + denied, never: true}, {at: 101, do: "grant", never: true},
		}},
		"outage ends": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100},
			{at: 10, do: "outage", due: 11},
			{at: 11, do: "tick", want: "ask", due: 100},
			{at: 11, do: "grant", due: 21},
			{at: 21, do: "tick", want: "ask", due: 111},
			{at: 21, do: "outage", due: 22}, // starts over
		}},
		"deny after an outage": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100},
			{at: 10, do: "outage", due: 11},
			{at: 11, do: "tick", want: "ask", due: 100},
			{at: 11, do: "refused", want: "refused" + denied, never: true},
		}},
		"stale window": {window(15), []step{
			{at: 10, do: "tick", want: "ask", due: 25},
			{at: 10, do: "outage", due: 11},
			{at: 11, do: "tick", want: "ask", due: 25},
			{at: 25, do: "tick", want: "unavailable" + unavailable, never: true},
		}},
		"no stale window": {window(0), []step{{at: 10, do: "tick", want: "unavailable" + unavailable, never: true}}},
		"stale window beyond the end": {window(1000), []step{
			{at: 10, do: "tick", want: "ask", due: 100}, {at: 100, do: "tick", want: "expired" + denied, never: true},
		}},
		"a grant renews the stale window": {window(5), []step{
			{at: 10, do: "tick", want: "ask", due: 15},
			{at: 14, do: "grant", due: 24},
			{at: 24, do: "tick", want: "ask", due: 29},
			{at: 29, do: "tick", want: "unavailable" + unavailable, never: true},
		}},
		"pushed": {nil, []step{{at: 1, do: "push", want: "ask", due: 100}, {at: 1, do: "grant", due: 11}}},
		"pushed while asking": {nil, []step{
			{at: 1, do: "push", want: "ask", due: 100},
			{at: 1, do: "push", due: 100},
			{at: 1, do: "push", due: 100},
			{at: 2, do: "grant", want: "ask", due: 102},
			{at: 3, do: "grant", due: 13},
		}},
		"pushed while asking, tier": {nil, []step{
			{at: 1, do: "push", want: "ask", due: 100}, {at: 1, do: "push", due: 100}, {at: 2, do: "tier", want: "ask+adopt", due: 102},
		}},
		"pushed while asking, outage": {nil, []step{
			{at: 1, do: "push", want: "ask", due: 100},
			{at: 1, do: "push", due: 100},
			{at: 2, do: "outage", want: "ask", due: 100},
			{at: 2, do: "outage", due: 4},
		}},
		"pushed while asking, refused": {nil, []step{
			{at: 1, do: "push", want: "ask", due: 100},
			{at: 1, do: "push", due: 100},
			{at: 2, do: "refused", want: "refused" + denied, never: true},
			{at: 3, do: "push", never: true},
		}},
		"pushed during the back-off": {nil, []step{
			{at: 10, do: "tick", want: "ask", due: 100}, {at: 10, do: "outage", due: 11}, {at: 10.1, do: "push", want: "ask", due: 100},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			chance := middle
			m := newMachine(tt.window, chance, epoch, base(t), epoch, false)
			m.next = at(10) // without the jitter, which has a test of its own
			for i, s := range tt.steps {
				e := do(t, m, s)
				if m.failures == 0 && !m.asking && !m.next.IsZero() {
					m.next = m.at.Add(m.grant.Revalidate)
				}
				if e.String() != s.want {
					t.Fatalf("step %d, %s at %v: %q, want %q", i, s.do, s.at, e, s.want)
				}
				d := m.deadline()
				if s.never != d.IsZero() || !s.never && !d.Equal(at(s.due)) {
					t.Fatalf("step %d, %s at %v: due %v, want %v", i, s.do, s.at, d.Sub(epoch), s.due)
				}
			}
		})
	}
}

// TestRecovered: a session from the recovery cache asks with the back-off of an outage, whatever its cadence, and its
// times count from the grant (A13).
func TestRecovered(t *testing.T) {
	g := base(t)
	m := newMachine(nil, middle, at(5), g, epoch, true)
	if d := m.deadline(); !d.Equal(at(6)) {
		t.Errorf("asks at %v", d.Sub(epoch))
	}
	if e := m.tick(at(6)); !e.ask {
		t.Error("does not ask")
	}
	if e := m.answered(at(6), auth.Grant{}, errRefused); e.end == nil || e.end.Reason != ReasonRefused {
		t.Error(e)
	}
	if d := newMachine(window(3), middle, at(12.5), g, epoch, true).deadline(); !d.Equal(at(13)) {
		t.Errorf("stale at %v", d.Sub(epoch))
	}
	g.Revalidate, g.Expires = 0, time.Time{}
	m = newMachine(window(3), middle, at(5), g, epoch, true)
	m.tick(at(6))
	if d := m.deadline(); !d.Equal(at(8)) { // nothing says how long it lives: the window counts from the outage
		t.Errorf("stale at %v", d.Sub(epoch))
	}
	if m.answered(at(7), g, nil); !m.deadline().IsZero() {
		t.Error("still in an outage")
	}
}

// TestJitter: sessions that came together ask neither together nor later than they should; retries spread too.
func TestJitter(t *testing.T) {
	for _, x := range []float64{0, 0.25, 0.5, 0.999} {
		m := newMachine(nil, func() float64 { return x }, epoch, base(t), epoch, false)
		if d := m.deadline().Sub(epoch); d > 10*time.Second || d < 9*time.Second {
			t.Errorf("asks after %v", d)
		}
		m.tick(at(10))
		m.answered(at(10), auth.Grant{}, errOutage)
		if d := m.deadline().Sub(at(10)); d < 750*time.Millisecond || d > 1250*time.Millisecond {
			t.Errorf("tries again after %v", d)
		}
	}
}

// TestRandomLives: whatever happens, nothing is wanted after an end, no two questions are under way, the end of a grant
// is never passed, and the deadline is never behind what tick would do.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var w *time.Duration
		if rapid.Bool().Draw(rt, "bounded") {
			w = window(float64(rapid.IntRange(0, 30).Draw(rt, "window")))
		}
		m := newMachine(w, never, epoch, base(t), epoch, rapid.Bool().Draw(rt, "recovered"))
		asking, over, now := false, false, 0.0
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += float64(rapid.IntRange(0, 40).Draw(rt, "wait")) / 4
			kinds := []string{"tick", "push"}
			if asking {
				kinds = append(kinds, "grant", "wide", "tier", "outage", "refused", "narrow", "late")
			}
			kind := rapid.SampledFrom(kinds).Draw(rt, "event")
			if kind != "tick" && !over { // time is looked at first, as the shell does
				if e := m.tick(at(now)); e.end != nil {
					over = true
				} else if e.ask {
					asking = true
				}
			}
			if kind != "tick" && kind != "push" {
				asking = false
			}
			e := do(t, m, step{at: now, do: kind})
			if over && (e.ask || e.adopted || e.end != nil) {
				rt.Fatalf("%s after the end: %v", kind, e)
			}
			if e.ask && asking {
				rt.Fatal("two questions at once")
			}
			asking = asking || e.ask
			over = over || e.end != nil
			if kind == "tick" && !over && !m.grant.Expires.After(at(now)) {
				rt.Fatal("outlives its grant")
			}
			if d := m.deadline(); over != d.IsZero() || kind == "tick" && !over && !d.After(at(now)) {
				rt.Fatalf("deadline %v at %v, over %v", d.Sub(epoch), now, over)
			}
		}
	})
}
