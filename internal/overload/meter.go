package overload

import (
	"math"
	"runtime/metrics"
	"time"
)

// waits is the runtime's histogram of how long goroutines were ready to run before they ran.
const waits = "/sched/latencies:seconds"

// Meter measures how long goroutines wait for a core. It is not safe for concurrent use.
type Meter struct {
	sample      []metrics.Sample
	last, since []uint64 // by bucket: in all, and since the last call
}

// NewMeter begins to measure.
func NewMeter() *Meter {
	m := &Meter{sample: []metrics.Sample{{Name: waits}}}
	m.Read()
	return m
}

// Read returns the wait that nine in ten stayed below since the last call; 0 if nobody waited. Most waits of an idle process
// are short, and most of those of a late one come in bursts behind each frame: their median says little.
func (m *Meter) Read() time.Duration {
	metrics.Read(m.sample)
	if m.sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0 // a runtime without it
	}
	h := m.sample[0].Value.Float64Histogram()
	if len(m.last) != len(h.Counts) {
		m.last, m.since = make([]uint64, len(h.Counts)), make([]uint64, len(h.Counts))
	}
	for i, n := range h.Counts {
		m.since[i], m.last[i] = n-m.last[i], n
	}
	return ninth(m.since, h.Buckets)
}

// ninth is the upper bound of the bucket that has the ninth of ten parts; of the last one, which has none, the lower.
func ninth(counts []uint64, bounds []float64) time.Duration {
	var total uint64
	for _, n := range counts {
		total += n
	}
	var below uint64
	for i, n := range counts {
		below += n
		if total == 0 || 10*below < 9*total {
			continue
		}
		bound := bounds[i+1]
		if math.IsInf(bound, 1) {
			bound = bounds[i]
		}
		return time.Duration(bound * float64(time.Second))
	}
	return 0
}
