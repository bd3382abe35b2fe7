package media_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/memory"
	"github.com/moqmesh/moqmesh/media"
)

// audience is n readers of one track that each hold the group being written and read it in turn.
type audience struct {
	track  *media.Track
	copy   *media.Copy
	w      *media.GroupWriter
	seq    uint64
	frames int
	subs   []*media.Reader
	groups []*media.GroupReader
	waiter *media.Waiter
}

func newAudience(tb testing.TB, n int) *audience {
	tb.Helper()
	a := &audience{waiter: media.NewWaiter()}
	cache := media.NewCache(media.CacheConfig{Capacity: 1 << 30})
	a.track = cache.NewTrack(media.Info{MaxAge: time.Second, Timescale: 1000})
	tb.Cleanup(func() { a.track.Close(errors.New("over")) })
	a.copy = a.track.NewCopy(nil)
	for range n {
		a.subs = append(a.subs, a.track.NewReader(sub(0), new(wakeups)))
	}
	a.next(tb)
	return a
}

// next goes on to the next group.
func (a *audience) next(tb testing.TB) {
	tb.Helper()
	if a.w != nil {
		a.w.Finish()
	}
	for _, g := range a.groups {
		g.Close()
	}
	a.groups = a.groups[:0]
	a.seq++
	w, err := a.copy.Group(a.seq, 0)
	if err != nil {
		tb.Fatal(err)
	}
	a.w, a.frames = w, 0
	for _, r := range a.subs {
		g, err := r.Next()
		if g == nil {
			tb.Fatal(err)
		}
		a.groups = append(a.groups, g)
	}
}

// frame writes one frame and lets everybody read it.
func (a *audience) frame(tb testing.TB, payload []byte) {
	tb.Helper()
	if err := a.w.WriteFrame(a.seq*1000+uint64(a.frames), payload); err != nil {
		tb.Fatal(err)
	}
	a.frames++
	for _, g := range a.groups {
		b, err := g.Next(a.waiter)
		if err != nil || len(b.Bytes()) <= len(payload) {
			tb.Fatal(err)
		}
	}
}

// TestEgressAllocatesNothing: what a frame costs does not depend on how many read it. The few allocations that remain
// are those of the group's buffers.
func TestEgressAllocatesNothing(t *testing.T) {
	for _, size := range []int{100, 4 << 10} {
		payload := make([]byte, size)
		cost := func(readers int) float64 {
			a := newAudience(t, readers)
			a.frame(t, payload)
			return testing.AllocsPerRun(500, func() { a.frame(t, payload) })
		}
		if none, many := cost(0), cost(100); many > none {
			t.Errorf("%d bytes: %v allocations per frame with 100 readers, %v without", size, many, none)
		}
	}
}

// TestWaitAllocatesNothing: waiting for a frame, being woken and reading it costs no allocation either.
func TestWaitAllocatesNothing(t *testing.T) {
	a := newAudience(t, 1)
	read := make(chan struct{})
	ready := make(chan struct{})
	done := make(chan error)
	go func() {
		w := media.NewWaiter()
		for range ready {
			if _, err := a.groups[0].Next(w); err != nil {
				done <- err
				return
			}
			read <- struct{}{}
		}
		done <- nil
	}()
	payload := make([]byte, 10)
	n := testing.AllocsPerRun(1000, func() {
		ready <- struct{}{}
		time.Sleep(10 * time.Microsecond) // long enough for Next to wait, mostly
		if err := a.w.WriteFrame(1000, payload); err != nil {
			t.Error(err)
		}
		<-read
	})
	close(ready)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n >= 1 {
		t.Errorf("%v allocations per frame", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{300, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			a := newAudience(b, 0)
			payload := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if a.frame(b, payload); a.frames == 60 {
					a.next(b)
				}
			}
		})
	}
}

// BenchmarkFanout is one frame of 4 KiB written and read by all readers.
func BenchmarkFanout(b *testing.B) {
	for _, readers := range []int{1, 10, 100, 300} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			a := newAudience(b, readers)
			payload := make([]byte, 4<<10)
			b.ReportAllocs()
			for b.Loop() {
				if a.frame(b, payload); a.frames == 60 {
					b.StopTimer()
					a.next(b)
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*readers), "ns/delivery")
		})
	}
}

