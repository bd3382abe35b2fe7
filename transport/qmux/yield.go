package qmux

import "time"

// yielding decides when a connection leaves a share of the path to others. BBR pays no heed to them: where the queue on the
// way holds no more than a round trip, it starves who takes loss for congestion. But its own packets wait in that queue for
// moments only, so a queue that stands is the work of somebody else. While there is one, the pace is held below what the
// path has shown to carry; when it is gone, so is the limit.
type yielding struct {
	active bool
	best   uint64    // the highest rate of delivery since the last change, in bytes a second
	since  time.Time // when the queue began to be there, or while yielding to be gone; zero = it has not
}

const (
	// yieldAfter is how long the queue must stand. Searching for the rate at the start fills it as well, for a few round trips.
	yieldAfter = 4 * time.Second
	// yieldFor is how long it must be gone: one who was starved needs as long to fill the path again.
	yieldFor = 30 * time.Second
	// A queue is there when the round trip is longer than the shortest one by a third, and by more than noise.
	yieldNoise = 10 * time.Millisecond
	// Of the path yieldShare in yieldOf is kept.
	yieldShare, yieldOf = 3, 4
)

// look takes the state of the path at a time. If changed, the pace may be no more than limit from now on, in bytes a second; 0
// means that there is no limit.
func (y *yielding) look(now time.Time, rtt, shortest time.Duration, rate uint64) (limit uint64, changed bool) {
	if !y.active {
		y.best = max(y.best, rate)
	}
	stands := shortest > 0 && rtt > shortest+max(shortest/3, yieldNoise)
	switch {
	case stands == y.active:
		y.since = time.Time{}
	case y.since.IsZero():
		y.since = now
	case now.Sub(y.since) >= y.patience():
		y.active, y.since = stands, time.Time{}
		if !stands {
			y.best = 0
			return 0, true
		}
		return y.best / yieldOf * yieldShare, true
	}
	return 0, false
}

// patience is how long the path must be the other way.
func (y *yielding) patience() time.Duration {
	if y.active {
		return yieldFor
	}
	return yieldAfter
}
