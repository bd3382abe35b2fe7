package media_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(from(10, at(0, 0)))
	r.open(a, 0, 0).sendAt(1).fin()
	v.read()
	var want []uint64
	want = append(want, 0)
	for seq := uint64(1); seq <= 500; seq++ {
		r.open(a, seq, 0).sendAt(1).fin()
	}
	for seq := uint64(500); seq >= 1; seq-- {
		want = append(want, seq)
	}
	v.read().got(want...)
	r.open(a, 501, 0).sendAt(1).fin()
	v.read().got(append(want, 501)...)
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

// TestParked: open groups without a stream are for those who hold them (F15).
func TestParked(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	r.whole(a, 7, 1)
	r.open(a, 8, 0).send(2)
	v.read()
	a.Close()
	late := r.view(any2)
	late.read().got(7)
	v.read().has(8, 0, 2, nil)
	b := r.track.NewCopy(nil)
	b.Ask(any2)
	late.read().got(7)
	late.woken()
	b8 := r.open(b, 8, 2)
	if !late.woken() {
		t.Error("not woken by the continuation")
	}
	late.read().got(7, 8)
	b8.send(1).fin()
	late.read().complete(8, 3)
	v.read().complete(8, 3)
}

func TestX40X41(t *testing.T) {
	leave := func(t *testing.T) *rig {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(sub(10))
		for seq := uint64(3); seq < 8; seq++ {
			r.whole(a, seq, 5)
		}
		r.open(a, 8, 0).send(5)
		v.read()
		v.close()
		a.Close()
		r.pass(20 * time.Second)
		return r
	}
	t.Run("X40", func(t *testing.T) {
		r := leave(t)
		v := r.view(sub(10))
		b := r.track.NewCopy(nil)
		if diff := cmp.Diff(at(8, 5), b.Ask(sub(10)).Start); diff != "" {
			t.Errorf("asks from (-want +got):\n%s", diff)
		}
		v.read().got() // nothing before the source has named its start
		v.start(-1)
		b.Start(8)
		if !v.woken() {
			t.Error("not woken")
		}
		v.start(3)
		v.read().got(7, 6, 5, 4, 3)
		r.open(b, 8, 5).send(1).fin()
		v.read().complete(8, 6)
	})
	t.Run("X40, the group overtakes START", func(t *testing.T) {
		r := leave(t)
		v := r.view(sub(10))
		b := r.track.NewCopy(nil)
		b.Ask(sub(10))
		r.whole(b, 9, 1)
		v.read().got(9, 7, 6, 5, 4, 3) // 9 follows the cache: that is no gap
	})
	t.Run("X41", func(t *testing.T) {
		r := leave(t)
		v := r.view(sub(10))
		b := r.track.NewCopy(nil)
		b.Ask(sub(10))
		b.Start(60)
		v.start(60)
		r.open(b, 60, 0).sendAt(9).fin()
		v.read().got(60)
		g, f := r.track.Fetch(5, 0)
		if f != nil {
			t.Fatal("a fetch of 5 is answered from the cache")
		}
		defer g.Close()
		if b, err := g.Poll(); err != nil || b.Frames() != 5 {
			t.Errorf("fetch of 5: %d frames, %v", b.Frames(), err)
		}
	})
	t.Run("X41, without START", func(t *testing.T) {
		r := leave(t)
		v := r.view(sub(10))
		b := r.track.NewCopy(nil)
		b.Ask(sub(10))
		r.whole(b, 61, 1)
		v.read().got(61)
		r.whole(b, 60, 1) // overtaken; its start was 61
		v.read().got(61)
	})
	t.Run("all complete", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(sub(10))
		r.whole(a, 7, 4)
		v.read()
		v.close()
		a.Close()
		r.view(sub(10))
		if diff := cmp.Diff(at(7, 4), r.track.NewCopy(nil).Ask(sub(10)).Start); diff != "" {
			t.Errorf("asks from (-want +got):\n%s", diff)
		}
	})
	t.Run("the cache is empty by then", func(t *testing.T) {
		r := leave(t)
		r.pass(20 * time.Second)
		if got := r.track.Cached(); len(got) != 0 {
			t.Fatalf("cached %v", got)
		}
		v := r.view(sub(10))
		b := r.track.NewCopy(nil)
		if s := b.Ask(sub(10)).Start; s != nil {
			t.Errorf("asks from %v, want the aggregate", s)
		}
		r.whole(b, 2, 1) // a source that has restarted
		v.read().got(2)
	})
}

