package relay

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/internal/overload"
)

// errMemory refuses new clients of a relay that has no memory left for them.
var errMemory = errors.New("out of memory")

// shortage is what is known of the memory of the process, and done about it.
type shortage struct {
	full    atomic.Bool
	used    atomic.Int64 // bytes, as of the last collection
	refused atomic.Uint64
}

// watchMemory keeps the process below its limit (limits.memory) until ctx ends: first the cache gives way, then nobody
// new is let in.
func (r *Relay) watchMemory(ctx context.Context) {
	meter := overload.NewMemoryMeter()
	core := overload.NewMemory(r.cfg.Memory, r.cfg.Cache.Capacity)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			u := meter.Read()
			r.followMemory(core.Observe(now, u, r.cache.Stats().Bytes), u.Bytes)
		case <-ctx.Done():
			return
		}
	}
}

// followMemory makes a verdict true.
func (r *Relay) followMemory(v overload.MemoryVerdict, used int64) {
	s := &r.pressure.memory
	s.used.Store(used)
	r.room.leave(forLimit, v.Cache)
	if was := s.full.Swap(v.Full); was != v.Full {
		if v.Full {
			r.log.Warn("memory is short: new clients are refused", "used", used, "limit", r.cfg.Memory, "sessions", r.sessions.len())
		} else {
			r.log.Info("there is memory again", "used", used, "limit", r.cfg.Memory, "refused", s.refused.Load())
		}
	}
	if v.Collect {
		debug.FreeOSMemory()
	}
}

// Who may leave less room to the cache than it is configured to have.
const (
	forHeadroom = iota // cache.headroom
	forLimit           // limits.memory
)

// room is how large the cache may be: the least of what it is configured to be and of what is left to it.
type room struct {
	resize func(int64)
	most   int64 // 0 = unbounded

	mu   sync.Mutex
	left [2]int64 // 0 = no less than it is configured to have
}

// leave says how much is left to the cache, and why.
func (m *room) leave(why int, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left[why] == n {
		return
	}
	m.left[why] = n
	least := m.most
	for _, n := range m.left {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	m.resize(least)
}
