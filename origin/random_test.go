package origin_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/session"
)

// seed is that of a random test; SEED repeats one.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := rand.Uint64()
	if s := os.Getenv("SEED"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// Readers of three tracks come and go, sources come, go and die, and at any quiet moment each track that is read is
// served by exactly one source, and one that is not by none (invariant 3).
func TestRandomReaders(t *testing.T) {
	rnd := seed(t)
	for range 20 {
		bubble(t, origin.Config{}, func(r *rig) {
			tracks := []string{"a", "b", "c"}
			sources := []*peer{r.peer("s0"), r.peer("s1")}
			for _, s := range sources {
				s.announce("room", 9)
			}
			viewers := []*peer{r.peer("v0"), r.peer("v1")}
			views := map[string][]*viewing{}
			for step := range 150 {
				track := tracks[rnd.IntN(len(tracks))]
				switch n := rnd.IntN(20); {
				case n < 8:
					v, err := view(viewers[rnd.IntN(2)].Session, "room", track, live())
					if err != nil {
						r.Fatalf("step %d: %v", step, err)
					}
					views[track] = append(views[track], v)
				case n < 14:
					if l := views[track]; len(l) > 0 {
						i := rnd.IntN(len(l))
						l[i].close()
						views[track] = append(l[:i:i], l[i+1:]...)
					}
				case n < 16:
					time.Sleep(time.Duration(rnd.IntN(35)) * time.Second)
				case n < 17:
					s := sources[0]
					sources = append(sources[1:], r.peer(fmt.Sprint("s", step)))
					sources[1].announce("room", 9)
					s.die()
				case n < 18:
					sources[1].withdraw("room")
					sources[1].announce("room", 9)
				default:
					for _, s := range sources {
						for _, u := range s.live() {
							_ = u.send(uint64(step), 0, uint64(rnd.IntN(4)))
						}
					}
				}
				synctest.Wait()
				served := map[string]int{}
				for _, s := range sources {
					for _, u := range s.live() {
						if u.req.Track != "" {
							served[u.req.Track]++
						}
					}
				}
				for _, name := range tracks {
					switch n, readers := served[name], len(views[name]); {
					case readers == 0 && n != 0:
						r.Fatalf("step %d: %d subscriptions to %s without a reader", step, n, name)
					case readers > 0 && (n == 0 || n > 3):
						r.Fatalf("step %d: %d subscriptions to %s for %d readers", step, n, name, readers)
					}
					for _, v := range views[name] {
						if err := v.ended(); err != nil {
							r.Fatalf("step %d: a reader of %s ended: %v", step, name, err)
						}
					}
				}
			}
			for _, l := range views {
				for _, v := range l {
					v.close()
				}
			}
			synctest.Wait()
			for _, s := range sources {
				if n := len(s.live()); n != 0 {
					r.Errorf("%d subscriptions are left", n)
				}
			}
			time.Sleep(31 * time.Second)
			if n := r.o.Counters(); n.Tracks != 0 || n.Readers != 0 || n.Upstreams != 0 {
				r.Errorf("left: %+v", n)
			}
		})
	}
}

// Requests with little patience, to a source that takes its time and often refuses, leave nothing behind.
func TestRandomCancels(t *testing.T) {
	rnd := seed(t)
	bubble(t, origin.Config{Linger: 3 * time.Millisecond}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		pub.delay = 4 * time.Millisecond
		pub.fetch = group
		errs := []error{nil, nil, session.ErrNotFound}
		var wg sync.WaitGroup
		for range 50 {
			n := rnd.Uint64()
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(n, 1))
				for range 100 {
					patience := time.Duration(rnd.IntN(12)) * time.Millisecond
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					track := fmt.Sprint(rnd.IntN(3))
					switch rnd.IntN(3) {
					case 0:
						_, _ = viewer.TrackInfo(ctx, "room", track)
					case 1:
						if v, err := viewer.Subscribe(ctx, "room", track, live(), noWaker{}); err == nil {
							time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
							v.Close()
						}
					case 2:
						req := session.FetchRequest{Path: "room", Track: track, Group: rnd.Uint64N(3)}
						if g, err := viewer.Fetch(ctx, req); err == nil {
							g.Close()
						}
					}
					cancel()
					pub.mu.Lock()
					pub.infoErr = errs[rnd.IntN(len(errs))]
					pub.mu.Unlock()
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		if n := r.o.Counters(); n.Tracks != 0 || n.Readers != 0 || n.Upstreams != 0 || len(pub.live()) != 0 {
			r.Errorf("left: %+v", n)
		}
	})
}
