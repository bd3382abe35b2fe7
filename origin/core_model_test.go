package origin

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// world is a broadcast that several sources have copies of, and a core that reads it through whatever the test lets happen
// to them. Group g has g%4+1 frames.
type world struct {
	*coreRig
	t     *rapid.T
	edge  uint64 // the newest group there is
	up    []string
	ids   uint64
	names int
}

// inBubble hides the deadline of a test, which must not be asked for in a bubble.
type inBubble struct{ *testing.T }

func groupSize(g uint64) uint64 { return g%4 + 1 }

// TestCoreModel throws random changes at a core and checks, at every step, the invariants of the design (1 to 5 of its
// list), and in the end that readers got everything from what was left.
func TestCoreModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			w := &world{coreRig: newCoreRig(rt), t: rt, edge: 10}
			defer func() {
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
			w.rank(w.up...)
			w.join("r0", live())
			for range rapid.IntRange(1, 60).Draw(rt, "steps") {
				w.step()
				w.invariants()
				if w.core.gone {
					return
				}
			}
			w.settle()
		})
	})
}

// source makes a source with the properties of all others: on moq-lite 04 it does not know better.
func (w *world) source(name, wire string) {
	caps := lite06
	switch wire {
	case "05":
		caps = lite05
	case "04":
		caps = lite04
	}
	w.coreRig.source(name, caps)
}

func (w *world) step() {
	switch rapid.SampledFrom([]string{
		"send", "send", "send", "send", "send", "send", "edge", "edge", "rank", "rank", "die", "withdraw", "return", "return",
		"join", "leave", "reset", "refuse", "time", "hold", "answer",
	}).Draw(w.t, "step") {
	case "send":
		w.sendSome()
	case "edge":
		w.edge++
	case "rank":
		w.up = rapid.Permutation(w.up).Draw(w.t, "rank")
		w.rank(w.up...)
	case "hold":
		w.sources[w.any()].held = true
	case "answer":
		w.answer(w.any())
	case "die":
		if c := w.pick(); c != nil && (len(w.up) > 1 || rapid.Bool().Draw(w.t, "the last one")) {
			w.finishCopy(c, net.ErrClosed)
			w.drop(c.of.name)
		}
	case "refuse":
		if c := w.pick(); c != nil && len(w.up) > 1 {
			w.finishCopy(c, errTest)
		}
	case "withdraw":
		if len(w.up) > 1 {
			w.drop(w.up[rapid.IntRange(0, len(w.up)-1).Draw(w.t, "which")])
		}
	case "return":
		for _, n := range []string{"A", "B", "C", "D"} {
			if !slices.Contains(w.up, n) {
				w.ids++
				w.sources[n].id = sourceID(100 + w.ids)
				at := rapid.IntRange(0, len(w.up)).Draw(w.t, "at")
				w.up = slices.Insert(w.up, at, n)
				w.rank(w.up...)
				break
			}
		}
	case "join":
		w.names++
		w.join(fmt.Sprint("r", w.names), sub(uint8(w.names%7), time.Duration(w.names%3)*time.Second, "", ""))
	case "leave":
		for name := range w.readers {
			if len(w.readers) > 1 && name != "r0" {
				w.leave(name)
				break
			}
		}
	case "reset":
		if c := w.pick(); c != nil {
			for g, wr := range c.writers {
				wr.Abort(errTest)
				delete(c.writers, g)
				w.do(copyMoved{w.idOf(c)})
				break
			}
		}
	case "time":
		w.pass(time.Duration(rapid.IntRange(1, 6).Draw(w.t, "quarters")) * 250 * time.Millisecond)
	}
	w.log = nil
	synctest.Wait()
}

// any names a source.
func (w *world) any() string {
	return rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(w.t, "source")
}

func (w *world) drop(name string) {
	w.up = slices.DeleteFunc(slices.Clone(w.up), func(n string) bool { return n == name })
	w.rank(w.up...)
}

func (w *world) idOf(c *scriptedCopy) copyID {
	for id, d := range w.copies {
		if c == d {
			return id
		}
	}
	return 0
}

