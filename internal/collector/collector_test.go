package collector

import (
	"context"
	"runtime/debug"
	"testing"
	"time"
)

const mib = 1 << 20

// TestGrowth: the room goes by what is looked at, not by what is cached.
func TestGrowth(t *testing.T) {
	for name, tt := range map[string]struct {
		busy bool
		u    Usage
		want int
	}{
		"300 viewers":             {false, Usage{Scanned: 32 * mib, Base: 40 * mib}, 24},
		"300 viewers, busy":       {true, Usage{Scanned: 32 * mib, Base: 40 * mib}, 120},
		"the same and much cache": {true, Usage{Scanned: 32 * mib, Base: 480 * mib}, 10},
		"nobody there":            {false, Usage{Scanned: mib, Base: 2 * mib}, 150},
		"before the first":        {false, Usage{}, 150},
	} {
		if got := growth(tt.busy, tt.u); got != tt.want {
			t.Errorf("%s: %d %%, want %d %%", name, got, tt.want)
		}
	}
}

// TestObserve: the room grows at once, and shrinks, once, when the load has been gone for a while.
func TestObserve(t *testing.T) {
	var c Core
	look := func(cpu float64, growth int, release bool) {
		t.Helper()
		want := Verdict{growth, release}
		if got := c.Observe(Usage{CPU: cpu, Scanned: 32 * mib, Base: 40 * mib}); got != want {
			t.Errorf("at %.0f %%: %+v, want %+v", cpu, got, want)
		}
	}
	const calm, busy = 24, 120
	look(59, calm, false)
	look(60, busy, false)
	for range calmLooks - 1 {
		look(44, busy, false)
	}
	look(46, busy, false) // not over yet
	for range calmLooks - 1 {
		look(44, busy, false)
	}
	look(44, calm, true)
	look(44, calm, false)
	look(99, busy, false)
	for range releaseLooks - 3 { // calm for long, but memory was released a moment ago
		look(0, busy, false)
	}
	look(0, calm, true)
}

// TestMeter: what the runtime says is there, and work shows.
func TestMeter(t *testing.T) {
	debug.FreeOSMemory() // a collection
	m := newMeter()
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
	}
	if u := m.read(time.Now()); u.CPU <= 0 || u.Scanned <= 0 || u.Base < u.Scanned/2 {
		t.Errorf("%+v", u)
	}
}

// TestRun sets the goal of the runtime.
func TestRun(t *testing.T) {
	was := debug.SetGCPercent(777) // more than any answer
	defer debug.SetGCPercent(was)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Run(ctx)
	if got := debug.SetGCPercent(100); got == 777 {
		t.Error("nothing was set")
	}
}
