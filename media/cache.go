package media

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// CacheConfig configures a Cache. The zero value works.
type CacheConfig struct {
	// Capacity is the number of bytes above which writing tracks drop their least recently used groups; 0 = unbounded.
	Capacity int64
	// Idle is how long a group stays that nobody reads or writes; 0 = 30 s.
	Idle time.Duration
	// MaxAge caps every track's retention window; 0 = no cap.
	MaxAge time.Duration
}

// CacheStats is a snapshot of a Cache.
type CacheStats struct {
	Bytes    int64 // payload plus a fixed overhead per group and frame
	Capacity int64 // 0 = unbounded
	Groups   int64
	Tracks   int64
	Repeated uint64 // frames received again, from another copy, and dropped since the start
	Evicted  uint64 // groups evicted since the start, because idle or under pressure
	Shed     uint64 // groups skipped by readers for the sake of the others, see SetPatience
}

// Cache is the pool that all tracks of a relay share: accounts, the clock, and the rules by which groups go (F13). It
// owns no goroutine.
type Cache struct {
	idle, maxAge time.Duration

	capacity atomic.Int64
	used     atomic.Int64
	groups   atomic.Int64
	tracks   atomic.Int64
	repeated atomic.Uint64
	evicted  atomic.Uint64
	patience atomic.Int64 // see SetPatience
	shed     atomic.Uint64
	// stamps is the sum of the last uses of all groups, for their average.
	stamps atomic.Int64
	// now is the time of the last Sweep, counted from the first.
	now atomic.Int64
	// beat is what arrivals are stamped with, see Beat.
	beat atomic.Pointer[time.Time]

	mu  sync.Mutex // guards set; no other lock is taken under it
	set map[*Track]struct{}

	sweep  sync.Mutex // guards what follows; only mu is taken under it
	epoch  time.Time
	idleAt time.Duration
	spare  []*Track // the list of the last Sweep, to be used again
}

// NewCache makes a cache.
func NewCache(cfg CacheConfig) *Cache {
	c := &Cache{idle: cfg.Idle, maxAge: cfg.MaxAge, set: make(map[*Track]struct{})}
	if c.idle <= 0 {
		c.idle = defaultIdle
	}
	c.Resize(cfg.Capacity)
	return c
}

// Resize changes the capacity in bytes; 0 = unbounded. Tracks pay the difference as they write.
func (c *Cache) Resize(capacity int64) { c.capacity.Store(max(0, capacity)) }

// SetPatience makes readers that are further behind than d skip to what is live, whatever max age they asked for; groups
// that were begun go on. 0 ends that. It is for a relay that is late: those who are furthest behind give way.
func (c *Cache) SetPatience(d time.Duration) { c.patience.Store(int64(max(0, d))) }

// Stats returns a snapshot. It does not block.
func (c *Cache) Stats() CacheStats {
	return CacheStats{
		Bytes: c.used.Load(), Capacity: c.capacity.Load(), Groups: c.groups.Load(),
		Tracks: c.tracks.Load(), Evicted: c.evicted.Load(),
		Repeated: c.repeated.Load(), Shed: c.shed.Load(),
	}
}

// NewTrack makes an empty track. Its retention window is info.MaxAge, capped by the cache's MaxAge (F12); a timescale
// of 0 is taken as the default. The owner closes the track.
func (c *Cache) NewTrack(info Info) *Track {
	if c.maxAge > 0 {
		info.MaxAge = min(info.MaxAge, c.maxAge)
	}
	if info.Timescale == 0 {
		info.Timescale = DefaultTimescale
	}
	t := &Track{cache: c, info: info, retention: ticks(info.MaxAge, info.Timescale), alarm: never}
	c.mu.Lock()
	c.set[t] = struct{}{}
	c.mu.Unlock()
	c.tracks.Add(1)
	return t
}

