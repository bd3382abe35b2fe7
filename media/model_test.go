package media

import (
	"errors"
	"fmt"
	"math"
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
	ended   bool
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

const modelGroups = 14

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

func pick[T any](t *rapid.T, from []T, name string) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(t, name)]
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
	if len(w.copies) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.copies)-1).Draw(t, "copy")
	w.copies[i].Close()
	w.copies = slices.Delete(w.copies, i, i+1)
}

func (w *world) open(t *rapid.T) {
	if len(w.copies) == 0 {
		return
	}
	c := pick(t, w.copies, "copy")
	seq := rapid.Uint64Range(0, modelGroups-1).Draw(t, "seq")
	from := uint64(0)
	if rapid.IntRange(0, 2).Draw(t, "inside") == 0 {
		from = rapid.Uint64Range(0, length(seq)).Draw(t, "from")
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
	if err == nil && f.g.indexed {
		w.expired(t)
	}
}

func (w *world) finish(t *rapid.T) {
	f := w.stream(t)
	if f == nil {
		return
	}
	if f.next < length(f.g.seq) {
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
	seq := rapid.Uint64Range(0, modelGroups).Draw(t, "seq")
	switch rapid.IntRange(0, 3).Draw(t, "what") {
	case 0:
		c.Start(seq)
	case 1:
		c.End(seq + modelGroups/2)
	case 2:
		c.Drop(seq, seq)
	case 3:
		c.Limit(nil)
		if rapid.Bool().Draw(t, "limited") {
			c.Limit(&seq)
		}
	}
}

func subscription(t *rapid.T) Subscription {
	position := func(name string) *Position {
		if rapid.Bool().Draw(t, "no "+name) {
			return nil
		}
		return &Position{rapid.Uint64Range(0, modelGroups).Draw(t, name), rapid.Uint64Range(0, 2).Draw(t, name+" frame")}
	}
	s := Subscription{
		MaxAge: time.Duration(rapid.SampledFrom([]int{0, 5, 10, 30, 1000}).Draw(t, "age")) * time.Millisecond,
		Start:  position("start"), End: position("end"),
	}
	if s.Start != nil && s.Start.Frame > 0 && rapid.Bool().Draw(t, "whole") {
		s.Start.Frame = 0
	}
	s.Latest = rapid.IntRange(0, 3).Draw(t, "latest") == 0
	return s
}

func (w *world) join(t *rapid.T) {
	if len(w.readers) == 4 {
		return
	}
	a := &audience{held: map[uint64]*GroupReader{}, next: map[uint64]uint64{}, skipped: map[uint64]bool{}}
	a.r = w.track.NewReader(subscription(t), a)
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
	if a == nil {
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
	s := subscription(t)
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
	if w.ended || rapid.IntRange(0, 9).Draw(t, "end") > 0 {
		return
	}
	w.ended = true
	w.track.End(rapid.Uint64Range(0, modelGroups).Draw(t, "at"))
}

func TestDeliveryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{cache: NewCache(CacheConfig{}), brought: map[*group]*truth{}, now: time.Now(), shift: map[uint64]uint64{}}
		w.cache.Sweep(w.now)
		for seq := range uint64(modelGroups) {
			if rapid.IntRange(0, 7).Draw(t, "rewind") == 0 {
				w.shift[seq] = rapid.Uint64Range(0, 80).Draw(t, "by")
			}
		}
		w.track = w.cache.NewTrack(Info{MaxAge: 40 * time.Millisecond, Timescale: 1000})
		defer func() {
			w.track.Close(errors.New("over"))
			for _, a := range w.readers {
				for _, g := range a.held {
					g.Close()
				}
			}
			if s := w.cache.Stats(); s.Bytes != 0 || s.Groups != 0 {
				t.Fatalf("left over: %+v", s)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"newCopy": w.newCopy, "closeCopy": w.closeCopy, "declare": w.declare,
			"open": w.open, "open2": w.open, "write": w.write, "write2": w.write, "write3": w.write, "finish": w.finish,
			"join": w.join, "leave": w.leave, "update": w.update, "drain": w.drain, "drain2": w.drain,
			"pass": w.pass, "end": w.end, "": w.consistent,
		})
	})
}
