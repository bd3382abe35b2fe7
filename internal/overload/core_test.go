package overload

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var free = math.Inf(1)

// TestCore follows one process through an overload: a limit of 100 ms, looked at four times a second.
func TestCore(t *testing.T) {
	c := NewCore(100 * time.Millisecond)
	now := time.Unix(0, 0)
	for _, step := range []struct {
		name string
		wait time.Duration
		span time.Duration
		want Verdict
	}{
		{"calm", time.Millisecond, time.Second, Verdict{Joins: free}},
		{"a blip far above the limit slows joining down, once", 3 * time.Second, 250 * time.Millisecond, Verdict{Joins: 200}},
		{"and it is over", time.Millisecond, time.Second, Verdict{Joins: free}},
		{"a quarter of the limit", 25 * time.Millisecond, time.Second, Verdict{Joins: 25}},
		{"for long", 99 * time.Millisecond, time.Minute, Verdict{Joins: 5}},
		{"just below", 24 * time.Millisecond, 500 * time.Millisecond, Verdict{Joins: 20}},
		{"the limit, not for long enough", 100 * time.Millisecond, 2 * time.Second, Verdict{Joins: 5}},
		{"long enough", 100 * time.Millisecond, 250 * time.Millisecond, Verdict{Full: true, Joins: 5, Patience: 4 * time.Second}},
		{"which does not help", 200 * time.Millisecond, 2 * time.Second, Verdict{Full: true, Joins: 5, Patience: 2 * time.Second}},
		{"not at all", 200 * time.Millisecond, time.Minute, Verdict{Full: true, Joins: 5, Patience: 500 * time.Millisecond}},
		{"half of the limit changes nothing", 50 * time.Millisecond, time.Minute, Verdict{Full: true, Joins: 5, Patience: 500 * time.Millisecond}},
		{"less, not for long enough", 24 * time.Millisecond, 5 * time.Second, Verdict{Full: true, Joins: free, Patience: 500 * time.Millisecond}},
		{"long enough", 24 * time.Millisecond, 250 * time.Millisecond, Verdict{Joins: free}},
	} {
		var got Verdict
		for end := now.Add(step.span); now.Before(end); {
			now = now.Add(250 * time.Millisecond)
			got = c.Observe(now, step.wait)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestNinth reads histograms.
func TestNinth(t *testing.T) {
	bounds := []float64{0, 0.001, 0.01, 0.1, free}
	for _, c := range []struct {
		counts []uint64
		want   time.Duration
	}{
		{[]uint64{0, 0, 0, 0}, 0},
		{[]uint64{1, 0, 0, 0}, time.Millisecond},
		{[]uint64{9, 1, 0, 0}, time.Millisecond},
		{[]uint64{8, 1, 1, 0}, 10 * time.Millisecond},
		{[]uint64{8, 0, 2, 0}, 100 * time.Millisecond},
		{[]uint64{0, 0, 1, 9}, 100 * time.Millisecond},
	} {
		if got := ninth(c.counts, bounds); got != c.want {
			t.Errorf("%v: %v, want %v", c.counts, got, c.want)
		}
	}
}

// TestMeter has more goroutines ready than there are cores.
func TestMeter(t *testing.T) {
	m := NewMeter()
	done := make(chan struct{})
	const many = 400
	for range many {
		go func() {
			for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); {
			}
			done <- struct{}{}
		}()
	}
	for range many {
		<-done
	}
	if got := m.Read(); got < time.Millisecond {
		t.Errorf("%d goroutines of 2 ms each wait %v", many, got)
	}
}
