package media_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
		t.Helper()
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
	t.Run("X40, groups far ahead overtake START", func(t *testing.T) {
		r := leave(t)
		v := r.view(from(10, at(4, 2)))
		b := r.track.NewCopy(nil)
		b.Ask(from(10, at(4, 2)))
		r.whole(b, 11, 1)
		v.read().got(11) // 9 and 10 may not exist, and the cache be old
		v.woken()
		b.Start(8)
		if !v.woken() {
			t.Error("not woken by START")
		}
		v.read().got(11, 7, 6, 5, 4)
		r.open(b, 8, 5).send(1).fin()
		v.read().complete(8, 6)
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

// TestLinger: what was delivered stays for 30 s after the last reader, however long ago it was read (F16).
func TestLinger(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	v := r.view(sub(10))
	r.whole(a, 7, 1)
	r.pass(20 * time.Second)
	r.whole(a, 8, 1)
	v.read()
	a.Close()
	v.close()
	r.pass(29 * time.Second)
	if diff := cmp.Diff([]uint64{7, 8}, r.track.Cached()); diff != "" {
		t.Errorf("cached after 29 s (-want +got):\n%s", diff)
	}
	r.pass(2 * time.Second)
	if got := r.track.Cached(); len(got) != 0 {
		t.Errorf("cached after 31 s: %v", got)
	}
}
