package media

import (
	"errors"
	"fmt"
	"io"
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

// tooOld is rule F9, by the letter.
func (w *world) tooOld(seq uint64, v view, budget time.Duration) bool {
	var successor, edge *group
	for _, g := range w.track.index.g {
		if g.seq <= seq || !v.covers(g.seq) || g.base > v.first(g.seq) {
			continue
		}
		if successor == nil {
			successor = g
		}
		if len(g.log.frames) > 0 {
			edge = g
		}
	}
	if successor == nil || edge == nil || len(successor.log.frames) == 0 {
		return false
	}
	newest := uint64(0)
	for _, f := range edge.log.frames {
		newest = max(newest, f.ts)
	}
	age := int64(newest) - int64(successor.log.frames[0].ts)
	return age >= 0 && time.Duration(age)*time.Millisecond >= budget
}

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

// lacking is rule F27, by the letter.
func (w *world) lacking() *Position {
	l := &w.track.ledger
	if !l.any || w.track.dormant && len(w.track.index.g) == 0 {
		return nil
	}
	p := &Position{Group: l.high + 1}
	if n := w.track.index.newest(); w.track.dormant && n.complete && n.seq == l.high {
		p = &Position{n.seq, n.splice.next}
	}
	for seq := l.low; seq <= l.high; seq++ {
		next := uint64(0)
		g := w.track.index.get(seq)
		if g != nil {
			next = g.splice.next
		}
		if !l.complete.has(seq) && w.wanted(seq, next, g) {
			p = &Position{seq, next}
			break
		}
	}
	if s := w.aggregate().Start; s != nil && p.Before(*s) {
		p = clone(s)
	}
	return p
}

// wanted says whether some reader wants frame next of a group: it is in its range and not too old, and the reader
// either holds the group or never had it.
func (w *world) wanted(seq, next uint64, g *group) bool {
	for _, a := range w.readers {
		v := a.r.view()
		_, had := a.next[seq]
		h := a.held[seq]
		holds := h != nil && g != nil && h.g == g
		if v.covers(seq) && next < v.last(seq) && (holds || !had) && !w.tooOld(seq, v, a.budget()) {
			return true
		}
	}
	return false
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

// expired checks that what is beyond the retention window for everybody is gone (F12); only what has a younger one below
// it, since timestamps went back a little, may wait for that.
func (w *world) expired(t *rapid.T) {
	x := w.track.index.g
	for i, g := range x {
		if w.tooOld(g.seq, everything, w.track.info.MaxAge) {
			t.Fatalf("group %d is kept beyond the retention window", g.seq)
		}
		if i+1 < len(x) && x[i+1].stamped && x[i+1].first <= w.track.index.top.high {
			return
		}
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

func (w *world) start(t *rapid.T, a *audience) {
	seq, ok := a.r.Start()
	if !ok {
		if a.told {
			t.Fatal("the start was taken back")
		}
		return
	}
	if !a.told {
		a.told, a.lowest = true, seq
		if s := a.r.sub.Start; s != nil && s.Group != seq {
			t.Fatalf("start %d, want %d as stated", seq, s.Group)
		}
	}
}

func (w *world) handedOut(t *rapid.T, a *audience, g *GroupReader) {
	seq := g.Sequence()
	if _, dup := a.next[seq]; dup {
		t.Fatalf("group %d was handed out twice (F36)", seq)
	}
	v := a.r.view()
	switch {
	case !v.covers(seq):
		t.Fatalf("group %d is outside of %+v", seq, v)
	case a.told && seq < a.lowest:
		t.Fatalf("group %d is below the start %d that was told (F5)", seq, a.lowest)
	case g.FirstFrame() != v.first(seq):
		t.Fatalf("group %d from frame %d, want %d", seq, g.FirstFrame(), v.first(seq))
	case w.tooOld(seq, v, a.budget()):
		t.Fatalf("group %d is too old (F9)", seq)
	case len(g.g.writers) == 0 && !g.g.complete:
		t.Fatalf("group %d is parked (F15)", seq)
	}
	a.held[seq], a.next[seq] = g, g.FirstFrame()
}

func (w *world) checkEnd(t *rapid.T, err error) {
	if err != nil && (err != io.EOF || !w.track.ended) {
		t.Fatalf("reader ended with %v", err)
	}
	if w.track.ended && len(w.track.copies) == 0 && err != io.EOF {
		t.Fatal("reader does not end after the end of the track")
	}
}

// nothingMissing: no group is left that a reader in its place could be given.
func (w *world) nothingMissing(t *rapid.T, a *audience) {
	if w.track.dormant || !a.r.fixed {
		return
	}
	v := a.r.view()
	for _, g := range w.track.index.g {
		_, had := a.next[g.seq]
		if had || !v.covers(g.seq) || g.base > v.first(g.seq) || !g.complete && len(g.writers) == 0 {
			continue
		}
		if w.tooOld(g.seq, v, a.budget()) {
			a.skipped[g.seq] = true
		}
		if !a.skipped[g.seq] {
			t.Fatalf("group %d was not handed out to %+v", g.seq, v)
		}
	}
}

// readGroup: what a reader has is the prefix of what streams brought, from its own first frame to its own end.
func (w *world) readGroup(t *rapid.T, a *audience, seq uint64, g *GroupReader) {
	for {
		b, err := g.Poll()
		for i := range b.Frames() {
			f := b.Frame(i)
			if n := a.next[seq]; string(f.Payload) != string(content(seq, n)) || f.Timestamp != w.stamp(seq, n) {
				t.Fatalf("group %d frame %d is %q at %d", seq, n, f.Payload, f.Timestamp)
			}
			a.next[seq]++
		}
		if err == nil && b.Frames() > 0 {
			continue
		}
		v, tr := a.r.view(), w.brought[g.g]
		if end := min(tr.prefix(), v.last(seq)); a.next[seq] < end && (err == nil || errors.Is(err, io.EOF)) {
			t.Fatalf("group %d: %d frames were read, %d are there", seq, a.next[seq], end)
		}
		switch {
		case err == nil:
			if tr.whole && tr.prefix() == length(seq) && g.g.err == nil {
				t.Fatalf("group %d does not end", seq)
			}
			return
		case errors.Is(err, io.EOF) && a.next[seq] < length(seq) && a.next[seq] < v.last(seq) && g.first < length(seq):
			t.Fatalf("group %d ended after %d frames", seq, a.next[seq])
		case errors.Is(err, ErrOld) && g.g.err == nil && !w.tooOld(seq, v, a.budget()):
			t.Fatalf("group %d ended as too old", seq)
		}
		g.Close()
		delete(a.held, seq)
		return
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

func (w *world) deliverable(seq uint64) bool {
	for _, c := range w.copies {
		cl := &c.claims
		below := seq < cl.floor || cl.declared && seq < cl.start
		past := cl.ended && seq >= cl.end || cl.limited && seq >= cl.limit
		if !below && !past && !cl.begun.has(seq) && !cl.dropped.has(seq) {
			return true
		}
	}
	return false
}

func (w *world) end(t *rapid.T) {
	if w.ended || rapid.IntRange(0, 9).Draw(t, "end") > 0 {
		return
	}
	w.ended = true
	w.track.End(rapid.Uint64Range(0, modelGroups).Draw(t, "at"))
}

// consistent checks what must always hold.
func (w *world) consistent(t *rapid.T) {
	tk := w.track
	var top *group
	for i, g := range tk.index.g {
		if i > 0 && tk.index.g[i-1].seq >= g.seq || !g.indexed || g.err != nil {
			t.Fatalf("index is broken at group %d", g.seq)
		}
		if g.stamped {
			top = g
		}
		tr := w.brought[g]
		if g.splice.next != tr.prefix() || g.complete != (tr.whole && tr.prefix() == length(g.seq)) {
			t.Fatalf("group %d has %d frames (complete %v); %d were brought (%v)", g.seq, g.splice.next, g.complete, tr.prefix(), tr.whole)
		}
		if parked := g.open() && len(g.writers) == 0; parked != slices.Contains(tk.parked, g) {
			t.Fatalf("group %d is parked: %v", g.seq, parked)
		}
	}
	if tk.index.top != top {
		t.Fatal("the live edge is wrong")
	}
	held := 0
	for _, a := range w.readers {
		for seq, g := range a.held {
			held++
			if g.g.err == nil && !g.noticed && w.tooOld(seq, a.r.view(), a.budget()) {
				t.Fatalf("nobody was told that group %d is too old (F11)", seq)
			}
		}
	}
	var bytes, groups int64
	for g := tk.uses.head; g != nil; g = g.entry.next {
		bytes += int64(groupOverhead + g.size())
		groups++
		if !g.indexed && g.holders == 0 {
			t.Fatalf("group %d is nobody's", g.seq)
		}
	}
	if s := w.cache.Stats(); s.Bytes != bytes || s.Groups != groups {
		t.Fatalf("accounts say %+v, groups %d bytes in %d", s, bytes, groups)
	}
	for r := tk.held; r != nil; r = r.next {
		held--
	}
	if held != 0 {
		t.Fatalf("held list is off by %d", held)
	}
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
