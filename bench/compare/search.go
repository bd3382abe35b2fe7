package main

import (
	"context"
	"fmt"

	"github.com/moqmesh/moqmesh/bench"
)

const (
	searchName  = "viewers-per-core"
	searchFrom  = 300 // first guess
	searchLimit = 100 // p99 in milliseconds from which on a run has failed
	confirmWith = 3   // runs, of which two have to pass
)

// bounds is the state of one search.
type bounds struct{ good, bad int } // most that passed, fewest that failed; 0 = none did

// next is how many viewers to try; 0 when the bounds are close enough, four percent.
func (b bounds) next() int {
	switch {
	case b.bad == 0 && b.good == 0:
		return searchFrom
	case b.bad == 0:
		return b.good * 3 / 2
	case b.bad-b.good <= max(10, b.good/25):
		return 0
	}
	return (b.good + b.bad) / 20 * 10
}

func (b *bounds) tried(n int, passed bool) {
	if passed {
		b.good = n
	} else {
		b.bad = n
	}
}

// passed says whether all viewers got everything in time, which a generator at its limit cannot tell.
func passed(r *bench.Result) bool {
	return r != nil && r.Good && !r.Saturated && r.Media.Delay.P99 < searchLimit
}

// search finds for each relay how many viewers one core carries, in turns.
func (b *bed) search(ctx context.Context, kinds []kind) error {
	state := make([]bounds, len(kinds))
	for open := true; open; {
		open = false
		for i, k := range kinds {
			n := state[i].next()
			if n == 0 {
				continue
			}
			open = true
			ok, err := b.try(ctx, k, n)
			if err != nil {
				return err
			}
			state[i].tried(n, ok)
		}
	}
	for i, k := range kinds {
		if err := b.confirm(ctx, k, state[i].good); err != nil {
			return err
		}
	}
	return nil
}

// confirm repeats the best number, and goes down until two of three runs pass.
func (b *bed) confirm(ctx context.Context, k kind, n int) error {
	for ; n > 0; n = n * 19 / 200 * 10 {
		good := 0
		for range confirmWith {
			ok, err := b.try(ctx, k, n)
			if err != nil {
				return err
			}
			if ok {
				good++
			}
		}
		if good >= 2 {
			fmt.Printf("%s: %d viewers\n", k.name, n)
			return nil
		}
	}
	fmt.Printf("%s: none\n", k.name)
	return nil
}

func (b *bed) try(ctx context.Context, k kind, n int) (bool, error) {
	l, err := b.one(ctx, k, saturation(n), fmt.Sprintf("%s-%d", searchName, n))
	return passed(l.Result), err
}
