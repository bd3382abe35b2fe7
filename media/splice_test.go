package media

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// spliceRun drives a splice as a group does and notes what readers get.
type spliceRun struct {
	splice
	pos map[string]uint64
	got []uint64
}

func (r *spliceRun) open(copy string, frame uint64) { r.pos[copy] = frame }

func (r *spliceRun) frame(copy string) verdict {
	i := r.pos[copy]
	r.pos[copy]++
	v := r.offer(i)
	if v == take {
		r.got = append(r.got, i)
		for {
			i, ok := r.release()
			if !ok {
				break
			}
			r.got = append(r.got, i)
		}
		r.complete()
	}
	return v
}

func (r *spliceRun) fin(copy string) bool { return r.finish(r.pos[copy]) }

func TestSplice(t *testing.T) {
	type step struct {
		copy  string
		open  uint64 // with op o
		op    byte   // o open, f frame, e end
		want  verdict
		whole bool // complete after the end
	}
	frames := func(copy string, want verdict, n int) (s []step) {
		for range n {
			s = append(s, step{copy: copy, op: 'f', want: want})
		}
		return s
	}
	begin := func(copy string, at uint64) []step { return []step{{copy: copy, op: 'o', open: at}} }
	end := func(copy string, whole bool) []step { return []step{{copy: copy, op: 'e', whole: whole}} }
	for _, tt := range []struct {
		name  string
		steps [][]step
		want  uint64 // frames 0 .. want-1, in order
		whole bool
	}{
		{"one copy", [][]step{begin("A", 0), frames("A", take, 3), end("A", true)}, 3, true},
		{"nothing follows the end", [][]step{
			begin("A", 0), frames("A", take, 3), begin("C", 2), frames("C", drop, 1), end("A", true), frames("C", drop, 1), end("C", true),
		}, 3, true},
		{"no frames", [][]step{begin("A", 0), end("A", true)}, 0, true},
		{"X16 continuation", [][]step{
			begin("A", 0), frames("A", take, 5), begin("B", 5), frames("B", take, 3), end("B", true),
		}, 8, true},
		{"X16 before 06: known frames dropped", [][]step{
			begin("A", 0), frames("A", take, 5), begin("B", 0), frames("B", drop, 5), frames("B", take, 1), end("B", true),
		}, 6, true},
		{"X19 the old copy finishes first", [][]step{
			begin("A", 0), frames("A", take, 5), begin("C", 5), frames("A", take, 5), end("A", true), frames("C", drop, 5), end("C", true),
		}, 10, true},
		{"X52 wait for what lies between", [][]step{
			begin("A", 0), frames("A", take, 5), begin("C", 7), frames("C", hold, 2), frames("A", take, 2),
			frames("A", drop, 1), end("A", false), end("C", true),
		}, 9, true},
		{"F32 a short end is ignored", [][]step{
			begin("A", 0), frames("A", take, 5), begin("B", 0), frames("B", drop, 3), end("B", false), frames("A", take, 1), end("A", true),
		}, 6, true},
		{"a short end does not take back a longer one", [][]step{
			begin("A", 0), frames("A", take, 3), begin("C", 4), frames("C", hold, 1), end("C", false), begin("B", 0), end("B", false),
			frames("A", take, 1), frames("A", drop, 1),
		}, 5, true},
		{"an end ahead of a hole", [][]step{
			begin("A", 0), frames("A", take, 1), begin("B", 2), frames("B", hold, 1), end("B", false), frames("A", take, 1),
		}, 3, true},
		{"held twice", [][]step{
			begin("A", 1), frames("A", hold, 2), begin("B", 1), frames("B", drop, 2), frames("B", hold, 1),
			begin("C", 0), frames("C", take, 1), end("B", true),
		}, 4, true},
		{"an end below what is held is not the end", [][]step{
			begin("C", 3), frames("C", hold, 1), begin("A", 0), frames("A", take, 3), end("A", false), end("C", true),
		}, 4, true},
		{"an empty end while later frames are held", [][]step{
			begin("C", 1), frames("C", hold, 1), begin("A", 0), end("A", false), begin("B", 0), frames("B", take, 1), end("C", true),
		}, 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := spliceRun{pos: map[string]uint64{}}
			for i, s := range slices.Concat(tt.steps...) {
				switch s.op {
				case 'o':
					r.open(s.copy, s.open)
				case 'f':
					if v := r.frame(s.copy); v != s.want {
						t.Fatalf("step %d: verdict %d, want %d", i, v, s.want)
					}
				case 'e':
					if whole := r.fin(s.copy); whole != s.whole {
						t.Fatalf("step %d: complete %v, want %v", i, whole, s.whole)
					}
				}
			}
			var want []uint64
			for i := range tt.want {
				want = append(want, i)
			}
			if diff := cmp.Diff(want, r.got); diff != "" || r.done != tt.whole {
				t.Errorf("complete %v; frames (-want +got):\n%s", r.done, diff)
			}
		})
	}
}

// TestSpliceModel compares with a set of frames seen: readers have its longest prefix, and the group is complete when a
// stream that brought nothing beyond that prefix, or nobody did, has ended there.
func TestSpliceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := spliceRun{pos: map[string]uint64{}}
		seen := map[uint64]bool{}
		length := rapid.Uint64Range(0, 12).Draw(t, "length")
		names := []string{"A", "B", "C"}
		ended := map[string]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				n := rapid.SampledFrom(names).Draw(t, "copy")
				if _, ok := r.pos[n]; !ok {
					r.open(n, rapid.Uint64Range(0, length).Draw(t, "at"))
				}
			},
			"frame": func(t *rapid.T) {
				n := rapid.SampledFrom(names).Draw(t, "copy")
				if at, ok := r.pos[n]; ok && at < length && !ended[n] {
					seen[at] = true
					r.frame(n)
				}
			},
			"end": func(t *rapid.T) {
				n := rapid.SampledFrom(names).Draw(t, "copy")
				if at, ok := r.pos[n]; ok && at == length && !ended[n] {
					ended[n] = true
					r.fin(n)
				}
			},
			"end short": func(t *rapid.T) {
				n := rapid.SampledFrom(names).Draw(t, "copy")
				if at, ok := r.pos[n]; ok && at < uint64(len(r.got)) && !ended[n] {
					r.fin(n)
					delete(r.pos, n)
				}
			},
			"": func(t *rapid.T) {
				var want []uint64
				for i := uint64(0); seen[i]; i++ {
					want = append(want, i)
				}
				if diff := cmp.Diff(want, r.got); diff != "" {
					t.Fatalf("frames (-want +got):\n%s\nseen %v", diff, slices.Sorted(maps.Keys(seen)))
				}
				whole := len(ended) > 0 && uint64(len(want)) == length
				if r.done != whole {
					t.Fatalf("complete %v, want %v", r.done, whole)
				}
			},
		})
	})
}
