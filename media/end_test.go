package media_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
)

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
		if !errors.Is(v.err, io.EOF) {
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
		v.woken()
		a.Close()
		if !v.woken() {
			t.Error("not woken when the last copy goes")
		}
		if v.read(); !errors.Is(v.err, io.EOF) {
			t.Errorf("ended with %v", v.err)
		}
		v.has(6, 0, 1, media.ErrOld)
	})
	t.Run("without groups", func(t *testing.T) {
		r := newRig(t)
		v := r.view(any2)
		r.track.End(0)
		r.track.End(5) // does nothing
		if v.read(); !errors.Is(v.err, io.EOF) {
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
		if !errors.Is(v.err, io.EOF) {
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
	fetched, fetch := r.track.Fetch(1, 0)
	fetch.Writer(0).Finish()
	fetch.Close(nil)
	errGone := errors.New("no route left")
	v.woken()
	r.track.Close(errGone)
	r.track.Close(errors.New("again"))
	if !v.woken() {
		t.Error("not woken")
	}
	v.read()
	if !errors.Is(v.err, errGone) || !errors.Is(v.ended[5], errGone) {
		t.Errorf("ended with %v, group 5 with %v", v.err, v.ended[5])
	}
	if _, err := g5.Poll(); !errors.Is(err, errGone) {
		t.Errorf("open group: %v", err)
	}
	if b, err := g4.Poll(); err != nil || b.Frames() != 3 {
		t.Errorf("a complete group that is held can be read to its end: %d frames, %v", b.Frames(), err)
	}
	if err := five.write(0); !errors.Is(err, errGone) {
		t.Errorf("write = %v", err)
	}
	if _, err := r.track.NewCopy(nil).Group(9, 0); !errors.Is(err, media.ErrCancelled) {
		t.Errorf("group on a closed track: %v", err)
	}
	late := r.track.NewReader(any2, new(wakeups))
	if _, err := late.Next(); !errors.Is(err, errGone) {
		t.Errorf("new reader: %v", err)
	}
	late.Close()
	if _, err := late.Next(); !errors.Is(err, media.ErrCancelled) {
		t.Errorf("closed reader: %v", err)
	}
	g, f := r.track.Fetch(4, 0)
	if _, err := g.Poll(); !errors.Is(err, errGone) || f != nil {
		t.Errorf("fetch: %v", err)
	}
	g.Close()
	if _, err := fetched.Poll(); !errors.Is(err, io.EOF) {
		t.Errorf("a complete fetch that is held: %v", err)
	}
	fetched.Close()
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
