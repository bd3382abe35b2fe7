package media

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// This file checks a track under random sequences of everything that may happen to it against slow and obvious
// statements of the rules: what streams brought is a set of frames, age is a scan over all groups, what readers lack is a
// scan over all positions.

// world is a track, those who feed and read it, and what is known to be true of them.
type world struct {
	cache   *Cache
	track   *Track
	now     time.Time
	shift   map[uint64]uint64 // per group: how far its timestamps are moved back, for rewinds
	copies  []*Copy
	streams []*feed
	readers []*audience
	brought map[*group]*truth
	edge    uint64 // streams begin around here
	ended   bool
	whole   int // groups that readers have read to their end
}

// truth is what the streams of a group brought.
type truth struct {
	frames map[uint64]bool
	base   uint64
	whole  bool // a stream that brought the last frame has ended
}

func (tr *truth) prefix() uint64 {
	n := tr.base
	for tr.frames[n] {
		n++
	}
	return n
}

type feed struct {
	copy *Copy
	w    *GroupWriter
	g    *group
	next uint64
}

// audience is a reader and what it got.
type audience struct {
	r       *Reader
	wakes   int
	held    map[uint64]*GroupReader
	next    map[uint64]uint64 // frames read so far, per group ever handed out
	skipped map[uint64]bool   // too old when it was looked at
	lowest  uint64            // what START said, or a lower start stated since
	told    bool
}

func (a *audience) Wake() { a.wakes++ }

const modelGroups = 60

// length is the number of frames of a group.
func length(seq uint64) uint64 { return 1 + seq%4 }

func (w *world) stamp(seq, frame uint64) uint64 { return 1000 + 10*seq + 2*frame - w.shift[seq] }

func content(seq, frame uint64) []byte { return fmt.Appendf(nil, "%d:%d", seq, frame) }

func (a *audience) budget() time.Duration { return min(a.r.sub.MaxAge, a.r.track.info.MaxAge) }

func (w *world) newCopy(t *rapid.T) {
	if len(w.copies) == 3 {
		return
	}
	c := w.track.NewCopy(nil)
	want := w.lacking()
	got := w.track.Lacking(w.aggregate())
	if fmt.Sprint(deref(got)) != fmt.Sprint(deref(want)) {
		t.Fatalf("lacking %v, want %v", deref(got), deref(want))
	}
	if rapid.Bool().Draw(t, "ask") {
		c.Ask(w.aggregate())
	}
	w.copies = append(w.copies, c)
}

// among draws a number below n, evenly: rapid's own ranges and samples prefer small ones.
func among(t *rapid.T, n uint64, name string) uint64 {
	v := uint64(0)
	for _, bit := range rapid.SliceOfN(rapid.Bool(), 2+bits.Len64(n), 2+bits.Len64(n)).Draw(t, name) {
		if v <<= 1; bit {
			v++
		}
	}
	return v % n
}

func oneIn(t *rapid.T, n uint64, name string) bool { return among(t, n, name) == n-1 }

func pick[T any](t *rapid.T, from []T, name string) T { return from[among(t, uint64(len(from)), name)] }

// near draws a group around the live edge.
func (w *world) near(t *rapid.T) uint64 {
	return min(w.edge-min(w.edge, 4)+among(t, 6, "seq"), modelGroups-1)
}

func deref(p *Position) any {
	if p == nil {
		return "the aggregate"
	}
	return *p
}

func (w *world) aggregate() Subscription {
	var subs []Subscription
	for _, a := range w.readers {
		subs = append(subs, a.r.sub)
	}
	agg, _ := Aggregate(subs, w.track.info.MaxAge)
	return agg
}

func (w *world) closeCopy(t *rapid.T) {
	if len(w.copies) == 0 || !oneIn(t, 2, "close") {
		return
	}
	i := int(among(t, uint64(len(w.copies)), "copy"))
	w.copies[i].Close()
	w.copies = slices.Delete(w.copies, i, i+1)
}

