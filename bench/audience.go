package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moqmesh/moqmesh/internal/latency"
)

// firstFrameLimit is how long a viewer waits for its first frame.
const firstFrameLimit = 30 * time.Second

var errNothing = fmt.Errorf("no frame within %v", firstFrameLimit)

// audience is the viewers of one track.
type audience struct {
	hall    *hall
	watch   *watch
	sub     subscription
	viewers []*viewer
}

// arrive connects n viewers, at most so many at a time, and returns when all of them have got a frame.
func (a *audience) arrive(ctx context.Context, n, atOnce int) error {
	a.viewers = make([]*viewer, n)
	dials, ctx := errgroup.WithContext(ctx)
	dials.SetLimit(atOnce)
	for i := range a.viewers {
		dials.Go(func() error {
			t, err := a.hall.dial(ctx, i)
			if err == nil {
				a.viewers[i], err = view(ctx, t, a.sub, a.watch, a.hall.shard(i))
			}
			if err == nil {
				err = a.viewers[i].receives(ctx)
			}
			if err != nil {
				return fmt.Errorf("viewer %d: %w", i, err)
			}
			return nil
		})
	}
	return dials.Wait()
}

// receives waits for the first frame.
func (v *viewer) receives(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, firstFrameLimit, errNothing)
	defer cancel()
	select {
	case <-v.first:
		return nil
	case <-v.ended:
		return v.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// totals of all viewers; latencies since the last reset go into h, if there is one.
func (a *audience) totals(h *latency.Histogram, reset bool) (sum counts) {
	for _, s := range a.hall.shards {
		sum.add(s.take(h, reset))
	}
	return sum
}

// lost sums up what viewers lack of the groups that count, to last, and how many of them have ended.
func (a *audience) lost(last uint64) (lost, twice uint64, ended int) {
	for _, v := range a.viewers {
		l, t := v.lost(last)
		lost += l
		twice += t
		if v.state() != nil {
			ended++
		}
	}
	return lost, twice, ended
}

// settle waits until nothing is missing up to last, or for d at most.
func (a *audience) settle(ctx context.Context, last uint64, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if lost, _, _ := a.lost(last); lost == 0 {
			return nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// leave closes all sessions.
func (a *audience) leave() {
	var closing sync.WaitGroup
	for _, v := range a.viewers {
		if v != nil {
			closing.Go(v.Close)
		}
	}
	closing.Wait()
}
