package media_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
)

type countingWaker struct{ atomic.Int64 }

func (w *countingWaker) Wake() { w.Add(1) }

// TestPulse: arrivals are stamped by beats; gaps count once; known frames are signs of life and no news.
func TestPulse(t *testing.T) {
	start := time.Now()
	cache := media.NewCache(media.CacheConfig{})
	cache.Sweep(start)
	track := cache.NewTrack(media.Info{Timescale: 1000, MaxAge: 10 * time.Second})
	var waker countingWaker
	a, b := track.NewCopy(&waker), track.NewCopy(nil)
	frame := func(w *media.GroupWriter) {
		t.Helper()
		if err := w.WriteFrame(0, []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(c *media.Copy, want media.Pulse, frames uint64) {
		t.Helper()
		if diff := cmp.Diff(want, c.Pulse()); diff != "" {
			t.Errorf("pulse (-want +got):\n%s", diff)
		}
		if n := c.State().Frames; n != frames {
			t.Errorf("%d frames that nobody had brought, want %d", n, frames)
		}
	}
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

	w, err := a.Group(7, 0)
	if err != nil {
		t.Fatal(err)
	}
	frame(w)
	expect(a, media.Pulse{Arrivals: 1}, 1) // nobody tells the time

	cache.Beat(at(100))
	frame(w)
	cache.Beat(at(400))
	frame(w)
	cache.Beat(at(500))
	frame(w)
	frame(w)
	expect(a, media.Pulse{Arrivals: 5, First: at(100), Last: at(500), Gap: 300 * time.Millisecond}, 5)
	expect(a, media.Pulse{Arrivals: 5, First: at(100), Last: at(500)}, 5)

	cache.Beat(at(900))
	w.Stir() // a part of a large frame
	w.Stir()
	expect(a, media.Pulse{Arrivals: 5, First: at(100), Last: at(900), Gap: 400 * time.Millisecond}, 5)

	v, err := b.Group(7, 4)
	if err != nil {
		t.Fatal(err)
	}
	expect(b, media.Pulse{First: at(900), Last: at(900)}, 0) // the header of a group
	frame(v)
	expect(b, media.Pulse{Arrivals: 1, First: at(900), Last: at(900)}, 0)
	frame(v)
	expect(b, media.Pulse{Arrivals: 2, First: at(900), Last: at(900)}, 1)
	b.Datagram(8, 0, nil)
	expect(b, media.Pulse{Arrivals: 3, First: at(900), Last: at(900)}, 2)
}

// TestAlarm: the waker hears once of so many arrivals or frames, at once if there are so many already.
func TestAlarm(t *testing.T) {
	cache := media.NewCache(media.CacheConfig{})
	cache.Sweep(time.Now())
	track := cache.NewTrack(media.Info{Timescale: 1000, MaxAge: 10 * time.Second})
	var heard countingWaker
	a, b := track.NewCopy(&heard), track.NewCopy(nil)
	expect := func(what string, want int64) {
		t.Helper()
		if n := heard.Swap(0); n != want {
			t.Errorf("%s: woken %d times, want %d", what, n, want)
		}
	}
	w, _ := a.Group(7, 0)
	v, _ := b.Group(7, 0)
	expect("the first group", 1)
	frame := func(w *media.GroupWriter) { _ = w.WriteFrame(0, []byte{1}) }
	for range 3 {
		frame(v)
	}
	a.Alarm(2, 1)
	frame(w)
	expect("one arrival", 0)
	frame(w)
	expect("two arrivals", 1)
	frame(w)
	expect("three, known ones", 0)
	frame(w)
	expect("a new frame", 1)
	frame(w)
	expect("and one more", 0)
	a.Alarm(5, 0)
	expect("there are five already", 1)
	a.Alarm(7, 0)
	a.Alarm(0, 0)
	frame(w)
	frame(w)
	expect("no alarm is set", 0)
}

// TestNeeded: a copy is needed for a group that nobody else delivers or may begin.
func TestNeeded(t *testing.T) {
	cache := media.NewCache(media.CacheConfig{})
	cache.Sweep(time.Now())
	track := cache.NewTrack(media.Info{Timescale: 1000, MaxAge: 10 * time.Second})
	a, b := track.NewCopy(nil), track.NewCopy(nil)
	expect := func(what string, want bool) {
		t.Helper()
		if got := a.Needed(); got != want {
			t.Errorf("%s: needed = %v", what, got)
		}
	}
	expect("nothing open", false)
	w, _ := a.Group(7, 0)
	expect("b may still begin 7", false)
	v, _ := b.Group(7, 0)
	expect("b delivers 7", false)
	v.Abort(media.ErrCancelled)
	expect("b has reset 7", true)
	w.Finish()
	expect("7 is complete", false)
	w, _ = a.Group(8, 0)
	expect("b may still begin 8", false)
	b.Start(9)
	expect("b starts above it", true)
	w.Abort(media.ErrCancelled)
	expect("8 is over", false)
}
