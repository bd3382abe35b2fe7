package qmux

import "testing"

// What may wait in the system is a time at the pace, more while the pace is above what the path delivers, and has limits.
func TestUnsent(t *testing.T) {
	for _, test := range []struct {
		name             string
		pace, rate, want uint64
	}{
		{"steady", 12_500_000, 12_000_000, 250_000},
		{"probing", 15_000_000, 12_000_000, 300_000},
		{"searching", 36_000_000, 12_000_000, 2_880_000},
		{"slow", 1_000_000, 1_000_000, leastUnsent},
		{"nothing known", 0, 0, leastUnsent},
		{"fast", 1_250_000_000, 1_250_000_000, mostUnsent},
		{"fast and searching", 1 << 62, 1, mostUnsent},
	} {
		if got := unsentFor(test.pace, test.rate); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
