package media_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
)

var any2 = sub(2) // max age 2 s, as in the worked examples

// TestX16: the only copy dies inside a group; the next one continues it on the same stream downstream.
func TestX16(t *testing.T) {
	for _, tt := range []struct {
		name string
		from uint64
	}{{"from the frame asked for", 5}, {"whole, before moq-lite 06", 0}} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			a := r.track.NewCopy(nil)
			v := r.view(any2)
			if got := a.Ask(any2); got.Start != nil {
				t.Errorf("nothing delivered: asks from %v, want the aggregate as it is", got.Start)
			}
			r.open(a, 8, 0).send(5)
			v.read()
			b := r.track.NewCopy(nil)
			a.Close()
			if diff := cmp.Diff(at(8, 5), b.Ask(any2).Start); diff != "" {
				t.Errorf("asks from (-want +got):\n%s", diff)
			}
			v.read().has(8, 0, 5, nil)
			r.open(b, 8, tt.from).send(int(8 - tt.from)).fin()
			r.whole(b, 9, 1)
			v.read().complete(8, 8)
			v.complete(9, 1)
			v.got(8, 9)
		})
	}
}

func TestX15(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	r.whole(a, 7, 2)
	v.read()
	b := r.track.NewCopy(nil)
	a.Close()
	if diff := cmp.Diff(at(8, 0), b.Ask(any2).Start); diff != "" {
		t.Errorf("asks from (-want +got):\n%s", diff)
	}
	if _, err := b.Group(7, 0); !errors.Is(err, media.ErrBelowStart) {
		t.Errorf("group 7 = %v, want ErrBelowStart (F34)", err)
	}
	r.whole(b, 8, 1)
	v.read().complete(8, 1)
}

// TestX17X19X31: two copies overlap.
func TestX17X19X31(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	a8 := r.open(a, 8, 0).send(5)
	v.read()
	var told wakeups
	c := r.track.NewCopy(&told)
	if diff := cmp.Diff(at(8, 5), c.Ask(any2).Start); diff != "" {
		t.Errorf("asks from (-want +got):\n%s", diff)
	}
	c.Start(8)
	if !told.woken() || !c.State().Started {
		t.Error("the owner of a copy must learn that it has named its start")
	}
	if got := a.State(); got.Open != 1 || got.Limit != 9 {
		t.Errorf("state of the old copy: %+v", got)
	}
	limit := a.State().Limit
	a.Limit(&limit)
	if _, err := a.Group(9, 0); !errors.Is(err, media.ErrPastEnd) || !a.State().Stopped {
		t.Errorf("9 from the old copy = %v, want ErrPastEnd, and that it was stopped", err)
	}
	a8.send(1)
	r2 := r.view(sub(0))
	r2.read().has(8, 0, 6, nil) // X31: head from the old copy
	v.woken()
	c8 := r.open(c, 8, 5).send(1)
	if v.woken() {
		t.Error("woken for a group that is being fed already")
	}
	a8.send(3)
	c8.send(2)
	a8.send(1).fin() // X19: the old copy is first
	v.read().complete(8, 10)
	r2.read().complete(8, 10)
	if err := c8.write(0); !errors.Is(err, media.ErrDuplicate) {
		t.Errorf("write to a complete group = %v, want ErrDuplicate", err)
	}
	if a.State().Open != 0 || c.State().Open != 0 {
		t.Error("a complete group is open for no copy")
	}
	r.whole(c, 9, 1)
	v.read().got(8, 9)
}

func TestLimitTakenBack(t *testing.T) {
	r := newRig(t)
	var told wakeups
	a := r.track.NewCopy(&told)
	r.whole(a, 1, 1)
	two := r.open(a, 2, 0)
	told.woken()
	limit := uint64(3)
	a.Limit(&limit)
	two.fin()
	if !told.woken() {
		t.Error("the owner of a limited copy must learn that its last group has ended")
	}
	a.Limit(nil)
	r.whole(a, 3, 1)
	if a.State().Stopped {
		t.Error("nothing was stopped")
	}
}

func TestX21(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	r.open(a, 8, 0).send(5)
	v.read()
	b := r.track.NewCopy(nil)
	a.Close()
	b.Ask(any2)
	v.read().has(8, 0, 5, nil)
	b.Start(9)
	v.read().has(8, 0, 5, media.ErrOld)
	r.whole(b, 9, 1)
	v.read().got(8, 9)
}

func TestX22(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	r.open(a, 8, 0).send(5)
	v.read()
	b := r.track.NewCopy(nil)
	a.Close()
	b.Ask(any2)
	nine := r.open(b, 9, 0).sendAt(12, 13.9)
	v.read().has(8, 0, 5, nil)
	v.woken()
	nine.sendAt(14)
	if !v.woken() {
		t.Error("not woken")
	}
	v.read().has(8, 0, 5, media.ErrOld)
}