// open lists the copies that are subscribed upstream, in the order of asking.
func (w *world) open() []*scriptedCopy {
	var out []*scriptedCopy
	for _, u := range w.core.copies {
		if c := w.copies[u.id]; c != nil && u.phase != reserved {
			out = append(out, c)
		}
	}
	return out
}

func (w *world) pick() *scriptedCopy {
	open := w.open()
	if len(open) == 0 {
		return nil
	}
	return open[rapid.IntRange(0, len(open)-1).Draw(w.t, "copy")]
}

func (w *world) finishCopy(c *scriptedCopy, err error) {
	for g, wr := range c.writers {
		wr.Abort(err)
		delete(c.writers, g)
	}
	w.do(copyDone{w.idOf(c), err})
}

// sendSome has a copy deliver some frames of a group at or above its start.
func (w *world) sendSome() {
	c := w.pick()
	if c == nil {
		return
	}
	g := w.edge - rapid.Uint64Range(0, 2).Draw(w.t, "behind")
	w.deliver(c, g, rapid.Uint64Range(1, groupSize(g)).Draw(w.t, "frames"))
}

// deliver sends up to n frames of group g on the stream of a copy, and ends it after the last frame of the group.
func (w *world) deliver(c *scriptedCopy, g, n uint64) {
	defer w.do(copyMoved{w.idOf(c)})
	wr := c.writers[g]
	if wr == nil {
		if _, sent := c.next[g]; sent {
			return // a publisher sends a group once
		}
		first, ok := w.firstFrame(c, g)
		if !ok {
			return
		}
		var err error
		c.next[g] = first
		if wr, err = c.media.Group(g, first); err != nil {
			return
		}
		c.writers[g] = wr
	}
	for ; n > 0 && c.next[g] < groupSize(g); n-- {
		f := c.next[g]
		if err := wr.WriteFrame(g*1000+f*33, fmt.Appendf(nil, "%d:%d", g, f)); err != nil {
			delete(c.writers, g)
			return
		}
		c.next[g]++
	}
	if c.next[g] == groupSize(g) {
		wr.Finish()
		delete(c.writers, g)
	}
}

// firstFrame is where a source begins a group, if it sends it at all: what was asked decides.
func (w *world) firstFrame(c *scriptedCopy, g uint64) (uint64, bool) {
	u := w.core.byID(w.idOf(c))
	if u == nil {
		return 0, false
	}
	switch s := u.sent.Start; {
	case s == nil:
		return 0, true
	case g < s.Group:
		return 0, false
	case g == s.Group && u.src.caps.FrameBounds:
		return min(s.Frame, groupSize(g)), true
	}
	return 0, true
}

// invariants checks what readers have got so far: every frame once and in order, and whole groups only as such.
func (w *world) invariants() {
	for name, tr := range w.readers {
		tr.mu.Lock()
		for g, got := range tr.got {
			for f, text := range got {
				if text != fmt.Sprintf("%d:%d", g, f) {
					w.t.Fatalf("%s, group %d: %v", name, g, got)
				}
			}
			if tr.ends[g] == io.EOF.Error() && uint64(len(got)) != groupSize(g) {
				w.t.Fatalf("%s, group %d ended after %v", name, g, got)
			}
		}
		if tr.err != nil && !w.core.gone {
			w.t.Fatalf("%s ended with %v", name, tr.err)
		}
		tr.mu.Unlock()
	}
	if t, ok := w.core.pick(); ok {
		u := w.core.from(t.id)
		if u == nil || u.phase == old {
			w.t.Fatalf("the best source %s is not asked", t.path)
		}
	}
}

// settle lets what is left deliver a new group, which every reader must get.
func (w *world) settle() {
	if _, ok := w.core.pick(); !ok {
		return
	}
	for name := range w.sources {
		w.answer(name)
	}
	w.edge += 3
	for range 3 {
		for _, c := range w.open() {
			w.deliver(c, w.edge, groupSize(w.edge))
		}
	}
	synctest.Wait()
	w.invariants()
	for name, tr := range w.readers {
		tr.mu.Lock()
		if n := uint64(len(tr.got[w.edge])); n != groupSize(w.edge) || tr.ends[w.edge] != io.EOF.Error() {
			w.t.Fatalf("%s has %d frames of the last group, ended %q", name, n, tr.ends[w.edge])
		}
		tr.mu.Unlock()
	}
}
