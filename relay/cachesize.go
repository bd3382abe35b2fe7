package relay

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/moqmesh/moqmesh/internal/memory"
	"github.com/moqmesh/moqmesh/internal/overload"
)

const (
	// sizeEvery is how often the cache is fitted to the memory that is left (cache.headroom).
	sizeEvery = 5 * time.Second
	// releaseEvery is how often, at most, memory that is held but not used is given back: that costs a collection.
	releaseEvery = 30 * time.Second
	// minCapacity is what the cache keeps however little memory is left.
	minCapacity = overload.MinCache
)

// sizer keeps memory free by shrinking the cache, and lets it grow again up to its configured size.
type sizer struct {
	headroom  int64
	most      int64                 // 0 = unbounded
	available func() (int64, error) // memory that is left
	release   func()                // gives back what is held but not used
	used      func() int64          // by the cache
	resize    func(int64)

	released time.Time
	failed   bool
}

// next is the capacity with which headroom stays free, where the cache uses used and available is left.
func (s *sizer) next(used, available int64) int64 {
	room := max(used+available-s.headroom, minCapacity)
	if s.most > 0 {
		room = min(room, s.most)
	}
	return room
}

// fit looks at the memory once. Before the cache is cut, memory that only seems to be used is given back: what was
// evicted is not free before a collection, and would be counted again and again.
func (s *sizer) fit(now time.Time) error {
	left, err := s.available()
	if err == nil && left < s.headroom && now.Sub(s.released) >= releaseEvery {
		s.released = now
		s.release()
		left, err = s.available()
	}
	if err != nil {
		return err
	}
	s.resize(s.next(s.used(), left))
	return nil
}

// sizeCache runs until ctx ends.
func (r *Relay) sizeCache(ctx context.Context) {
	s := &sizer{
		headroom: r.cfg.CacheHeadroom, most: r.cfg.Cache.Capacity, release: debug.FreeOSMemory,
		available: func() (int64, error) { return memory.Available(memory.System()) },
		used:      func() int64 { return r.cache.Stats().Bytes },
		resize:    func(n int64) { r.room.leave(forHeadroom, n) },
	}
	tick := time.NewTicker(sizeEvery)
	defer tick.Stop()
	for {
		err := s.fit(time.Now())
		if err != nil && !s.failed {
			r.log.Warn("cache is not fitted to the memory that is left", "err", err)
		}
		s.failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
