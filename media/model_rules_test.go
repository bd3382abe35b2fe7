package media

import (
	"errors"
	"io"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// This file holds the rules that TestDeliveryModel checks, by the letter.

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

// expired checks that what is beyond the retention window for everybody is gone (F12); only what has a younger one below
// it, since timestamps went back a little, may wait for that.
func (w *world) expired(t *rapid.T) {
	x := w.track.index.g
	for i, g := range x {
		if w.tooOld(g.seq, everything, w.track.info.MaxAge) {
			for _, h := range x {
				t.Logf("group %d: stamped %v, %d to %d, complete %v, %d writers", h.seq, h.stamped, h.first, h.high, h.complete, len(h.writers))
			}
			t.Fatalf("group %d is kept beyond the retention window; next look at %d", g.seq, w.track.expiry)
		}
		if i+1 < len(x) && x[i+1].stamped && x[i+1].first <= w.track.index.top.high {
			return
		}
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
	if err != nil && (!errors.Is(err, io.EOF) || !w.track.ended) {
		t.Fatalf("reader ended with %v", err)
	}
	if w.track.ended && len(w.track.copies) == 0 && !errors.Is(err, io.EOF) {
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
		if errors.Is(err, io.EOF) && a.next[seq] == length(seq) {
			w.whole++
		}
		g.Close()
		delete(a.held, seq)
		return
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
			if g.g.err == nil && !g.noticed && tk.alarm > 0 && w.tooOld(seq, a.r.view(), a.budget()) {
				t.Fatalf("nobody was told that group %d is too old (F11)", seq)
			}
		}
	}
	var bytes, groups int64
	for g := tk.uses.head; g != nil; g = g.entry.next {
		bytes += int64(groupOverhead + g.weight())
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