func TestEnd(t *testing.T) {
	t.Run("after the last copy", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(any2)
		r.whole(a, 4, 1)
		five := r.open(a, 5, 0).send(1)
		v.read()
		if _, ok := v.reader.End(); ok {
			t.Error("no end yet")
		}
		r.track.End(6)
		if end, ok := v.reader.End(); !ok || end != 6 || !v.woken() {
			t.Errorf("end = %d, %v", end, ok)
		}
		v.read()
		if v.err != nil {
			t.Fatalf("ended with %v while 5 is open", v.err)
		}
		five.send(1).fin()
		if !v.woken() {
			t.Error("not woken by the last group")
		}
		v.read().complete(5, 2)
		if v.err != io.EOF {
			t.Errorf("ended with %v", v.err)
		}
	})
	t.Run("missing groups do not come any more", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(any2)
		r.whole(a, 4, 1)
		r.open(a, 6, 0).send(1)
		v.read()
		r.track.End(7)
		if v.read(); v.err != nil {
			t.Fatalf("ended with %v while a copy lives", v.err)
		}
		a.Close()
		if v.read(); v.err != io.EOF {
			t.Errorf("ended with %v", v.err)
		}
		v.has(6, 0, 1, media.ErrOld)
	})
	t.Run("without groups", func(t *testing.T) {
		r := newRig(t)
		v := r.view(any2)
		r.track.End(0)
		r.track.End(5) // does nothing
		if v.read(); v.err != io.EOF {
			t.Errorf("ended with %v", v.err)
		}
		if end, _ := v.reader.End(); end != 0 {
			t.Errorf("end = %d", end)
		}
	})
	t.Run("X39", func(t *testing.T) {
		r := newRig(t)
		a := r.track.NewCopy(nil)
		v := r.view(any2)
		r.open(a, 20, 0).send(2)
		v.read()
		b := r.track.NewCopy(nil)
		r.track.End(21)
		a.Close()
		if diff := cmp.Diff(at(20, 2), b.Ask(any2).Start); diff != "" {
			t.Errorf("asks from (-want +got):\n%s", diff)
		}
		v.read().has(20, 0, 2, nil)
		r.open(b, 20, 2).send(1).fin()
		v.read().complete(20, 3)
		if v.err != io.EOF {
			t.Errorf("ended with %v", v.err)
		}
	})
}

func TestClose(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(from(10, at(0, 0)))
	r.whole(a, 4, 3)
	five := r.open(a, 5, 0).send(1)
	v.read() // holds 5; read 4
	slow := r.track.NewReader(from(10, at(4, 0)), new(wakeups))
	defer slow.Close()
	g5, g4 := held(t, slow), held(t, slow)
	errGone := errors.New("no route left")
	v.woken()
	r.track.Close(errGone)
	r.track.Close(errors.New("again"))
	if !v.woken() {
		t.Error("not woken")
	}
	v.read()
	if v.err != errGone || !errors.Is(v.ended[5], errGone) {
		t.Errorf("ended with %v, group 5 with %v", v.err, v.ended[5])
	}
	if _, err := g5.Poll(); err != errGone {
		t.Errorf("open group: %v", err)
	}
	if b, err := g4.Poll(); err != nil || b.Frames() != 3 {
		t.Errorf("a complete group that is held can be read to its end: %d frames, %v", b.Frames(), err)
	}
	if err := five.write(0); err != errGone {
		t.Errorf("write = %v", err)
	}
	if _, err := r.track.NewCopy(nil).Group(9, 0); !errors.Is(err, media.ErrCancelled) {
		t.Errorf("group on a closed track: %v", err)
	}
	late := r.track.NewReader(any2, new(wakeups))
	if _, err := late.Next(); err != errGone {
		t.Errorf("new reader: %v", err)
	}
	late.Close()
	if _, err := late.Next(); !errors.Is(err, media.ErrCancelled) {
		t.Errorf("closed reader: %v", err)
	}
	g, f := r.track.Fetch(4, 0)
	if _, err := g.Poll(); err != errGone || f != nil {
		t.Errorf("fetch: %v", err)
	}
	g.Close()
	g4.Close()
	g5.Close()
	if s := r.cache.Stats(); s.Bytes != 0 || s.Groups != 0 || r.track.Held() != 0 {
		t.Errorf("stats %+v, %d held, want nothing left", s, r.track.Held())
	}
}

// TestStalled: a stream that stopped giving frames counts as delivering for a second, then age decides (F33).
func TestStalled(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(sub(0))
	eight := r.open(a, 8, 0).send(1)
	v.read()
	r.whole(a, 9, 1)
	v.read().has(8, 0, 1, nil)
	r.pass(750 * time.Millisecond)
	eight.send(1)
	r.pass(time.Second)
	v.read().has(8, 0, 2, nil)
	r.pass(250 * time.Millisecond)
	v.read().has(8, 0, 2, media.ErrOld)
}
