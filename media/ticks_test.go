package media

import (
	"math"
	"testing"
	"time"
)

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		budget    time.Duration
		timescale uint64
		want      uint64
	}{
		{-time.Second, 1000, 0},
		{0, 1000, 0},
		{time.Second, 1000, 1000},
		{time.Second + 1, 1000, 1001}, // T - S = 1000 is below the budget
		{time.Millisecond, 90000, 90},
		{time.Microsecond, 1000, 1},
		{time.Second, 1, 1},
		{1500 * time.Millisecond, 1, 2},
		{Unlimited, 1, math.MaxUint64},
		{Unlimited - 1, 1 << 61, math.MaxUint64},
		{Unlimited - 1, 1000, 9223372036855},
		{4 * time.Second, 1 << 62, math.MaxUint64},
		{3 * time.Second, 1 << 62, 3 << 62},
	} {
		if got := ticks(tt.budget, tt.timescale); got != tt.want {
			t.Errorf("ticks(%v, %d) = %d, want %d", tt.budget, tt.timescale, got, tt.want)
		}
	}
}

func TestDue(t *testing.T) {
	if got := due(5, math.MaxUint64-4); got != never {
		t.Errorf("due = %d, want never", got)
	}
	if got := due(5, 7); got != 12 {
		t.Errorf("due = %d, want 12", got)
	}
}
