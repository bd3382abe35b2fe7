package bench

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/transport"
)

// shard is what viewers of one socket count together.
type shard struct {
	mu      sync.Mutex
	counts  counts
	latency latency.Histogram
}

// counts are totals.
type counts struct {
	frames uint64 // intact, in place
	bytes  uint64 // payload of these
	wrong  uint64 // damaged or not where they say
}

func (c *counts) add(o counts) {
	c.frames += o.frames
	c.bytes += o.bytes
	c.wrong += o.wrong
}

// take returns the counts so far, and the latencies since the last call with reset.
func (s *shard) take(h *latency.Histogram, reset bool) counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != nil {
		h.Merge(&s.latency)
	}
	if reset {
		s.latency = latency.Histogram{}
	}
	return s.counts
}

// watch is what a viewer has to know of its track and tells of its progress. Many viewers share one.
type watch struct {
	per       uint32        // frames per group
	buffer    int           // bytes that a stream is read by
	from      atomic.Uint64 // first group of which every viewer should get all; neverCount while there is none
	delivered atomic.Uint64 // frames, all viewers together
	wake      chan struct{} // of capacity 1, or nil: gets something when frames were delivered
}

// neverCount is above all groups.
const neverCount = math.MaxUint64

func newWatch(per, frameBytes int) *watch {
	w := &watch{per: uint32(per), buffer: min(max(frameBytes+frameBytes/8, 4<<10), 64<<10)}
	w.from.Store(neverCount)
	return w
}

// viewer receives one track on a session of its own. It checks each frame as it arrives and keeps nothing.
type viewer struct {
	thin    *thin
	control transport.Stream
	watch   *watch
	shard   *shard
	first   chan struct{} // closed when the first frame is there
	started time.Time     // when that was; to be read after first
	reading sync.WaitGroup
	closing atomic.Bool

	ended chan struct{} // closed once err is set
	once  sync.Once
	err   error

	ledger ledger    // under shard.mu
	last   time.Time // when the last frame came; under shard.mu
	gap    time.Duration
}

// view subscribes on a session, which the viewer owns from then on, also if view fails. Close ends it.
func view(ctx context.Context, t *thin, sub subscription, w *watch, s *shard) (*viewer, error) {
	v := &viewer{thin: t, watch: w, shard: s, first: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if v.control, err = t.subscribe(ctx, sub); err != nil {
		t.conn.Close(0, "")
		return nil, err
	}
	v.reading.Go(v.accept)
	v.reading.Go(func() { v.fail(t.refused(v.control)) })
	return v, nil
}

// accept takes group streams until the connection ends.
func (v *viewer) accept() {
	ctx := v.thin.conn.Context()
	for {
		st, err := v.thin.conn.AcceptUniStream(ctx)
		if err != nil {
			v.fail(context.Cause(ctx))
			return
		}
		v.reading.Go(func() { v.read(st) })
	}
}

// buffers hold what a Read returns until it has been checked.
var buffers sync.Pool

func (w *watch) getBuffer() []byte {
	if b, ok := buffers.Get().(*[]byte); ok && len(*b) >= w.buffer {
		return *b
	}
	return make([]byte, w.buffer)
}

// read takes one stream to its end.
func (v *viewer) read(st transport.ReceiveStream) {
	buf := v.watch.getBuffer()
	defer buffers.Put(&buf)
	in := stream{v: v.thin.v}
	batch := arrival{of: v, in: &in}
	for {
		n, err := st.Read(buf)
		if n > 0 && batch.take(buf[:n]) != nil {
			st.Stop(0)
			return
		}
		if err != nil {
			return // what a cut stream did not bring counts as lost
		}
		if in.state == notGroup {
			st.Stop(0)
			return
		}
	}
}

// arrival counts the frames that one Read completes.
type arrival struct {
	of  *viewer
	in  *stream
	now time.Time
	n   uint64
}

func (a *arrival) take(b []byte) error {
	a.now, a.n = time.Now(), 0
	v := a.of
	v.shard.mu.Lock()
	err := a.in.feed(b, a.frame)
	if err != nil {
		v.shard.counts.wrong++
	}
	v.shard.mu.Unlock()
	if a.n > 0 {
		v.watch.delivered.Add(a.n)
		select {
		case v.watch.wake <- struct{}{}:
		default:
		}
	}
	return err
}

// frame counts one frame, under the lock of the shard.
func (a *arrival) frame(size uint64, h testmedia.Header, err error) {
	v, s := a.of, a.of.shard
	if err != nil || h.Group != a.in.group.Sequence || h.Of != v.watch.per || h.Index >= h.Of {
		s.counts.wrong++
		return
	}
	if from := v.watch.from.Load(); h.Group >= from {
		if v.ledger.per == 0 {
			v.ledger.per, v.ledger.base = v.watch.per, from
		}
		if !v.ledger.add(h.Group, h.Index) {
			return
		}
	}
	a.n++
	s.counts.frames++
	s.counts.bytes += size
	s.latency.Add(h.Age(a.now))
	if v.last.IsZero() {
		v.started = a.now
		close(v.first)
	} else {
		v.gap = max(v.gap, a.now.Sub(v.last))
	}
	v.last = a.now
}

// fail notes how the viewer ended, if not by Close.
func (v *viewer) fail(err error) {
	v.once.Do(func() {
		if !v.closing.Load() {
			v.err = err
		}
		close(v.ended)
	})
}

// state is nil while the viewer receives.
func (v *viewer) state() error {
	select {
	case <-v.ended:
		return v.err
	default:
		return nil
	}
}

// lost is how many frames it lacks of the groups from the first that counts to last, and twice how many came again.
func (v *viewer) lost(last uint64) (lost, twice uint64) {
	v.shard.mu.Lock()
	defer v.shard.mu.Unlock()
	if v.ledger.per == 0 { // nothing that counts has come
		v.ledger.per, v.ledger.base = v.watch.per, v.watch.from.Load()
	}
	return v.ledger.lost(last), v.ledger.twice
}

// longest is the longest time without a frame since the last call; the time since the last frame counts too.
func (v *viewer) longest(now time.Time) time.Duration {
	v.shard.mu.Lock()
	defer v.shard.mu.Unlock()
	gap := v.gap
	if !v.last.IsZero() {
		gap = max(gap, now.Sub(v.last))
	}
	v.gap = 0
	return gap
}

// quiet is how long nothing has come.
func (v *viewer) quiet(now time.Time) time.Duration {
	v.shard.mu.Lock()
	defer v.shard.mu.Unlock()
	return now.Sub(v.last)
}

// Close ends the session and returns when all goroutines of the viewer have ended.
func (v *viewer) Close() {
	v.closing.Store(true)
	v.thin.conn.Close(0, "")
	v.reading.Wait()
}
