package origin

import (
	"slices"
	"testing"
	"time"
)

// TestGate: at most 200 hedges in any second, those of the highest priority first, the older ones first among equals.
func TestGate(t *testing.T) {
	var g gate
	now := time.Unix(1000, 0)
	tracks := make([]*track, 450)
	for i := range tracks {
		tracks[i] = &track{name: string(rune('A' + i%3))}
		g.ask(tracks[i], uint8(i%3))
		g.ask(tracks[i], 255) // it has its place already
	}
	g.forget(tracks[2])
	g.forget(tracks[2]) // it has none any more
	first := g.admit(now)
	if len(first) != hedgeRate {
		t.Fatalf("%d admitted at once", len(first))
	}
	var want []*track // by priority 2, 1, 0
	for p := 2; p >= 0; p-- {
		for i := p; i < len(tracks); i += 3 {
			if i != 2 {
				want = append(want, tracks[i])
			}
		}
	}
	if !slices.Equal(first, want[:hedgeRate]) {
		t.Error("not by priority and age")
	}
	if due, ok := g.deadline(); !ok || !due.Equal(now.Add(time.Second)) {
		t.Errorf("the next one is due at %v %v", due, ok)
	}
	if more := g.admit(now.Add(999 * time.Millisecond)); len(more) != 0 {
		t.Errorf("%d admitted within the same second", len(more))
	}
	now = now.Add(time.Second)
	if more := g.admit(now); !slices.Equal(more, want[hedgeRate:2*hedgeRate]) {
		t.Errorf("%d admitted in the second after", len(more))
	}
	if more := g.admit(now.Add(time.Second)); !slices.Equal(more, want[2*hedgeRate:]) {
		t.Errorf("%d admitted at last", len(more))
	}
	if _, ok := g.deadline(); ok || len(g.places) != 0 {
		t.Errorf("%d places are left", len(g.places))
	}
}
