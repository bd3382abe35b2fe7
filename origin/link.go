package origin

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/route"
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

// hopString packs a hop list so that sources can be compared.
func hopString(hops []route.Hop) string {
	b := make([]byte, 0, 8*len(hops))
	for _, h := range hops {
		b = binary.BigEndian.AppendUint64(b, uint64(h))
	}
	return string(b)
}

// through says whether the route of a source passes through a peer.
func (s source) through(peer route.Hop) bool {
	for b := s.hops; len(b) >= 8; b = b[8:] {
		if route.Hop(binary.BigEndian.Uint64([]byte(b[:8]))) == peer {
			return true
		}
	}
	return false
}