// BenchmarkFanoutGroups is the audio case: every frame is a group of its own.
func BenchmarkFanoutGroups(b *testing.B) {
	for _, readers := range []int{1, 100} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			a := newAudience(b, readers)
			payload := make([]byte, 300)
			b.ReportAllocs()
			for b.Loop() {
				a.frame(b, payload)
				a.next(b)
			}
		})
	}
}

// groupCost is the memory of one cached group, and what of it the cache accounts for.
func groupCost(tb testing.TB, groups, frames, size int) (heap, counted float64) {
	tb.Helper()
	cache := media.NewCache(media.CacheConfig{})
	track := cache.NewTrack(media.Info{MaxAge: media.Unlimited, Timescale: 1000})
	defer track.Close(errors.New("over"))
	c := track.NewCopy(nil)
	payload := make([]byte, size)
	before := memory.Live()
	for seq := range uint64(groups) {
		w, err := c.Group(seq, 0)
		if err != nil {
			tb.Fatal(err)
		}
		for i := range frames {
			if err := w.WriteFrame(seq*1000+uint64(i), payload); err != nil {
				tb.Fatal(err)
			}
		}
		w.Finish()
	}
	return float64(memory.Live()-before) / float64(groups), float64(cache.Stats().Bytes) / float64(groups)
}

// TestAccountsAreHonest: groups take no more memory than the accounts of the cache say, and a tenth, whatever the size of
// their frames: a publisher of tiny ones gets no more than others.
func TestAccountsAreHonest(t *testing.T) {
	for _, frames := range []int{1, 60, 5000} {
		for _, size := range []int{0, 1, 100, 5000} {
			heap, counted := groupCost(t, max(5, 5000/frames), frames, size)
			if heap > counted*1.1 {
				t.Errorf("groups of %d frames of %d bytes take %.0f bytes, %.0f are accounted", frames, size, heap, counted)
			}
		}
	}
}

// BenchmarkBytesPerGroup reports what a cached group takes beside its payload, and what of that the cache accounts for.
func BenchmarkBytesPerGroup(b *testing.B) {
	for _, frames := range []int{1, 60} {
		b.Run(fmt.Sprintf("frames=%d", frames), func(b *testing.B) {
			for b.Loop() {
				heap, counted := groupCost(b, 10_000, frames, 100)
				b.ReportMetric(heap-float64(frames*100), "B/group")
				b.ReportMetric(counted-float64(frames*100), "accounted-B/group")
			}
		})
	}
}

// BenchmarkEvict writes groups into a full cache.
func BenchmarkEvict(b *testing.B) {
	cache := media.NewCache(media.CacheConfig{Capacity: 64 << 20})
	track := cache.NewTrack(media.Info{MaxAge: media.Unlimited, Timescale: 1000})
	defer track.Close(errors.New("over"))
	c := track.NewCopy(nil)
	now := time.Now()
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		if seq++; seq%100 == 0 {
			now = now.Add(250 * time.Millisecond)
			cache.Sweep(now)
		}
		fill(b, c, seq, seq, 16<<10)
	}
	b.ReportMetric(float64(len(track.Cached())), "groups")
}

// BenchmarkNextManyCached is a wake-up of a reader with thousands of cached groups, most of which are too old for it or
// were read.
func BenchmarkNextManyCached(b *testing.B) {
	for _, groups := range []uint64{100, 10000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			track := media.NewCache(media.CacheConfig{}).NewTrack(media.Info{MaxAge: time.Duration(groups) * time.Millisecond, Timescale: 1000})
			defer track.Close(errors.New("over"))
			c := track.NewCopy(nil)
			r := track.NewReader(from(3600, at(0, 0)), new(wakeups))
			seq := uint64(0)
			one := func() {
				seq += 7 // numbers with gaps
				fill(b, c, seq, seq/7, 10)
				for {
					g, err := r.Next()
					if err != nil {
						b.Fatal(err)
					}
					if g == nil {
						return
					}
					g.TooOld()
					g.Close()
				}
			}
			for range groups {
				one()
			}
			for b.Loop() {
				one()
			}
		})
	}
}
