package media_test

import (
	"io"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

func from(maxAge float64, start *media.Position) media.Subscription {
	s := sub(maxAge)
	s.Start = start
	return s
}

func latest() media.Subscription {
	s := sub(5)
	s.Latest = true
	return s
}

// TestX56: the start that a reader is told (F5).
func TestX56(t *testing.T) {
	t.Run("declared", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(any2)
		v.start(-1)
		a.Start(7)
		if !v.woken() {
			t.Error("not woken by the start")
		}
		r.whole(a, 8, 1)
		v.read().start(7)
		r.whole(a, 7, 1)
		v.read().got(8, 7)
	})
	t.Run("not declared", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		r1, r2 := r.view(any2), r.view(from(2, at(7, 0)))
		r2.start(-1) // nobody has accepted yet
		r.whole(a, 8, 1)
		r1.read().start(8)
		r.whole(a, 7, 1)
		r1.read().got(8)
		r2.read().got(8, 7)
		r2.start(7)
	})
	t.Run("declared, but too old to come", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		a.Start(7)
		v := r.view(sub(0))
		r.whole(a, 8, 1)
		v.read().start(8)
	})
	t.Run("what has been seen does not come again", func(t *testing.T) {
		for _, failed := range []bool{false, true} {
			r := newRig(t)
			a := r.track.NewCopy(nil)
			a.Start(5)
			want := int64(5)
			if failed {
				_ = r.open(a, 5, media.MaxGroupFrames).write(0) // too many frames: nobody will have it
				want = 6
			}
			r.whole(a, 6, 1)
			r.view(any2).start(want)
		}
	})
	t.Run("what would be too old does not come", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		a.Start(5)
		r.open(a, 9, 0).sendAt(7).w.Abort(media.ErrOld) // it keeps its place for a second
		r.open(a, 10, 0).sendAt(10).fin()
		r.view(sub(2)).start(10) // for 8: 10 - 7 >= 2
		r.view(sub(4)).start(5)
	})
	t.Run("declared long ago", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		a.Start(7)
		for seq := uint64(7); seq <= 15; seq++ {
			r.whole(a, seq, 1)
		}
		v := r.view(sub(3))
		v.start(12) // 15 - 13 < 3, but 15 - 12 >= 3
		v.read().got(15, 14, 13, 12)
	})
	t.Run("final", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(any2)
		r.whole(a, 8, 1)
		v.start(8)
		v.reader.Update(from(2, at(6, 0)))
		v.start(8) // a lowered start is not told again, but served
		r.whole(a, 7, 1)
		v.read().got(8, 7)
	})
}

func TestLatest(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	early := r.view(latest())
	early.start(-1)
	r.whole(a, 3, 1)
	r.whole(a, 4, 1)
	late := r.view(latest())
	late.read().got(4)
	late.start(4)
	early.read().got(4)
	r.whole(a, 5, 1)
	late.read().got(4, 5)
	// A stated start, then none again: anew at the newest (moq-lite 5.8).
	late.reader.Update(from(5, at(3, 0)))
	late.read().got(4, 5, 3)
	r.whole(a, 6, 1)
	r.whole(a, 7, 1)
	late.reader.Update(latest())
	late.read().got(4, 5, 3, 7)
	late.reader.Update(latest()) // no change: no new start
	r.whole(a, 8, 1)
	late.read().got(4, 5, 3, 7, 8)
}

func TestReaderRange(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	s := from(10, at(4, 2))
	s.End = at(6, 1)
	v := r.view(s)
	for seq := uint64(3); seq <= 7; seq++ {
		r.whole(a, seq, 3)
	}
	v.read().got(6, 5, 4)
	v.has(4, 2, 1, io.EOF)
	v.has(6, 0, 1, io.EOF)
	v.start(4)
	v.woken()
	s.End = at(8, 0)
	v.reader.Update(s)
	if !v.woken() {
		t.Error("not woken by the update")
	}
	v.read().got(6, 5, 4, 7) // 6 was sent up to the cap; it is over (F36)
	s.Start = nil
	v.reader.Update(s)
	v.read().got(6, 5, 4, 7, 3)
}

// TestReaderRangeMoved: a group that was begun is finished though the reader's range ends before it now.
func TestReaderRangeMoved(t *testing.T) {
	for _, end := range []*media.Position{at(4, 0), at(3, 2)} {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		s := from(2, at(3, 0))
		v := r.view(s)
		four := r.open(a, 4, 0).send(1)
		v.read().has(4, 0, 1, nil)
		s.End = end
		v.reader.Update(s)
		v.read().has(4, 0, 1, nil)
		four.send(2).fin()
		v.read().complete(4, 3)
	}
}