func (w *world) open(t *rapid.T) {
	if len(w.copies) == 0 {
		return
	}
	c := pick(t, w.copies, "copy")
	seq := w.near(t)
	w.edge = min(max(w.edge, seq+1), modelGroups-1)
	from := uint64(0)
	if oneIn(t, 4, "inside") {
		from = among(t, length(seq)+1, "from")
	}
	old := w.track.index.get(seq)
	wr, err := c.Group(seq, from)
	if err != nil {
		return
	}
	if old != nil && wr.g != old {
		t.Fatalf("group %d exists twice", seq)
	}
	if w.brought[wr.g] == nil {
		w.brought[wr.g] = &truth{frames: map[uint64]bool{}, base: wr.g.base}
	}
	w.streams = append(w.streams, &feed{c, wr, wr.g, from})
}

// stream picks an open stream of a live group.
func (w *world) stream(t *rapid.T) *feed {
	w.streams = slices.DeleteFunc(w.streams, func(f *feed) bool { return f.w.err != nil })
	if len(w.streams) == 0 {
		return nil
	}
	return pick(t, w.streams, "stream")
}

func (w *world) write(t *rapid.T) {
	f := w.stream(t)
	if f == nil || f.next >= length(f.g.seq) {
		return
	}
	w.brought[f.g].frames[f.next] = true
	err := f.w.WriteFrame(w.stamp(f.g.seq, f.next), content(f.g.seq, f.next))
	f.next++
	if err == nil && w.track.expiry > 0 { // else nothing new came, and the next frame looks
		w.expired(t)
	}
}

func (w *world) finish(t *rapid.T) {
	f := w.stream(t)
	if f == nil {
		return
	}
	if f.next < length(f.g.seq) {
		if !oneIn(t, 4, "reset") {
			return
		}
		f.w.Abort(errors.New("reset"))
		return
	}
	w.brought[f.g].whole = true
	f.w.Finish()
}

func (w *world) declare(t *rapid.T) {
	if len(w.copies) == 0 {
		return
	}
	c := pick(t, w.copies, "copy")
	seq := w.near(t)
	switch among(t, 12, "what") {
	case 0, 1, 2:
		c.Start(seq - min(seq, 2))
	case 3:
		c.End(seq + 10)
	case 4, 5:
		c.Drop(seq, seq)
	case 6:
		c.Limit(&seq)
	case 7, 8, 9:
		c.Limit(nil)
	}
}

func (w *world) subscription(t *rapid.T) Subscription {
	s := Subscription{MaxAge: time.Duration(rapid.SampledFrom([]int{0, 5, 10, 30, 1000}).Draw(t, "age")) * time.Millisecond}
	if oneIn(t, 3, "from") {
		s.Start = &Position{w.near(t), 0}
		if oneIn(t, 3, "inside") {
			s.Start.Frame = among(t, 3, "frame")
		}
	}
	if oneIn(t, 5, "to") {
		s.End = &Position{w.near(t) + among(t, 10, "more"), among(t, 3, "frame")}
	}
	s.Latest = oneIn(t, 4, "latest")
	return s
}

func (w *world) join(t *rapid.T) {
	if len(w.readers) == 5 {
		return
	}
	a := &audience{held: map[uint64]*GroupReader{}, next: map[uint64]uint64{}, skipped: map[uint64]bool{}}
	a.r = w.track.NewReader(w.subscription(t), a)
	w.readers = append(w.readers, a)
}

func (w *world) reader(t *rapid.T) *audience {
	if len(w.readers) == 0 {
		return nil
	}
	return pick(t, w.readers, "reader")
}

func (w *world) leave(t *rapid.T) {
	a := w.reader(t)
	if a == nil || !oneIn(t, 4, "leave") {
		return
	}
	a.r.Close()
	for _, g := range a.held {
		g.Close()
	}
	w.readers = slices.DeleteFunc(w.readers, func(b *audience) bool { return a == b })
}

