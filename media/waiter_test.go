package media_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

func TestWaiterCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c := r.track.NewCopy(nil)
		s := r.open(c, 1, 0)
		g, _ := r.fetch(1, 0)
		other, _ := r.fetch(1, 0)
		w := media.NewWaiter()
		result := make(chan error, 1)
		next := func() {
			go func() {
				_, err := g.Next(w)
				result <- err
			}()
			synctest.Wait()
		}
		next()
		w.Cancel()
		if err := <-result; !errors.Is(err, media.ErrCancelled) {
			t.Fatalf("cancelled: %v", err)
		}
		s.send(1)
		if _, err := g.Next(w); !errors.Is(err, media.ErrCancelled) {
			t.Fatalf("it stays cancelled: %v", err)
		}
		w.Reset()
		if b, err := g.Next(w); err != nil || b.Frames() != 1 {
			t.Fatalf("after Reset: %d frames, %v", b.Frames(), err)
		}
		// One of several is cancelled; the others still wait in line.
		next()
		w2, result2 := media.NewWaiter(), make(chan error, 1)
		if _, err := other.Next(w2); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := other.Next(w2)
			result2 <- err
		}()
		synctest.Wait()
		w.Cancel()
		if err := <-result; !errors.Is(err, media.ErrCancelled) {
			t.Errorf("cancelled: %v", err)
		}
		s.send(1)
		if err := <-result2; err != nil {
			t.Errorf("the other waiter: %v", err)
		}
		s.fin()
		w.Reset()
		if b, err := g.Next(w); err != nil || b.Frames() != 1 {
			t.Errorf("%d frames, %v", b.Frames(), err)
		}
		if _, err := g.Next(w); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
		g.Close()
		if _, err := g.Next(w); !errors.Is(err, media.ErrCancelled) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestWaitEnds: whatever ends a group wakes those who wait for it.
func TestWaitEnds(t *testing.T) {
	errGone := errors.New("gone")
	for _, tt := range []struct {
		name string
		end  func(r *rig, c *media.Copy, s *stream)
		want error
	}{
		{"complete", func(_ *rig, _ *media.Copy, s *stream) { s.fin() }, io.EOF},
		{"reset", func(r *rig, _ *media.Copy, s *stream) {
			s.w.Abort(errGone)
			r.pass(1250 * time.Millisecond)
		}, errGone},
		{"track closed", func(r *rig, _ *media.Copy, _ *stream) { r.track.Close(errGone) }, errGone},
		{"track ended", func(r *rig, c *media.Copy, _ *stream) {
			r.track.End(2)
			c.Close()
		}, media.ErrOld},
		{"dropped", func(_ *rig, c *media.Copy, s *stream) {
			s.w.Abort(errGone)
			c.Drop(1, 1)
		}, nil},
		{"too large", func(_ *rig, _ *media.Copy, s *stream) {
			for _, n := range []int{media.MaxGroupBytes, 1} {
				_ = s.w.WriteFrame(0, make([]byte, n)) // the second one fails, as its reader sees
			}
		}, media.ErrGroupTooLarge},
		{"too old and stalled", func(r *rig, c *media.Copy, _ *stream) {
			r.whole(c, 2, 1)
			r.pass(1500 * time.Millisecond)
		}, media.ErrOld},
		{"stalled and too old", func(r *rig, c *media.Copy, _ *stream) {
			r.pass(1500 * time.Millisecond)
			r.whole(c, 2, 1)
		}, media.ErrOld},
		{"evicted", func(r *rig, c *media.Copy, _ *stream) {
			r.open(c, 2, 0)
			r.pass(31 * time.Second)
		}, media.ErrEvicted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				c := r.track.NewCopy(nil)
				reader := r.track.NewReader(sub(0), new(wakeups))
				defer reader.Close()
				s := r.open(c, 1, 0)
				g := held(t, reader)
				w := media.NewWaiter()
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					for err == nil {
						_, err = g.Next(w)
					}
				}()
				synctest.Wait()
				tt.end(r, c, s)
				synctest.Wait()
				if tt.want == nil { // it must still wait
					select {
					case <-done:
						t.Errorf("ended early: %v", err)
					default:
						w.Cancel()
					}
					<-done
					return
				}
				select {
				case <-done:
				default:
					t.Error("still waiting")
					w.Cancel()
					<-done
				}
				if !errors.Is(err, tt.want) {
					t.Errorf("ended with %v, want %v", err, tt.want)
				}
			})
		})
	}
}

// TestWaiterReuse: a waiter that is cancelled at any moment goes on to another group of another track, and no list is
// damaged: every frame is read, and nobody is left waiting.
func TestWaiterReuse(t *testing.T) {
	const frames, readers = 2000, 8
	var work sync.WaitGroup
	var tracks []*rig
	for range 2 {
		tracks = append(tracks, newRig(t))
	}
	for range readers {
		w := media.NewWaiter()
		stop := make(chan struct{})
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.Cancel()
					runtime.Gosched()
				}
			}
		})
		groups := map[*media.GroupReader]int{}
		for _, r := range tracks {
			g, f := r.track.Fetch(1, 0)
			if f != nil {
				w, err := r.track.NewCopy(nil).Group(1, 0)
				if err != nil {
					t.Fatal(err)
				}
				f.Close(nil)
				g.Close()
				g, _ = r.track.Fetch(1, 0)
				work.Go(func() {
					for range frames {
						if err := w.WriteFrame(0, nil); err != nil {
							t.Error(err)
						}
						runtime.Gosched()
					}
					w.Finish()
				})
			}
			groups[g] = 0
		}
		work.Go(func() {
			defer close(stop)
			for len(groups) > 0 {
				for g, n := range groups {
					w.Reset()
					b, err := g.Next(w)
					groups[g] = n + b.Frames()
					if errors.Is(err, io.EOF) {
						if n != frames {
							t.Errorf("%d frames, want %d", n, frames)
						}
						g.Close()
						delete(groups, g)
					}
				}
			}
		})
	}
	work.Wait()
}

