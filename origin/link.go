package origin

import (
	"sync/atomic"
	"time"
)

// link is what a session as a whole tells about its sources: whether anything arrives on it. One goroutine writes
// heard; anybody reads.
type link struct {
	heard atomic.Pointer[time.Time] // when something was last seen to arrive; nil = the session always counts as answering (H3)
	// suspicious: a track was hedged because nothing arrives, and nothing has since (H11).
	suspicious atomic.Bool
}

// lastHeard returns when something last arrived; false if silence of this session means nothing.
func (l *link) lastHeard() (time.Time, bool) {
	if l == nil {
		return time.Time{}, false
	}
	t := l.heard.Load()
	if t == nil {
		return time.Time{}, false
	}
	return *t, true
}

// hear notes that something has arrived by now.
func (l *link) hear(now time.Time) {
	l.heard.Store(&now)
	l.suspicious.Store(false)
}

// unhear has the session count as answering.
func (l *link) unhear() {
	l.heard.Store(nil)
	l.suspicious.Store(false)
}

func (l *link) suspected() bool { return l != nil && l.suspicious.Load() }

// silent says whether nothing has arrived for limit.
func (l *link) silent(now time.Time, limit time.Duration) bool {
	heard, ok := l.lastHeard()
	return l.suspected() || ok && now.Sub(heard) >= limit
}