func (w *world) update(t *rapid.T) {
	a := w.reader(t)
	if a == nil {
		return
	}
	s := w.subscription(t)
	had := a.r.sub.Start != nil
	a.r.Update(s)
	clear(a.skipped)
	switch {
	case s.Start != nil:
		a.lowest = min(a.lowest, s.Start.Group)
	case had:
		a.lowest = 0
	}
}

// drain makes a reader take all groups and frames there are, and checks each.
func (w *world) drain(t *rapid.T) {
	a := w.reader(t)
	if a == nil {
		return
	}
	if rapid.Bool().Draw(t, "start") {
		w.start(t, a)
	}
	before := a.r.fixed
	last := uint64(math.MaxUint64)
	for {
		g, err := a.r.Next()
		if g == nil {
			w.checkEnd(t, err)
			break
		}
		w.handedOut(t, a, g)
		if before && g.g.seq > last {
			t.Fatalf("group %d after %d: not the newest first", g.g.seq, last)
		}
		last = g.g.seq
	}
	w.nothingMissing(t, a)
	for seq, g := range a.held {
		w.readGroup(t, a, seq, g)
	}
}

func (w *world) pass(t *rapid.T) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(1, 6).Draw(t, "quarters")) * 250 * time.Millisecond)
	w.cache.Sweep(w.now)
	for _, g := range w.track.parked {
		if g.lost != nil && w.cache.clock() >= g.giveUp && len(w.track.copies) > 0 && !w.deliverable(g.seq) {
			t.Fatalf("group %d waits for nobody (F33)", g.seq)
		}
	}
}

func (w *world) end(t *rapid.T) {
	if w.ended || !oneIn(t, 60, "end") {
		return
	}
	w.ended = true
	w.track.End(w.near(t) + among(t, 4, "at"))
}

// step does a few things, and looks at everything after each.
func (w *world) step(t *rapid.T) {
	for range 8 {
		pick(t, []func(*rapid.T){
			w.newCopy, w.newCopy, w.closeCopy, w.declare, w.open, w.open, w.open, w.write, w.write, w.write, w.write, w.write,
			w.write, w.finish, w.finish, w.join, w.leave, w.update, w.drain, w.drain, w.drain, w.pass, w.end,
		}, "step")(t)
		w.consistent(t)
	}
}

func TestDeliveryModel(t *testing.T) {
	runs, whole := 0, 0
	for range 10 { // a run takes less than a millisecond
		rapid.Check(t, func(t *rapid.T) {
			w := newWorld(t)
			defer func() {
				runs, whole = runs+1, whole+w.whole
				w.close(t)
			}()
			t.Repeat(map[string]func(*rapid.T){"step": w.step})
		})
	}
	if whole < runs {
		t.Errorf("readers got %d whole groups in %d runs: the actions do not reach far enough", whole, runs)
	}
}

// newWorld makes a world in which some timestamps go back, and in which the cache may be too small.
func newWorld(t *rapid.T) *world {
	w := &world{brought: map[*group]*truth{}, now: time.Now(), shift: map[uint64]uint64{}}
	w.cache = NewCache(CacheConfig{Capacity: int64(among(t, 2, "tight")) * 6 * groupOverhead})
	w.cache.Sweep(w.now)
	for seq := range uint64(modelGroups) {
		if rapid.IntRange(0, 15).Draw(t, "rewind") == 15 {
			w.shift[seq] = among(t, 80, "by")
		}
	}
	w.track = w.cache.NewTrack(Info{MaxAge: 40 * time.Millisecond, Timescale: 1000})
	return w
}

func (w *world) close(t *rapid.T) {
	w.track.Close(errors.New("over"))
	for _, a := range w.readers {
		for _, g := range a.held {
			g.Close()
		}
	}
	if s := w.cache.Stats(); s.Bytes != 0 || s.Groups != 0 {
		t.Fatalf("left over: %+v", s)
	}
}
