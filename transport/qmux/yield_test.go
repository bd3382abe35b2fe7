package qmux

import (
	"testing"
	"time"
)

// A queue that stands for long enough limits the pace to a share of the best rate before it, and one that is gone for long
// enough frees it again; what comes and goes in between changes nothing.
func TestYielding(t *testing.T) {
	const shortest, rate = 100 * time.Millisecond, 12_000_000
	now := time.Unix(0, 0)
	var y yielding
	step := func(during, rtt time.Duration, rate uint64) (limit uint64, after time.Duration) {
		for begin := now; now.Sub(begin) < during; now = now.Add(tuneEvery) {
			if limit, changed := y.look(now, rtt, shortest, rate); changed {
				return limit, now.Sub(begin)
			}
		}
		return 0, 0
	}
	const gone, stands = 120 * time.Millisecond, 140 * time.Millisecond
	for i, test := range []struct {
		rtt, during time.Duration
		rate        uint64
		limit       uint64
		after       time.Duration
	}{
		{gone, 10 * time.Second, rate, 0, 0},
		{stands, 3 * time.Second, rate / 2, 0, 0}, // the search for the rate
		{gone, time.Second, rate / 2, 0, 0},
		{stands, 3 * time.Second, rate / 2, 0, 0},
		{gone, tuneEvery, rate / 2, 0, 0},
		{stands, 10 * time.Second, rate / 2, rate / 4 * 3, yieldAfter},
		{stands, time.Minute, rate / 2, 0, 0},
		{gone, 20 * time.Second, rate / 2, 0, 0},
		{stands, time.Second, rate / 2, 0, 0},
		{gone, time.Minute, rate / 2, 0, yieldFor},
		{gone, time.Minute, rate / 2, 0, 0},
		{stands, time.Minute, rate / 2, rate / 8 * 3, yieldAfter}, // of what it has shown since
	} {
		if limit, after := step(test.during, test.rtt, test.rate); limit != test.limit || after != test.after {
			t.Fatalf("step %d: limit %d after %v, want %d after %v", i, limit, after, test.limit, test.after)
		}
	}
	var quick yielding // a path without a round trip to speak of has no queue
	for range 100 {
		now = now.Add(tuneEvery)
		if _, changed := quick.look(now, 9*time.Millisecond, 50*time.Microsecond, rate); changed {
			t.Fatal("noise is taken for a queue")
		}
	}
}