// TestX46: a group in between is asked for again, while it is fresh. (X23 is X16 here: half a frame never reaches the
// package.)
func TestX46(t *testing.T) {
	for _, tt := range []struct {
		name   string
		maxAge float64
		asks   *media.Position
	}{
		{"X46", 2, at(9, 0)},
		{"9 is too old", 0, at(11, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			a := r.track.NewCopy(nil)
			v := r.view(sub(tt.maxAge))
			r.whole(a, 8, 1)
			v.read()
			r.whole(a, 10, 1)
			v.read()
			b := r.track.NewCopy(nil)
			a.Close()
			if diff := cmp.Diff(tt.asks, b.Ask(sub(tt.maxAge)).Start); diff != "" {
				t.Fatalf("asks from (-want +got):\n%s", diff)
			}
			if tt.maxAge == 0 {
				return
			}
			r.whole(b, 9, 2)
			v.read().complete(9, 2)
			if _, err := b.Group(10, 0); !errors.Is(err, media.ErrDuplicate) {
				t.Errorf("10 again = %v, want ErrDuplicate", err)
			}
			v.got(8, 10, 9)
		})
	}
}

// TestX47: a reset by a living copy is kept from readers for a second.
func TestX47(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	errReset := errors.New("reset by the peer")
	r.open(a, 8, 0).send(5).w.Abort(errReset)
	r.pass(750 * time.Millisecond)
	v.read().got() // nobody delivers it: not for new readers (F15)
	r8 := newRig(t)
	a = r8.track.NewCopy(nil)
	v = r8.view(any2)
	s := r8.open(a, 8, 0).send(5)
	v.read()
	s.w.Abort(errReset)
	r8.pass(750 * time.Millisecond)
	v.read().has(8, 0, 5, nil)
	r8.pass(500 * time.Millisecond)
	v.read().has(8, 0, 5, errReset)

	// With a new source in time the group continues.
	rb := newRig(t)
	a = rb.track.NewCopy(nil)
	v = rb.view(any2)
	s = rb.open(a, 8, 0).send(5)
	v.read()
	s.w.Abort(errReset)
	b := rb.track.NewCopy(nil)
	a.Close()
	b.Ask(any2)
	rb.pass(5 * time.Second)
	v.read().has(8, 0, 5, nil)
	rb.open(b, 8, 5).send(1).fin()
	v.read().complete(8, 6)
}

func TestX52(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(any2)
	a8 := r.open(a, 8, 0).send(5)
	c := r.track.NewCopy(nil)
	c8 := r.open(c, 8, 7).send(2)
	v.read().has(8, 0, 5, nil)
	a8.send(2)
	v.read().has(8, 0, 9, nil)
	a8.send(1).fin()
	v.read().has(8, 0, 9, nil)
	c8.fin()
	v.read().complete(8, 9)
}

func TestCopyErrors(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	w := r.open(a, 5, 0)
	for _, tt := range []struct {
		name       string
		seq, frame uint64
		want       error
	}{
		{"twice", 5, 0, media.ErrDuplicate},
		{"number out of range", 1 << 62, 0, media.ErrMalformed},
		{"frame out of range", 6, media.MaxGroupFrames + 1, media.ErrMalformed},
	} {
		if _, err := a.Group(tt.seq, tt.frame); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	a.End(7)
	if _, err := a.Group(7, 0); !errors.Is(err, media.ErrPastEnd) {
		t.Errorf("past its own end: %v", err)
	}
	if st := a.State(); !st.Ended || st.End != 7 || !st.Begun || st.Newest != 5 {
		t.Errorf("state %+v", st)
	}
	r.track.End(6)
	if _, err := a.Group(6, 0); !errors.Is(err, media.ErrPastEnd) {
		t.Errorf("past the end of the track: %v", err)
	}
	a.Close()
	a.Close()
	if _, err := a.Group(4, 0); !errors.Is(err, media.ErrCancelled) {
		t.Errorf("closed: %v", err)
	}
	if err := w.write(0); !errors.Is(err, media.ErrCancelled) && !errors.Is(err, media.ErrOld) {
		t.Errorf("write after close: %v", err)
	}
}

// TestHeadless: a group that begins in the middle waits for its head, unless that is where we asked to begin.
func TestHeadless(t *testing.T) {
	t.Run("not asked for", func(t *testing.T) {
		r := newRig(t)
		a, b := r.track.NewCopy(nil), r.track.NewCopy(nil)
		v := r.view(any2)
		a8 := r.open(a, 8, 3).send(2)
		v.read().has(8, 0, 0, nil)
		a8.fin()
		v.read().has(8, 0, 0, nil)
		r.open(b, 8, 0).send(3)
		v.read().complete(8, 5)
	})
	t.Run("asked for", func(t *testing.T) {
		r := newRigWith(t, media.CacheConfig{}, time.Hour)
		a := r.track.NewCopy(nil)
		v := r.view(sub(60))
		r.open(a, 8, 0).send(3)
		r.open(a, 9, 0).send(1)
		v.read()
		b := r.track.NewCopy(nil)
		if diff := cmp.Diff(at(8, 3), b.Ask(sub(60)).Start); diff != "" {
			t.Fatalf("asks from (-want +got):\n%s", diff)
		}
		a.Close()
		r.pass(32 * time.Second) // 8 is evicted meanwhile
		v.read().has(8, 0, 3, media.ErrEvicted)
		r.open(b, 8, 3).send(2).fin()
		r.view(from(60, at(8, 0))).read().got() // its head is gone (moq-lite 5.12)
		late := r.view(from(60, at(8, 4)))
		late.read().has(8, 4, 1, io.EOF)
		g, f := r.fetch(8, 3)
		if f != nil {
			t.Fatal("the cache has frame 3")
		}
		wantFrames(t, g, 3, 2, io.EOF)
		if _, f := r.fetch(8, 2); f == nil {
			t.Error("the cache lacks frame 2")
		}
	})
}
