package origin

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestCoreHedgeModel is TestCoreModel with hedged failover on: tracks flow and fall silent, sessions are heard or not, and
// places for hedges are granted or not, in between everything else that can happen.
func TestCoreHedgeModel(t *testing.T) {
	var seen [hedgeRefused + 1]int
	for rounds := 0; rounds < 5 && slices.Contains(seen[:], 0); rounds++ { // a hundred draws may miss a rare outcome
		checkHedgeModel(t, &seen)
	}
	for what, n := range seen {
		if n == 0 {
			t.Errorf("no hedge was %s: the test shows nothing", hedgeOutcome(what))
		}
	}
}

func checkHedgeModel(t *testing.T, seen *[hedgeRefused + 1]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			w := &world{coreRig: newCoreRig(rt), t: rt, edge: 10}
			defer func() {
				for what, n := range w.became {
					seen[what] += n
				}
				for _, tr := range w.readers {
					tr.close()
				}
				if !w.core.gone {
					w.core.apply(time.Now(), closed{net.ErrClosed})
				}
				synctest.Wait()
			}()
			w.up = []string{"A", "B"}
			for _, n := range []string{"A", "B", "C", "D"} {
				w.source(n, rapid.SampledFrom([]string{"06", "06", "05", "04"}).Draw(rt, "wire of "+n))
			}
			w.hedges()
			w.rank(w.up...)
			w.join("r0", live())
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				w.hedgeStep()
				synctest.Wait()
				w.invariants()
				if w.core.gone {
					return
				}
			}
			w.settle()
		})
	})
}

func (w *world) hedgeStep() {
	switch rapid.SampledFrom([]string{
		"other", "other", "flow", "silent", "heard", "quiet", "drill", "drill", "hedge", "hedge", "end", "full", "suspect",
	}).Draw(w.t, "kind") {
	case "other":
		w.step()
	case "flow":
		w.flow()
	case "drill": // what hedges are for
		w.flow()
		if c := w.servingCopy(); c != nil {
			c.of.deaf = rapid.Bool().Draw(w.t, "the session is silent too")
			w.pass(time.Duration(rapid.SampledFrom([]int{450, 600, 800}).Draw(w.t, "ms")) * time.Millisecond)
		}
	case "hedge":
		if c := w.copies[w.core.hedge.copy]; c != nil {
			w.deliver(c, w.edge+rapid.Uint64Range(0, 1).Draw(w.t, "ahead"), 2)
		}
	case "end":
		if c := w.copies[w.core.hedge.copy]; c != nil && w.core.hedge.on {
			w.finishCopy(c, rapid.SampledFrom([]error{errTest, net.ErrClosed}).Draw(w.t, "how"))
		}
	case "silent":
		w.sources[w.any()].deaf = true
	case "heard":
		w.sources[w.any()].deaf = false
		w.beat()
	case "quiet":
		w.pass(time.Duration(rapid.SampledFrom([]int{100, 400, 600, 900, 3000, 11000}).Draw(w.t, "ms")) * time.Millisecond)
	case "full":
		if w.full = !w.full; !w.full && w.core.hedge.wanted {
			w.do(hedgeGranted{})
		}
	case "suspect":
		w.sources[w.any()].link.suspicious.Store(true)
		w.do(tick{})
	}
}

// flow has the serving copy bring a group every 33 ms.
func (w *world) flow() {
	for range 20 {
		c := w.servingCopy()
		if c == nil || c.of.deaf || w.core.gone {
			return
		}
		w.edge++
		w.deliver(c, w.edge, groupSize(w.edge))
		w.pass(33 * time.Millisecond)
	}
}

// servingCopy is what readers get frames from as far as the core knows; nil = nothing.
func (w *world) servingCopy() *scriptedCopy {
	if u := w.core.in(serving); u != nil {
		return w.copies[u.id]
	}
	return nil
}
