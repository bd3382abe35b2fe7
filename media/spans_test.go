package media

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSpansEdges(t *testing.T) {
	var s spans
	s.add(math.MaxUint64, math.MaxUint64)
	s.add(0, 0)
	s.add(5, 3) // empty
	if want := []span{{0, 0}, {math.MaxUint64, math.MaxUint64}}; !slices.Equal(s.s, want) {
		t.Fatalf("spans = %v, want %v", s.s, want)
	}
	if _, ok := s.missing(math.MaxUint64); ok {
		t.Error("missing found a number above the highest")
	}
	s.add(1, math.MaxUint64-1)
	if want := []span{{0, math.MaxUint64}}; !slices.Equal(s.s, want) {
		t.Fatalf("spans = %v, want %v", s.s, want)
	}
}

func TestSpansLimit(t *testing.T) {
	var s spans
	for i := range uint64(3 * maxSpans) {
		s.add(10*i, 10*i)
	}
	if len(s.s) != maxSpans {
		t.Fatalf("%d ranges, want %d", len(s.s), maxSpans)
	}
	if !s.has(15) || s.has(10*(3*maxSpans-1)-5) {
		t.Error("gaps must be filled at the low end only")
	}
}

// TestSpansModel compares with a plain set.
func TestSpansModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s spans
		model := map[uint64]bool{}
		number := rapid.Uint64Range(0, 40)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				lo := number.Draw(t, "lo")
				hi := lo + rapid.Uint64Range(0, 5).Draw(t, "len")
				s.add(lo, hi)
				for x := lo; x <= hi; x++ {
					model[x] = true
				}
			},
			"remove": func(t *rapid.T) {
				x := number.Draw(t, "x")
				s.remove(x)
				delete(model, x)
			},
			"": func(t *rapid.T) {
				var got []uint64
				for i, r := range s.s {
					if i > 0 && s.s[i-1].hi+1 >= r.lo {
						t.Fatalf("ranges touch: %v", s.s)
					}
					for x := r.lo; x <= r.hi; x++ {
						got = append(got, x)
					}
				}
				if diff := cmp.Diff(slices.Sorted(maps.Keys(model)), got); diff != "" {
					t.Fatalf("set (-want +got):\n%s", diff)
				}
				checkSpanQueries(t, &s, model)
			},
		})
	})
}

func checkSpanQueries(t *rapid.T, s *spans, model map[uint64]bool) {
	for x := range uint64(50) {
		if s.has(x) != model[x] {
			t.Fatalf("has(%d) = %v", x, s.has(x))
		}
		miss := x
		for model[miss] {
			miss++
		}
		if got, ok := s.missing(x); !ok || got != miss {
			t.Fatalf("missing(%d) = %d, %v, want %d", x, got, ok, miss)
		}
		next := x
		for next < 60 && !model[next] {
			next++
		}
		if got, ok := s.next(x); ok != (next < 60) || ok && got != next {
			t.Fatalf("next(%d) = %d, %v, want %d", x, got, ok, next)
		}
		for hi := x; hi < x+8; hi++ {
			all := true
			for y := x; y <= hi; y++ {
				all = all && model[y]
			}
			if s.covers(x, hi) != all {
				t.Fatalf("covers(%d, %d) = %v", x, hi, s.covers(x, hi))
			}
		}
	}
}