func TestReaderMaxAgeRaised(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(from(0, at(0, 0)))
	for seq := uint64(1); seq <= 5; seq++ {
		r.whole(a, seq, 1)
	}
	v.read().got(5)
	v.reader.Update(from(2, at(0, 0)))
	v.read().got(5, 4, 3) // 5 - 4 < 2, but 5 - 3 >= 2
}

// TestReaderMissed: a reader that slept through more arrivals than the track remembers still gets everything once.
func TestReaderMissed(t *testing.T) {
	for _, n := range []uint64{63, 64, 65, 66, 500} {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(from(10, at(0, 0)))
		r.open(a, 0, 0).sendAt(1).fin()
		v.read()
		want := []uint64{0}
		for seq := uint64(1); seq <= n; seq++ {
			r.open(a, seq, 0).sendAt(1).fin()
		}
		for seq := n; seq >= 1; seq-- {
			want = append(want, seq)
		}
		v.read().got(want...)
		r.open(a, n+1, 0).sendAt(1).fin()
		v.read().got(append(want, n+1)...)
	}
}

// TestReaderPiles: a consumer that takes one group per wake-up, as one at its cap does, misses nothing.
func TestReaderPiles(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	reader := r.track.NewReader(from(10, at(0, 0)), new(wakeups))
	defer reader.Close()
	got := map[uint64]bool{}
	next := func() bool {
		g, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if g == nil {
			return false
		}
		if got[g.Sequence()] {
			t.Fatalf("group %d twice", g.Sequence())
		}
		got[g.Sequence()] = true
		g.Close()
		return true
	}
	for seq := uint64(0); seq < 600; seq += 3 {
		for i := range uint64(3) {
			r.open(a, seq+2-i, 0).sendAt(1).fin() // out of order
		}
		next()
	}
	for next() {
	}
	if len(got) != 600 {
		t.Errorf("%d groups, want 600", len(got))
	}
}

// TestNextAbove leaves the backlog for later, also while more of it comes, and finds what is newer.
func TestNextAbove(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(from(10, at(0, 0)))
	for _, seq := range []uint64{5, 3} {
		r.open(a, seq, 0).sendAt(1)
	}
	above := func(newest uint64, want ...uint64) {
		t.Helper()
		for _, seq := range want {
			g, err := v.reader.NextAbove(newest)
			if err != nil || g == nil || g.Sequence() != seq {
				t.Fatalf("above %d: %v, %v, want group %d", newest, g, err, seq)
			}
			g.Close()
		}
		if g, err := v.reader.NextAbove(newest); g != nil || err != nil {
			t.Fatalf("above %d: group %d, %v", newest, g.Sequence(), err)
		}
	}
	above(5)
	above(4, 5)
	r.open(a, 2, 0).sendAt(1)
	r.open(a, 4, 0).sendAt(1)
	above(5)
	r.open(a, 7, 0).sendAt(1)
	r.open(a, 6, 0).sendAt(1)
	above(5, 7, 6)
	v.read().got(4, 3, 2)
}

func TestNewestFirst(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(from(10, at(0, 0)))
	for _, seq := range []uint64{5, 3, 8, 4} {
		r.open(a, seq, 0).sendAt(1)
	}
	v.read().got(8, 5, 4, 3)
	r.open(a, 6, 0).sendAt(1)
	r.open(a, 7, 0).sendAt(1)
	v.read().got(8, 5, 4, 3, 7, 6)
}

// TestPatience: while the relay is late, a reader skips what it is further behind with than the relay has patience, and
// begun groups go on.
func TestPatience(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	slow, begun := r.view(sub(10)), r.view(sub(10))
	open := r.open(a, 1, 0).send(1)
	begun.read().got(1)
	for seq := uint64(2); seq <= 6; seq++ {
		r.whole(a, seq, 1)
	}
	open.fin()
	r.cache.SetPatience(2 * time.Second)
	slow.read().got(6, 5, 4) // 6 - 4 >= 2: group 3 is too old, its successor began 2 s before the newest
	begun.read().got(1, 6, 5, 4)
	if s := r.cache.Stats(); s.Shed == 0 {
		t.Error("nothing was counted")
	}
	r.cache.SetPatience(0)
	r.view(sub(10)).read().got(6, 5, 4, 3, 2, 1)
}
