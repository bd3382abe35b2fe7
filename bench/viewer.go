package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
)

// version is what viewers speak.
const version = message.Lite06

// Token is the protocol that a connection of a viewer must have negotiated.
var Token = version.Token()

// Viewer is a subscriber that is as cheap as can be: it speaks just enough of moq-lite 06 to receive one track, checks
// each frame as it arrives and keeps nothing, so that the relay is what gets measured.
type Viewer struct {
	conn    transport.Conn
	control transport.Stream
	counter *atomic.Uint64
	reading sync.WaitGroup

	mu      sync.Mutex
	frames  uint64
	bytes   uint64
	wrong   uint64
	twice   uint64
	groups  map[uint64]uint32 // frames received of each group
	latency latency.Histogram
	err     error
	closing bool
}

// Subscription is what viewers ask for.
type Subscription struct {
	Path   string // path[?query] of the relay's URL, for connections that have none of their own
	Name   string // of the broadcast
	Track  string
	MaxAge time.Duration
	// Delivered, if set, counts the frames of all viewers that share it.
	Delivered *atomic.Uint64
}

// View subscribes on a connection, which the viewer owns from then on, also if View fails. Close ends it.
func View(ctx context.Context, conn transport.Conn, sub Subscription) (*Viewer, error) {
	v := &Viewer{conn: conn, counter: sub.Delivered, groups: make(map[uint64]uint32)}
	if err := v.subscribe(ctx, sub); err != nil {
		conn.Close(0, "")
		return nil, fmt.Errorf("viewer: %w", err)
	}
	v.reading.Go(v.accept)
	v.reading.Go(v.answers)
	return v, nil
}

func (v *Viewer) subscribe(ctx context.Context, sub Subscription) error {
	if got := v.conn.Info().Protocol; got != Token {
		return fmt.Errorf("negotiated %q, not %q", got, Token)
	}
	setup := message.Setup{Role: message.RoleSubscriber}
	if v.conn.Info().URL == nil && sub.Path != "" {
		setup.Path, setup.HasPath = sub.Path, true
	}
	hello, err := setup.Append(message.UniSetup.Append(nil), version)
	if err != nil {
		return err
	}
	uni, err := v.conn.OpenUniStream(ctx)
	if err != nil {
		return err
	}
	if _, err := uni.Write(hello); err != nil {
		return err
	}
	if err := uni.Close(); err != nil {
		return err
	}
	ask := message.Subscribe{Broadcast: sub.Name, Track: sub.Track}
	ask.Priority, ask.MaxAge = 127, sub.MaxAge
	request, err := ask.Append(message.StreamSubscribe.Append(nil), version)
	if err != nil {
		return err
	}
	if v.control, err = v.conn.OpenStream(ctx); err != nil {
		return err
	}
	_, err = v.control.Write(request)
	return err
}

// answers reads the subscription's own stream: only its end says something.
func (v *Viewer) answers() {
	r := bufio.NewReaderSize(v.control, 64)
	for {
		if _, err := message.ReadResponse(r, version); err != nil {
			v.fail(fmt.Errorf("subscription: %w", err))
			return
		}
	}
}

// accept takes group streams until the connection ends. Streams of the peer's own requests are left alone: it does not
// wait for us.
func (v *Viewer) accept() {
	ctx := v.conn.Context()
	for {
		st, err := v.conn.AcceptUniStream(ctx)
		if err != nil {
			v.fail(context.Cause(ctx))
			return
		}
		v.reading.Go(func() { v.group(st) })
	}
}

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// group reads one stream.
func (v *Viewer) group(st transport.ReceiveStream) {
	r := readers.Get().(*bufio.Reader)
	r.Reset(st)
	defer func() {
		r.Reset(nil)
		readers.Put(r)
	}()
	typ, err := message.ReadUniType(r, version)
	if err != nil || typ != message.UniGroup {
		st.Stop(0) // SETUP
		return
	}
	var g message.Group
	if err := message.Read(r, version, &g); err != nil {
		st.Stop(0)
		return
	}
	v.begin(g.Sequence)
	frames := message.NewFrameReader(r, version)
	for {
		_, payload, err := frames.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				st.Stop(0) // what is missing counts as lost
			}
			return
		}
		v.frame(g.Sequence, payload)
	}
}

func (v *Viewer) begin(group uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.groups[group]; ok {
		v.twice++
		return
	}
	v.groups[group] = 0
}

func (v *Viewer) frame(group uint64, payload []byte) {
	now := time.Now()
	h, err := testmedia.Mesh.Parse(payload)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch have := v.groups[group]; {
	case err != nil || h.Group != group || h.Index > have:
		v.wrong++
		return
	case h.Index < have:
		v.twice++
		return
	}
	v.groups[group]++
	v.frames++
	v.bytes += uint64(len(payload))
	v.latency.Add(h.Age(now))
	if v.counter != nil {
		v.counter.Add(1)
	}
}

func (v *Viewer) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil && !v.closing {
		v.err = err
	}
}

// Snapshot is what a viewer has received so far.
type Snapshot struct {
	Frames uint64 // intact, in place
	Bytes  uint64
	Wrong  uint64
	Twice  uint64
	Err    error // how it ended, if not by Close
}

// Snapshot reads the counters.
func (v *Viewer) Snapshot() Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	return Snapshot{Frames: v.frames, Bytes: v.bytes, Wrong: v.wrong, Twice: v.twice, Err: v.err}
}

// Reset forgets the latencies so far.
func (v *Viewer) resetLatency() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.latency = latency.Histogram{}
}

// addLatency merges the latencies since the last reset into h.
func (v *Viewer) addLatency(h *latency.Histogram) {
	v.mu.Lock()
	defer v.mu.Unlock()
	h.Merge(&v.latency)
}

// Lost is how many frames of the groups first to last (inclusive), of per frames each, have not come.
func (v *Viewer) Lost(first, last uint64, per uint32) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lost uint64
	for g := first; g <= last; g++ {
		lost += uint64(per - min(v.groups[g], per))
	}
	return lost
}

// Close ends the session and returns when all goroutines of the viewer have ended.
func (v *Viewer) Close() {
	v.mu.Lock()
	v.closing = true
	v.mu.Unlock()
	v.conn.Close(0, "")
	v.reading.Wait()
}
