package latency_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/internal/latency"
)

// TestQuantileBounds compares with the sorted list: never too small, at most a microsecond or 3.2 % too large.
func TestQuantileBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.SliceOfN(rapid.Int64Range(0, int64(30*time.Hour)), 1, 200).Draw(t, "durations")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		// Two halves merged are the same as one histogram.
		var h, other latency.Histogram
		for i, n := range ns {
			if i%2 == 0 {
				h.Add(time.Duration(n))
			} else {
				other.Add(time.Duration(n))
			}
		}
		h.Merge(&other)
		slices.Sort(ns)
		rank := max(int(math.Ceil(q*float64(len(ns)))), 1)
		want, got := time.Duration(ns[rank-1]), h.Quantile(q)
		if got < want || got > want+max(want/31, time.Microsecond) {
			t.Fatalf("quantile %v of %v = %v, want %v", q, ns, got, want)
		}
		if h.Max() != time.Duration(ns[len(ns)-1]) || h.Count() != uint64(len(ns)) {
			t.Fatalf("max %v, count %d of %v", h.Max(), h.Count(), ns)
		}
	})
}

func TestEdges(t *testing.T) {
	var h latency.Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 {
		t.Error("an empty histogram has quantiles")
	}
	h.Add(-time.Second)
	if h.Quantile(1) != 0 || h.Count() != 1 {
		t.Errorf("negative: quantile %v, count %d", h.Quantile(1), h.Count())
	}
	h.Add(math.MaxInt64)
	if h.Quantile(1) != math.MaxInt64 && h.Quantile(1) < 50*24*time.Hour {
		t.Errorf("longest: %v", h.Quantile(1))
	}
}