// follower is a Waker with a goroutine behind it that reads a subscription as a session does.
type follower struct{ ch chan struct{} }

func (f *follower) Wake() {
	select {
	case f.ch <- struct{}{}:
	default:
	}
}

// TestConcurrent runs copies that overlap, die and are replaced, readers that come, go, and cancel, fetches and sweeps,
// all at once. Run with -race it finds what the lock does not cover; without, it checks contents.
func TestConcurrent(t *testing.T) {
	cache := media.NewCache(media.CacheConfig{Capacity: 1 << 20})
	track := cache.NewTrack(media.Info{MaxAge: 5 * time.Second, Timescale: 1000})
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { publishLoop(ctx, track) })
	work.Go(func() {
		for now := time.Now(); ctx.Err() == nil; now = now.Add(50 * time.Millisecond) {
			cache.Sweep(now)
			time.Sleep(time.Millisecond)
		}
	})
	var groups, complete sync.Map
	for i := range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				life, end := context.WithTimeout(ctx, time.Duration(rand.IntN(200))*time.Millisecond)
				if i < 2 {
					life, end = context.WithCancel(ctx)
				}
				follow(life, t, track, &groups, &complete)
				end()
			}
		})
	}
	work.Go(func() { fetchLoop(ctx, t, track) })
	work.Wait()
	track.Close(errors.New("over"))
	if s := cache.Stats(); s.Bytes != 0 || s.Groups != 0 || track.Held() != 0 {
		t.Errorf("left over: %+v, %d held", s, track.Held())
	}
	n := 0
	complete.Range(func(_, _ any) bool { n++; return true })
	if n < 50 {
		t.Errorf("only %d groups were read to their end", n)
	}
}

// publishLoop feeds a track from one copy after the other. Each group has between 1 and 20 frames, given by its number.
func publishLoop(ctx context.Context, track *media.Track) {
	var work sync.WaitGroup
	defer work.Wait()
	var old *media.Copy
	var seq uint64
	for ctx.Err() == nil {
		c := track.NewCopy(nil)
		if p := c.Ask(sub(5)).Start; p != nil {
			seq = p.Group
		}
		if old != nil && rand.IntN(2) == 0 {
			old.Close()
		}
		for range 20 {
			from := uint64(0)
			if p := c.Ask(sub(5)).Start; p != nil && p.Group == seq {
				from = p.Frame
			}
			if w, err := c.Group(seq, from); err == nil {
				n := seq
				work.Go(func() { publishGroup(w, n, from) })
			}
			seq++
			time.Sleep(100 * time.Microsecond)
		}
		if old != nil {
			old.Close()
		}
		old = c
	}
	old.Close()
}

func publishGroup(w *media.GroupWriter, seq, from uint64) {
	for i := from; i < 1+seq%20; i++ {
		if w.WriteFrame(seq*20+i, payload(seq, i)) != nil {
			return
		}
		time.Sleep(50 * time.Microsecond)
	}
	if rand.IntN(10) == 0 {
		w.Abort(errors.New("reset"))
		return
	}
	w.Finish()
}

func follow(ctx context.Context, t *testing.T, track *media.Track, groups, complete *sync.Map) {
	t.Helper()
	f := &follower{make(chan struct{}, 1)}
	r := track.NewReader(sub(1), f)
	defer r.Close()
	var streams sync.WaitGroup
	defer streams.Wait()
	seen := map[uint64]bool{}
	for ctx.Err() == nil {
		g, err := r.Next()
		if err != nil {
			t.Errorf("reader: %v", err)
			return
		}
		if g == nil {
			select {
			case <-f.ch:
			case <-ctx.Done():
			}
			continue
		}
		if seen[g.Sequence()] {
			t.Errorf("group %d twice", g.Sequence())
		}
		seen[g.Sequence()] = true
		groups.Store(g.Sequence(), true)
		streams.Go(func() { followGroup(ctx, t, g, complete) })
	}
}

func followGroup(ctx context.Context, t *testing.T, g *media.GroupReader, complete *sync.Map) {
	t.Helper()
	defer g.Close()
	w := media.NewWaiter()
	defer context.AfterFunc(ctx, w.Cancel)()
	next := g.FirstFrame()
	for {
		b, err := g.Next(w)
		for i := range b.Frames() {
			if got := string(b.Frame(i).Payload); got != string(payload(g.Sequence(), next)) {
				t.Errorf("group %d frame %d is %q", g.Sequence(), next, got)
			}
			next++
		}
		if errors.Is(err, io.EOF) {
			if next != 1+g.Sequence()%20 {
				t.Errorf("group %d ended after %d frames", g.Sequence(), next)
			}
			complete.Store(g.Sequence(), true)
		}
		if err != nil {
			return
		}
		g.TooOld()
	}
}

func fetchLoop(ctx context.Context, t *testing.T, track *media.Track) {
	t.Helper()
	for ctx.Err() == nil {
		top, _ := track.Newest()
		seq := top - min(top, uint64(rand.IntN(10)))
		g, f := track.Fetch(seq, 0)
		if f != nil {
			publishGroup(f.Writer(0), seq, 0)
			f.Close(media.ErrNotFound)
		}
		followGroup(ctx, t, g, new(sync.Map))
		time.Sleep(time.Millisecond)
	}
}
