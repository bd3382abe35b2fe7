package backoff_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/internal/backoff"
	"pgregory.net/rapid"
)

var epoch = time.Unix(1000, 0)

// ceilings draws pauses that all begin at the same time.
func ceilings(b *backoff.Backoff, n int) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = b.Ceiling(epoch)
		b.Next(epoch)
	}
	return out
}

func TestCeilings(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		policy backoff.Policy
		want   []time.Duration
	}{
		"default":           {backoff.Policy{}, []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}},
		"own":               {backoff.Policy{Initial: 2 * s, Max: 10 * s, Multiplier: 3}, []time.Duration{2 * s, 6 * s, 10 * s, 10 * s}},
		"floor":             {backoff.Policy{Initial: 1, Max: s}, []time.Duration{backoff.Floor, 2 * backoff.Floor}},
		"shrinking":         {backoff.Policy{Multiplier: 0.5}, []time.Duration{s, s, s}},
		"max below initial": {backoff.Policy{Initial: 5 * s, Max: s}, []time.Duration{5 * s, 5 * s}},
		"huge":              {backoff.Policy{Initial: s, Max: 1<<63 - 1, Multiplier: 1e300}, []time.Duration{s, 1<<63 - 1, 1<<63 - 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := backoff.New(tt.policy, rand.Float64)
			if diff := cmp.Diff(tt.want, ceilings(b, len(tt.want))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPauseFollowsChance(t *testing.T) {
	chance := 0.0
	b := backoff.New(backoff.Policy{}, func() float64 { return chance })
	if got := b.Next(epoch); got != 0 {
		t.Errorf("pause %v at chance 0", got)
	}
	chance = 0.5
	if got := b.Next(epoch); got != time.Second {
		t.Errorf("pause %v, want half of the second ceiling, 1s", got)
	}
}

// TestEarly: the first pauses of a series are short, those of the next series again, while the ceiling grows underneath.
func TestEarly(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		policy backoff.Policy
		want   []time.Duration // ceilings, 2 s apart
	}{
		"as configured":   {backoff.Policy{Early: 5 * s, For: 10 * s}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}},
		"a fast one":      {backoff.Policy{Multiplier: 8, Early: 5 * s, For: 10 * s}, []time.Duration{s, 5 * s, 5 * s, 30 * s, 30 * s, 30 * s, 30 * s}},
		"no bound":        {backoff.Policy{Early: 5 * s}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}},
		"for ever":        {backoff.Policy{Early: 3 * s, For: time.Hour}, []time.Duration{s, 2 * s, 3 * s, 3 * s, 3 * s, 3 * s, 3 * s}},
		"below the first": {backoff.Policy{Initial: 2 * s, Early: s, For: 8 * s}, []time.Duration{2 * s, 2 * s, 2 * s, 2 * s, 30 * s, 30 * s, 30 * s}},
		"above the last":  {backoff.Policy{Early: time.Minute, For: time.Hour}, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := backoff.New(tt.policy, func() float64 { return 0.5 })
			for series := range 2 {
				now := epoch.Add(time.Duration(series) * time.Hour)
				for i, want := range tt.want {
					if got := b.Ceiling(now); got != want {
						t.Errorf("series %d: ceiling %d is %v, want %v", series, i, got, want)
					}
					if got := b.Next(now); got != want/2 {
						t.Errorf("series %d: pause %d is %v, want half of %v", series, i, got, want)
					}
					now = now.Add(2 * s)
				}
				b.Reset()
			}
		})
	}
}

func TestResetAndLast(t *testing.T) {
	b := backoff.New(backoff.Policy{}, func() float64 { return 0.5 })
	if got := b.Last(); got != 30*time.Second {
		t.Errorf("Last is %v, want the whole last ceiling", got)
	}
	if got := b.Next(epoch); got != 15*time.Second {
		t.Errorf("pause %v after Last, want half of 30s", got)
	}
	b.Reset()
	if got := b.Next(epoch); got != time.Second/2 {
		t.Errorf("pause %v after Reset, want half of 1s", got)
	}
}

func TestPauseStaysBelowCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := backoff.Policy{
			Initial:    time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "initial")),
			Max:        time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "max")),
			Multiplier: rapid.Float64Range(0, 100).Draw(t, "multiplier"),
		}
		b := backoff.New(p, func() float64 { return rapid.Float64Range(0, 0.999999).Draw(t, "chance") })
		for last := time.Duration(0); last < p.Max; {
			ceiling := b.Ceiling(epoch)
			if pause := b.Next(epoch); pause < 0 || pause >= ceiling {
				t.Fatalf("pause %v outside of [0, %v)", pause, ceiling)
			}
			if b.Ceiling(epoch) < ceiling {
				t.Fatalf("ceiling fell from %v to %v", ceiling, b.Ceiling(epoch))
			}
			if b.Ceiling(epoch) == last {
				break
			}
			last = ceiling
		}
	})
}
