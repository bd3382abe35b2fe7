package media_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/media"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a track with a cache and a clock. Timestamps of these tests are in seconds unless said otherwise.
type rig struct {
	t     testing.TB
	cache *media.Cache
	track *media.Track
	now   time.Time
}

// newRig makes a track with 10 s of retention and timestamps in milliseconds.
func newRig(tb testing.TB) *rig {
	tb.Helper()
	return newRigWith(tb, media.CacheConfig{}, 10*time.Second)
}

func newRigWith(tb testing.TB, cfg media.CacheConfig, retention time.Duration) *rig {
	tb.Helper()
	r := &rig{t: tb, cache: media.NewCache(cfg), now: time.Now()}
	r.track = r.cache.NewTrack(media.Info{Priority: 127, MaxAge: retention, Timescale: 1000})
	r.cache.Sweep(r.now)
	tb.Cleanup(func() {
		r.track.Close(errors.New("test over"))
		if s := r.cache.Stats(); s.Tracks != 0 || s.Groups != 0 || s.Bytes != 0 {
			tb.Errorf("the cache still has %+v", s)
		}
	})
	return r
}

// pass lets time pass in the steps of a real owner.
func (r *rig) pass(d time.Duration) {
	for ; d > 0; d -= 250 * time.Millisecond {
		r.now = r.now.Add(min(d, 250*time.Millisecond))
		r.cache.Sweep(r.now)
	}
}

// ms turns seconds into the timestamps of the rig.
func ms(seconds float64) uint64 { return uint64(seconds*1000 + 0.5) }

// payload is the content of a frame: the same from every copy.
func payload(group, frame uint64) []byte { return fmt.Appendf(nil, "%d:%d", group, frame) }

// stream is one group stream of a copy.
type stream struct {
	r     *rig
	w     *media.GroupWriter
	seq   uint64
	frame uint64
}

func (r *rig) open(c *media.Copy, seq, frame uint64) *stream {
	r.t.Helper()
	w, err := c.Group(seq, frame)
	if err != nil {
		r.t.Fatalf("group %d: %v", seq, err)
	}
	return &stream{r, w, seq, frame}
}

// send writes the next n frames. Frame f of group g has timestamp g + f/10 s.
func (s *stream) send(n int) *stream {
	s.r.t.Helper()
	for range n {
		if err := s.write(ms(float64(s.seq) + float64(s.frame)/10)); err != nil {
			s.r.t.Fatalf("frame %d of group %d: %v", s.frame-1, s.seq, err)
		}
	}
	return s
}

// sendAt writes frames with these timestamps in seconds.
func (s *stream) sendAt(seconds ...float64) *stream {
	s.r.t.Helper()
	for _, ts := range seconds {
		if err := s.write(ms(ts)); err != nil {
			s.r.t.Fatalf("frame %d of group %d: %v", s.frame-1, s.seq, err)
		}
	}
	return s
}

func (s *stream) write(ts uint64) error {
	s.frame++
	return s.w.WriteFrame(ts, payload(s.seq, s.frame-1))
}

func (s *stream) fin() { s.w.Finish() }

// whole sends a complete group of n frames.
func (r *rig) whole(c *media.Copy, seq uint64, n int) {
	r.t.Helper()
	r.open(c, seq, 0).send(n).fin()
}

// wakeups counts what a reader or copy was told.
type wakeups struct{ n int }

func (w *wakeups) Wake() { w.n++ }

// woken says whether there was one since the last call.
func (w *wakeups) woken() bool {
	n := w.n
	w.n = 0
	return n > 0
}

// sub is a subscription with a max age in seconds, without start and end.
func sub(maxAge float64) media.Subscription {
	return media.Subscription{MaxAge: time.Duration(maxAge * float64(time.Second))}
}

// viewer reads what it can, as a session does, and remembers it.
type viewer struct {
	t      testing.TB
	reader *media.Reader
	wakeups
	open  map[uint64]*media.GroupReader
	order []uint64            // groups in the order they were handed out
	log   map[uint64][]string // frames per group
	ended map[uint64]error
	err   error
}

func (r *rig) view(s media.Subscription) *viewer {
	v := &viewer{t: r.t, open: map[uint64]*media.GroupReader{}, log: map[uint64][]string{}, ended: map[uint64]error{}}
	v.reader = r.track.NewReader(s, &v.wakeups)
	r.t.Cleanup(v.close)
	return v
}

func (v *viewer) close() {
	v.reader.Close()
	for _, g := range v.open {
		g.Close()
	}
}

// read takes all groups and frames that are there.
func (v *viewer) read() *viewer {
	v.t.Helper()
	for v.err == nil {
		g, err := v.reader.Next()
		if g == nil && err == nil {
			break
		}
		if err != nil {
			v.err = err
			break
		}
		seq := g.Sequence()
		if _, dup := v.log[seq]; dup {
			v.t.Fatalf("group %d was handed out twice", seq)
		}
		v.order = append(v.order, seq)
		v.open[seq], v.log[seq] = g, []string{}
	}
	for seq, g := range v.open {
		v.drain(seq, g)
	}
	return v
}

func (v *viewer) drain(seq uint64, g *media.GroupReader) {
	v.t.Helper()
	for {
		b, err := g.Poll()
		if err != nil {
			v.ended[seq] = err
			g.Close()
			delete(v.open, seq)
			return
		}
		if b.Frames() == 0 {
			return
		}
		for i := range b.Frames() {
			v.log[seq] = append(v.log[seq], string(b.Frame(i).Payload))
		}
	}
}

// has checks that group seq was read as frames first to first+n-1, and how it ended: nil = it is open.
func (v *viewer) has(seq, first uint64, n int, end error) {
	v.t.Helper()
	var want []string
	for i := range uint64(n) {
		want = append(want, string(payload(seq, first+i)))
	}
	got, ok := v.log[seq]
	if !ok {
		v.t.Errorf("group %d was not handed out", seq)
		return
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		v.t.Errorf("group %d: frames %v, want %v", seq, got, want)
	}
	if !errors.Is(v.ended[seq], end) {
		v.t.Errorf("group %d ended with %v, want %v", seq, v.ended[seq], end)
	}
}

// complete checks that group seq was read whole.
func (v *viewer) complete(seq uint64, n int) {
	v.t.Helper()
	v.has(seq, 0, n, io.EOF)
}

// got checks which groups were handed out, in order.
func (v *viewer) got(want ...uint64) {
	v.t.Helper()
	if fmt.Sprint(v.order) != fmt.Sprint(want) {
		v.t.Errorf("groups %v were handed out, want %v", v.order, want)
	}
}

// start checks what SUBSCRIBE_START would say; -1 = not known.
func (v *viewer) start(want int64) {
	v.t.Helper()
	got, ok := v.reader.Start()
	if ok != (want >= 0) || ok && got != uint64(want) {
		v.t.Errorf("start = %d, %v, want %d", got, ok, want)
	}
}
