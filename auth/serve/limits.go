package serve

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// limits count live sessions by what they have in common. A session counts from its connect to its end, or until nothing
// has been heard of it for two cadences. Running ones are never turned away, also if a restart made us forget them.
type limits struct {
	perToken, perRemote int
	forget              time.Duration

	mu       sync.Mutex
	sessions map[string]*slot // by id
	counts   map[any]int      // by tokenKey and netip.Prefix
	swept    time.Time
}

// slot is one session.
type slot struct {
	keys []any
	seen time.Time
}

// tokenKey stands for a token without keeping it.
type tokenKey [sha256.Size]byte

func newLimits(perToken, perRemote int, forget time.Duration) *limits {
	return &limits{
		perToken: perToken, perRemote: perRemote, forget: forget,
		sessions: make(map[string]*slot), counts: make(map[any]int),
	}
}

// enter counts a session in, or hears of it again.
func (l *limits) enter(now time.Time, q auth.Request, text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	if s := l.sessions[q.ID]; s != nil {
		s.seen = now
		return nil
	}
	s := &slot{seen: now}
	fresh := q.Event != auth.EventRevalidate
	if text != "" && l.perToken > 0 {
		k := tokenKey(sha256.Sum256([]byte(text)))
		if fresh && l.counts[k] >= l.perToken {
			return refuse("too many sessions with this token")
		}
		s.keys = append(s.keys, k)
	}
	if addr, err := netip.ParseAddrPort(q.Remote); err == nil && l.perRemote > 0 {
		k := sourceOf(addr.Addr())
		if fresh && l.counts[k] >= l.perRemote {
			return refuse("too many sessions from this address")
		}
		s.keys = append(s.keys, k)
	}
	l.sessions[q.ID] = s
	for _, k := range s.keys {
		l.counts[k]++
	}
	return nil
}

// leave counts a session out.
func (l *limits) leave(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(id)
}

func (l *limits) drop(id string) {
	s := l.sessions[id]
	if s == nil {
		return
	}
	delete(l.sessions, id)
	for _, k := range s.keys {
		if l.counts[k]--; l.counts[k] == 0 {
			delete(l.counts, k)
		}
	}
}

// sweep counts out sessions that have not been heard of for too long. It looks at all of them now and then.
func (l *limits) sweep(now time.Time) {
	if now.Sub(l.swept) < min(l.forget/4, time.Second) {
		return
	}
	l.swept = now
	for id, s := range l.sessions {
		if now.Sub(s.seen) > l.forget {
			l.drop(id)
		}
	}
}

// sourceOf is what one user has to himself: an IPv4 address, or an IPv6 /64.
func sourceOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // fails on bad bits only
	return p
}
