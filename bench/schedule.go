package bench

import (
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/internal/latency"
)

// schedule says when each frame is due and where it belongs. Frames are counted from 0. What is late does not move what
// comes after it.
type schedule struct {
	begin time.Time
	rate  float64 // frames per second
	per   uint64  // frames per group
	first uint64  // number of the first group
}

// due is when frame n has to be sent.
func (s schedule) due(n uint64) time.Time {
	return s.begin.Add(time.Duration(float64(n) / s.rate * float64(time.Second)))
}

// place is the group of frame n and its index in there.
func (s schedule) place(n uint64) (group uint64, index uint32) {
	return s.first + n/s.per, uint32(n % s.per)
}

// lateness counts how far a schedule was missed. It is safe for concurrent use.
type lateness struct {
	mu sync.Mutex
	h  latency.Histogram
}

// sent notes that what was due at due has been sent at now.
func (l *lateness) sent(due, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.h.Add(now.Sub(due))
}

// take returns what was counted since the last call.
func (l *lateness) take() latency.Histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.h
	l.h = latency.Histogram{}
	return h
}
