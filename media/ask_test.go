package media_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
)

// TestX51: the floor of a copy, and what lowers it (F27a).
func TestX51(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	r1 := r.view(sub(60))
	r.whole(a, 100, 1)
	r1.read()
	b := r.track.NewCopy(nil)
	a.Close()
	agg := sub(10)
	ask := func(want *media.Position) {
		t.Helper()
		if diff := cmp.Diff(want, b.Ask(agg).Start); diff != "" {
			t.Errorf("asks from (-want +got):\n%s", diff)
		}
	}
	ask(at(101, 0))
	b.Start(101)
	with := func(start *media.Position) *viewer {
		s := sub(60)
		s.Start = start
		return r.view(s)
	}
	r2 := with(at(100, 0))
	ask(at(101, 0))
	r2.read().complete(100, 1)
	agg.Start = at(100, 0) // as if r1 had left
	ask(at(101, 0))
	agg.Start = nil
	if _, err := b.Group(95, 0); !errors.Is(err, media.ErrBelowStart) {
		t.Errorf("95 = %v, want ErrBelowStart", err)
	}
	r3 := with(at(90, 2))
	ask(at(90, 0)) // the cache has no head of 90
	ask(at(90, 0))
	if b.State().Started {
		t.Error("a lowered start voids the declared one")
	}
	r.whole(b, 95, 1)
	r2.read().got(100)
	r3.read().got(100, 95)
	r1.read().got(100) // its start was 100
	if _, err := b.Group(100, 0); !errors.Is(err, media.ErrDuplicate) {
		t.Errorf("100 = %v, want ErrDuplicate", err)
	}
}

func TestAskRounds(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	agg := media.Subscription{Priority: 7, MaxAge: time.Second, Start: at(2, 7), End: at(7, 3), Latest: true}
	want := media.Subscription{Priority: 7, MaxAge: time.Second, Start: at(2, 0), End: at(8, 0)} // X3, X5
	if diff := cmp.Diff(want, c.Ask(agg)); diff != "" {
		t.Fatalf("asks (-want +got):\n%s", diff)
	}
	r.open(c, 2, 0).send(9)
	if diff := cmp.Diff(want, c.Ask(agg)); diff != "" {
		t.Fatalf("the cache has the head now, yet no update follows (F6) (-want +got):\n%s", diff)
	}
}

func TestAskNeverBelowAggregate(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	s := sub(2)
	s.Start = at(50, 0)
	r.whole(a, 8, 1)
	r.view(s)
	b := r.track.NewCopy(nil)
	if diff := cmp.Diff(at(50, 0), b.Ask(s).Start); diff != "" {
		t.Errorf("asks from (-want +got):\n%s", diff)
	}
	agg := sub(2)
	if diff := cmp.Diff(at(50, 0), b.Ask(agg).Start); diff != "" {
		t.Errorf("the floor stays (-want +got):\n%s", diff)
	}
}

// TestLackingLowest: the lowest group that some reader wants counts, not the newest.
func TestLackingLowest(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	r.open(a, 8, 0).send(3)
	r.open(a, 9, 0).send(1)
	v.read()
	if diff := cmp.Diff(at(8, 3), r.track.Lacking(any2)); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
	v.open[8].Close() // the subscriber has stopped it: nobody wants more of 8
	delete(v.open, 8)
	if diff := cmp.Diff(at(9, 1), r.track.Lacking(any2)); diff != "" {
		t.Errorf("lacking (-want +got):\n%s", diff)
	}
}

func TestLackingRange(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	s := sub(2)
	s.End = at(8, 3)
	v := r.view(s)
	r.open(a, 8, 0).send(4)
	slow := r.track.NewReader(s, new(wakeups))
	defer slow.Close()
	held(t, slow) // and read nothing
	v.read().has(8, 0, 3, io.EOF)
	if diff := cmp.Diff(at(9, 0), r.track.Lacking(s)); diff != "" {
		t.Errorf("the reader has all it wants (-want +got):\n%s", diff)
	}
}
