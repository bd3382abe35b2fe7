package relay

import (
	"errors"
	"testing"
	"time"
)

// TestCacheShrinksForHeadroom: the cache gives way when others take memory, and comes back when they leave.
func TestCacheShrinksForHeadroom(t *testing.T) {
	const mib = 1 << 20
	var others, used, capacity int64 // in MiB, of a machine with 1000
	garbage := int64(0)
	releases := 0
	s := &sizer{
		headroom: 200 * mib, most: 500 * mib,
		available: func() (int64, error) { return max(0, 1000-others-used-garbage) * mib, nil },
		release:   func() { releases++; garbage = 0 },
		used:      func() int64 { return used * mib },
		resize: func(n int64) {
			capacity = n / mib
			if used > capacity { // evicted, but not collected
				garbage += used - capacity
				used = capacity
			}
		},
	}
	now := time.Now()
	step := func(wantCapacity int64) {
		t.Helper()
		now = now.Add(sizeEvery)
		if err := s.fit(now); err != nil {
			t.Fatal(err)
		}
		if capacity != wantCapacity {
			t.Errorf("capacity %d MiB, want %d", capacity, wantCapacity)
		}
	}
	others, used = 100, 400
	step(500) // 500 free: as large as configured
	others = 500
	step(300) // 100 free, 100 too few
	step(200) // what was evicted is still there
	now = now.Add(releaseEvery)
	step(300) // and is not after a collection: nothing spirals down
	if used != 200 || releases != 2 {
		t.Errorf("%d MiB used, %d collections", used, releases)
	}
	others = 1000
	now = now.Add(releaseEvery)
	step(16) // never nothing
	for range 5 {
		step(16)
	}
	if releases != 3 {
		t.Errorf("%d collections, want one in 30 s", releases)
	}
	others, garbage = 0, 0 // the collector runs some time anyway
	step(500)
	s.most = 0
	step(800)
	s.available = func() (int64, error) { return 0, errors.New("no meminfo") }
	if err := s.fit(now); err == nil || capacity != 800 {
		t.Errorf("capacity %d after %v", capacity, err)
	}
}