// Sweep tells the time and does what is due: groups that nobody delivers any more are given up (F33), groups that
// nobody used go (F13). Its owner calls it every 250 ms or so, which is the precision of all waits of this package;
// idle groups are looked for once per second. now must carry a monotonic reading.
func (c *Cache) Sweep(now time.Time) {
	tracks, idle := c.advance(now)
	for _, t := range tracks {
		t.tick(idle)
	}
	clear(tracks)
	c.sweep.Lock()
	c.spare = tracks[:0]
	c.sweep.Unlock()
}

// advance sets the clock and returns all tracks, and the time since which a group must have been used to stay; it is
// negative if that need not be looked at now.
func (c *Cache) advance(now time.Time) (tracks []*Track, idle time.Duration) {
	c.sweep.Lock()
	defer c.sweep.Unlock()
	if c.epoch.IsZero() {
		c.epoch = now
	}
	at := max(now.Sub(c.epoch), c.clock())
	c.now.Store(int64(at))
	idle = -1
	if at >= c.idleAt {
		idle, c.idleAt = at-c.idle, at+time.Second
	}
	tracks, c.spare = c.spare, nil
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range c.set {
		tracks = append(tracks, t)
	}
	return tracks, idle
}

// clock returns the time of the last Sweep.
func (c *Cache) clock() time.Duration { return time.Duration(c.now.Load()) }

func (c *Cache) drop(t *Track) {
	c.mu.Lock()
	delete(c.set, t)
	c.mu.Unlock()
	c.tracks.Add(-1)
}

// cacheEntry is a group's account. The lock of its track guards it.
type cacheEntry struct {
	charged    int64
	used       time.Duration // last read or write
	prev, next *group        // by last use
	entered    bool
}

// useList holds the groups of one track by last use, oldest first.
type useList struct{ head, tail *group }

func (l *useList) push(g *group) {
	g.entry.prev, g.entry.next = l.tail, nil
	if l.tail != nil {
		l.tail.entry.next = g
	} else {
		l.head = g
	}
	l.tail = g
}

func (l *useList) remove(g *group) {
	if g.entry.prev != nil {
		g.entry.prev.entry.next = g.entry.next
	} else {
		l.head = g.entry.next
	}
	if g.entry.next != nil {
		g.entry.next.entry.prev = g.entry.prev
	} else {
		l.tail = g.entry.prev
	}
	g.entry.prev, g.entry.next = nil, nil
}

// enter opens the account of a group.
func (c *Cache) enter(t *Track, g *group) {
	g.entry = cacheEntry{used: c.clock(), entered: true}
	t.uses.push(g)
	c.groups.Add(1)
	c.stamps.Add(int64(g.entry.used))
	c.charge(g, groupOverhead)
}

// leave closes it.
func (c *Cache) leave(t *Track, g *group) {
	if !g.entry.entered {
		return
	}
	t.uses.remove(g)
	c.groups.Add(-1)
	c.stamps.Add(-int64(g.entry.used))
	c.used.Add(-g.entry.charged)
	g.entry = cacheEntry{}
}

func (c *Cache) charge(g *group, n int64) {
	if g.entry.entered {
		g.entry.charged += n
		c.used.Add(n)
	}
}

// touch notes a use.
func (c *Cache) touch(t *Track, g *group) {
	now := c.clock()
	if g.entry.used == now || !g.entry.entered {
		return
	}
	c.stamps.Add(int64(now - g.entry.used))
	g.entry.used = now
	t.uses.remove(g)
	t.uses.push(g)
}

// staler says whether a last use is before the average of all groups.
func (c *Cache) staler(used time.Duration) bool {
	n := c.groups.Load()
	return n > 0 && int64(used) < c.stamps.Load()/n
}

// owed is what writing n bytes costs in evicted bytes: n x used / capacity, or 0 within the capacity (F13).
func (c *Cache) owed(n int64) int64 {
	capacity, used := c.capacity.Load(), c.used.Load()
	if capacity <= 0 || used <= capacity {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(used))
	if hi >= uint64(capacity) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(capacity))
	return int64(min(q, math.MaxInt64))
}
