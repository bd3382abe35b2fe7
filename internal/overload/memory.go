package overload

import (
	"runtime/metrics"
	"time"
)

// Parts of the limit of a process' memory, in percent.
const (
	// shrinkAt is how full the process may be before its cache gives way.
	shrinkAt = 80
	// fullAt is how full it is, without what the cache can give away, when it takes in no more; calmAt how full it must not
	// be any more when it does again.
	fullAt = 90
	calmAt = 85
)

// collectEvery is how long a process that is full waits for a collection, which alone tells what has become free, before
// it asks for one.
const collectEvery = 2 * time.Second

// MinCache is what a cache keeps however little memory is left, in bytes: live content goes through it.
const MinCache = 16 << 20

// Usage is the memory that the process cannot do without: what is alive on its heap, stacks, and what the runtime keeps
// for itself.
type Usage struct {
	Bytes int64
	// Cycle counts collections. What is alive is known as of the last one.
	Cycle uint64
}

// MemoryVerdict is what to do about memory until the next one.
type MemoryVerdict struct {
	// Cache is how much the cache may hold, in bytes; 0 = as much as it is configured to.
	Cache int64
	// Full asks to refuse new clients.
	Full bool
	// Collect asks for a collection.
	Collect bool
}

// Memory turns usage into verdicts: near the limit first the cache shrinks; when there is nothing left to give away, nobody
// new is let in. It is deterministic and not safe for concurrent use.
type Memory struct {
	limit, most int64
	now         MemoryVerdict
	giving      bool // the cache has more than it may
	cycle       uint64
	seen        time.Time // when the last collection was noticed
}

// NewMemory makes one for a process that may use limit bytes, most of them for its cache (0 = as many as there are).
func NewMemory(limit, most int64) *Memory { return &Memory{limit: limit, most: most} }

// Observe takes in the usage, of which cached bytes are in the cache; call it a few times a second.
func (m *Memory) Observe(now time.Time, u Usage, cached int64) MemoryVerdict {
	if m.seen.IsZero() || u.Cycle != m.cycle {
		m.cycle, m.seen = u.Cycle, now
		m.judge(u.Bytes, cached)
	}
	m.now.Collect = (m.now.Full || m.giving) && now.Sub(m.seen) >= collectEvery
	return m.now
}

// judge decides anew. What was evicted since the last collection still counts as used, so there is nothing to decide
// between two of them.
func (m *Memory) judge(used, cached int64) {
	fixed := max(0, used-cached)
	m.now.Cache = max(m.part(shrinkAt)-fixed, MinCache)
	m.giving = cached > m.now.Cache
	if m.most > 0 && m.now.Cache >= m.most {
		m.now.Cache = 0
	}
	held := fixed + min(cached, MinCache)
	switch {
	case held >= m.part(fullAt), used >= m.limit:
		m.now.Full = true
	case held < m.part(calmAt) && used < m.part(fullAt):
		m.now.Full = false
	}
}

func (m *Memory) part(percent int64) int64 { return m.limit / 100 * percent }

// usageNames are what the runtime is asked for: what is alive, everything that it has from the system, and what of that
// has no use now.
var usageNames = []string{
	"/gc/cycles/total:gc-cycles", "/gc/heap/live:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/objects:bytes",
	"/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes",
}

// MemoryMeter reads the usage of this process. It is not safe for concurrent use.
type MemoryMeter struct{ samples []metrics.Sample }

// NewMemoryMeter makes one.
func NewMemoryMeter() *MemoryMeter {
	m := &MemoryMeter{samples: make([]metrics.Sample, len(usageNames))}
	for i, name := range usageNames {
		m.samples[i].Name = name
	}
	return m
}

// Read returns the usage now.
func (m *MemoryMeter) Read() Usage {
	metrics.Read(m.samples)
	var v [7]int64
	for i, s := range m.samples {
		if s.Value.Kind() == metrics.KindUint64 {
			v[i] = int64(s.Value.Uint64())
		}
	}
	cycle, live, total, objects := v[0], v[1], v[2], v[3]
	if cycle == 0 { // nothing was collected yet
		live = objects
	}
	return Usage{Bytes: max(0, live+total-objects-v[4]-v[5]-v[6]), Cycle: uint64(cycle)}
}
