package overload

import (
	"runtime"
	"testing"
	"time"
)

const mib = 1 << 20

// TestMemory: near the limit of 1000 MiB, first the cache gives way, then nobody new is let in; and all of it ends by
// itself.
func TestMemory(t *testing.T) {
	type step struct {
		name         string
		used, cached int64 // MiB, at a collection
		cache        int64 // MiB; 0 = as configured
		full         bool
	}
	for name, steps := range map[string][]step{
		"room for all":       {{"", 300, 100, 0, false}, {"", 790, 490, 0, false}},
		"the cache gives":    {{"", 850, 500, 450, false}, {"", 850, 450, 400, false}, {"", 700, 300, 400, false}, {"", 600, 300, 0, false}},
		"nothing left":       {{"", 880, 60, 16, false}, {"", 895, 16, 16, false}, {"", 900, 16, 16, true}},
		"a full cache alone": {{"", 990, 500, 310, false}},
		"at the limit":       {{"", 1000, 600, 400, true}, {"", 900, 500, 400, true}, {"", 840, 440, 400, false}},
		"calms down": {
			{"", 950, 5, 16, true},
			{"below what made it full", 890, 5, 16, true},
			{"still too full", 851, 5, 16, true},
			{"calm", 849, 5, 16, false},
			{"not full again at once", 890, 5, 16, false},
			{"gone", 100, 5, 0, false},
		},
		"nothing cached": {{"", 100, 0, 0, false}},
		"more cached than alive, as what is cached now was not yet": {{"", 50, 200, 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory(1000*mib, 500*mib)
			now := time.Unix(0, 0)
			for i, s := range steps {
				now = now.Add(time.Second)
				got := m.Observe(now, Usage{Bytes: s.used * mib, Cycle: uint64(i + 1)}, s.cached*mib)
				if got.Cache != s.cache*mib || got.Full != s.full || got.Collect {
					t.Errorf("step %d %s: %+v of %d MiB", i, s.name, got, got.Cache/mib)
				}
			}
		})
	}
}

// TestMemoryBetweenCollections: what was evicted is no reason to evict more before it was collected; who waits for too long
// has it collected.
func TestMemoryBetweenCollections(t *testing.T) {
	m := NewMemory(1000*mib, 0)
	now := time.Unix(0, 0)
	at := func(d time.Duration, used, cached int64, cycle uint64) MemoryVerdict {
		return m.Observe(now.Add(d), Usage{Bytes: used * mib, Cycle: cycle}, cached*mib)
	}
	if got := at(0, 900, 500, 7); got != (MemoryVerdict{Cache: 400 * mib}) {
		t.Errorf("%+v", got)
	}
	if got := at(time.Second, 900, 400, 7); got != (MemoryVerdict{Cache: 400 * mib}) {
		t.Errorf("evicted, not collected: %+v", got)
	}
	if got := at(2*time.Second, 900, 400, 7); got != (MemoryVerdict{Cache: 400 * mib, Collect: true}) {
		t.Errorf("nothing collects: %+v", got)
	}
	if got := at(2*time.Second, 500, 100, 8); got != (MemoryVerdict{Cache: 400 * mib}) {
		t.Errorf("collected: %+v", got)
	}
	if got := at(9*time.Second, 300, 200, 9); got.Collect {
		t.Errorf("nobody waits for it: %+v", got)
	}
	if got := NewMemory(1000*mib, 0).Observe(now, Usage{Bytes: 100 * mib}, 0); got != (MemoryVerdict{Cache: 700 * mib}) {
		t.Errorf("a cache without a limit of its own: %+v", got)
	}
}

// TestMemoryMeter: what is alive counts, what is not does not.
func TestMemoryMeter(t *testing.T) {
	m := NewMemoryMeter()
	runtime.GC()
	before := m.Read()
	block := make([]byte, 64*mib)
	for i := range block {
		block[i] = 1
	}
	runtime.GC()
	with := m.Read()
	runtime.KeepAlive(block)
	runtime.GC()
	after := m.Read()
	if grown := with.Bytes - before.Bytes; grown < 60*mib || grown > 80*mib || with.Cycle <= before.Cycle {
		t.Errorf("64 MiB more are %d", grown)
	}
	if left := after.Bytes - before.Bytes; left > 10*mib {
		t.Errorf("%d are left of them", left)
	}
	if before.Bytes <= 0 {
		t.Errorf("%+v", before)
	}
}
