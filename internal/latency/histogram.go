// Package latency counts durations in a histogram of fixed size, for the tools that report quantiles.
package latency

import (
	"math"
	"math/bits"
	"time"
)

// Buckets are one microsecond wide up to 63 µs; above, each octave has 32 of them, so that a quantile is at most
// about 3 % too large.
const (
	subBits  = 5
	sub      = 1 << subBits
	maxShift = 36 // 2^42 µs: 50 days
	buckets  = (maxShift + 2) * sub
)

// Histogram counts durations. The zero value is ready. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]uint64
	total  uint64
	max    time.Duration
}

// Add counts d. A negative duration, the mark of clocks that disagree, counts as zero.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d/time.Microsecond))]++
	h.total++
	h.max = max(h.max, d)
}

// Merge adds what other counted.
func (h *Histogram) Merge(other *Histogram) {
	if other.total == 0 {
		return
	}
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Count is how many durations were added.
func (h *Histogram) Count() uint64 { return h.total }

// Max is the longest duration, exactly; 0 when there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is a duration that at least the share q (0 to 1) of all durations does not exceed: the upper edge of
// the bucket, never above Max. It is 0 when nothing was counted.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.total)))
	rank = max(rank, 1)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; seen >= rank {
			return min(edge(i), h.max)
		}
	}
	return h.max
}

func bucket(us uint64) int {
	if us < 2*sub {
		return int(us)
	}
	shift := bits.Len64(us) - subBits - 1
	if shift > maxShift {
		return buckets - 1
	}
	return shift*sub + int(us>>shift)
}

// edge is the longest duration of bucket i.
func edge(i int) time.Duration {
	if i < 2*sub {
		return time.Duration(i+1)*time.Microsecond - 1
	}
	shift := i/sub - 1
	return time.Duration(i%sub+sub+1)<<shift*time.Microsecond - 1
}
