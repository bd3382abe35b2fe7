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
		h    Heap
		want int
	}{
		"300 viewers":             {false, Heap{32 * mib, 40 * mib}, 20},
		"300 viewers, busy":       {true, Heap{32 * mib, 40 * mib}, 120},
		"the same and much cache": {true, Heap{32 * mib, 480 * mib}, 10},
		"nobody there":            {false, Heap{1 * mib, 2 * mib}, 150},
		"next to nothing":         {false, Heap{0, mib / 2}, 150},
		"before the first":        {false, Heap{}, 150},
		"calm with a full cache":  {false, Heap{32 * mib, 8192 * mib}, 10},
	} {
		if got := growthOf(tt.busy, tt.h); got != tt.want {
			t.Errorf("%s: %d %%, want %d %%", name, got, tt.want)
		}
	}
}

// TestObserve: busy begins and ends at different loads, and small changes are no news.
func TestObserve(t *testing.T) {
	var c Core
	h := Heap{32 * mib, 40 * mib}
	for i, step := range []struct {
		cpu    float64
		h      Heap
		growth int
		news   bool
	}{
		{30, h, 20, true},
		{59, h, 20, false},
		{60, h, 120, true},
		{46, h, 120, false},
		{44, h, 20, true},
		{46, h, 20, false},
		{0, Heap{32 * mib, 42 * mib}, 20, false}, // 19
		{0, Heap{32 * mib, 60 * mib}, 13, true},
	} {
		if growth, news := c.Observe(step.cpu, step.h); growth != step.growth || news != step.news {
			t.Errorf("step %d: %d %%, news %v; want %d %%, %v", i, growth, news, step.growth, step.news)
		}
	}
}

// TestMeter: what the runtime says is there, and work shows.
func TestMeter(t *testing.T) {
	debug.FreeOSMemory() // a collection
	m := newMeter()
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
	}
	cpu, h := m.read(time.Now())
	if cpu <= 0 || h.Scanned <= 0 || h.Base < h.Scanned/2 {
		t.Errorf("%.1f %%, %+v", cpu, h)
	}
}

// TestRun sets the goal of the runtime.
func TestRun(t *testing.T) {
	was := debug.SetGCPercent(77)
	defer debug.SetGCPercent(was)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Run(ctx)
	if got := debug.SetGCPercent(77); got == 77 {
		t.Error("nothing was set")
	}
}
