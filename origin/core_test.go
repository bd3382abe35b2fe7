package origin

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// examples are the worked examples of the design by number.
type examples map[string]func(r *coreRig)

func (x examples) run(t *testing.T) {
	t.Helper()
	for name, f := range x {
		t.Run(name, func(t *testing.T) { coreTest(t, f) })
	}
}

// serving has A serve a live reader r1, and forgets the effects so far. B and C may stand by.
func (r *coreRig) serving(sources ...string) {
	r.rank(sources...)
	r.join("r1", live())
	r.log = nil
}

func TestCoreAggregate(t *testing.T) {
	examples{
		"X1, X2, X6, X7, X9": func(r *coreRig) {
			r.rank("A")
			r.join("r1", sub(10, 0, "", ""))
			r.expect("info A", "open A 10 0s [-,-)", "serve A")
			r.join("r2", sub(3, 5*time.Second, "", ""))
			r.expect("update A 10 5s [-,-)")
			r.leave("r1")
			r.expect("update A 3 5s [-,-)")
			r.update("r2", sub(3, 30*time.Second, "", ""))
			r.expect("update A 3 10s [-,-)")
			r.leave("r2")
			r.expect("cancel A")
		},
		"X3 start inside a group that is not cached": func(r *coreRig) {
			r.rank("A")
			r.join("r1", sub(0, 0, "4,0", ""))
			r.expect("info A", "open A 0 0s [(4,0),-)", "serve A")
			r.join("r2", sub(0, 0, "2,7", "9,0"))
			r.expect("update A 0 0s [(2,0),-)")
		},
		"X4 a start is cleared": func(r *coreRig) {
			r.rank("A")
			r.join("r1", sub(0, 0, "4,0", ""))
			r.log = nil
			r.join("r2", sub(0, 0, "", ""))
			r.expect("update A 0 0s [-,-)")
		},
		"X4 on moq-lite 05 a start is not cleared": func(r *coreRig) {
			r.source("A", lite05)
			r.rank("A")
			r.join("r1", sub(0, 0, "4,0", ""))
			r.log = nil
			r.join("r2", sub(0, 0, "", ""))
			r.expect()
			r.join("r3", sub(7, 0, "", ""))
			r.expect("update A 7 0s [(4,0),-)")
			r.leave("r2")
			r.leave("r3")
			r.join("r4", sub(0, 0, "3,0", ""))
			r.expect("update A 0 0s [(4,0),-)", "update A 0 0s [(3,0),-)")
			r.leave("r4")
			r.expect() // nor raised
		},
		"an update on moq-lite 05 states the start once it is known": func(r *coreRig) {
			r.source("A", lite05)
			r.rank("A")
			r.join("r1", sub(0, 0, "", ""))
			r.expect("info A", "open A 0 0s [-,-)", "serve A")
			r.join("r2", sub(1, 0, "", ""))
			r.expect("update A 1 0s [-,-)")
			r.start("A", 7)
			r.join("r3", sub(2, 0, "", ""))
			r.expect("update A 2 0s [(7,0),-)")
		},
		"X5 ends": func(r *coreRig) {
			r.rank("A")
			r.join("r1", sub(0, 0, "", "5,0"))
			r.join("r2", sub(0, 0, "", "7,3"))
			r.expect("info A", "open A 0 0s [-,(5,0))", "serve A", "update A 0 0s [-,(8,0))")
		},
		"X8 empty range": func(r *coreRig) {
			r.rank("A")
			r.join("r1", sub(0, 0, "5,0", "5,0"))
			r.expect("info A")
			r.join("r2", sub(0, 0, "", "3,0"))
			r.expect("open A 0 0s [-,(3,0))", "serve A")
			r.leave("r2")
			r.expect("cancel A")
		},
		"a range becomes empty by an update": func(r *coreRig) {
			r.serving("A")
			r.update("r1", sub(0, 0, "5,0", "5,0"))
			r.expect("cancel A")
		},
		"X53 a wire that cannot update is asked without an end": func(r *coreRig) {
			r.source("A", session.Caps{Range: true})
			r.rank("A")
			r.join("r1", sub(0, 0, "", "9,0"))
			r.join("r2", sub(9, 0, "", ""))
			r.expect("info A", "open A 0 0s [-,-)")
		},
		"moq-lite 02 has no range": func(r *coreRig) {
			r.source("A", lite02)
			r.rank("A")
			r.join("r1", sub(0, 0, "3,1", "9,0"))
			r.expect("info A", "open A 0 0s [-,-)")
		},
	}.run(t)
}

func TestCoreLoss(t *testing.T) {
	examples{
		"X15 nothing open": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 7, 3)
			r.die("A", "B")
			r.expect("exclude A", "info B", "open B 10 2s [(8,0),-)", "serve B")
			r.whole("B", 8, 2)
			r.got("r1", "7:0..2* 8:0..1*")
		},
		"X16 mid-group": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.die("A", "B")
			r.expect("exclude A", "info B", "open B 10 2s [(8,5),-)", "serve B")
			r.got("r1", "8:0..4")
			r.send("B", 8, 5, 9)
			r.finish("B", 8)
			r.got("r1", "8:0..9*")
		},
		"X16 on moq-lite 05 known frames are dropped": func(r *coreRig) {
			r.source("A", lite05)
			r.source("B", lite05)
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.die("A", "B")
			r.send("B", 8, 0, 9)
			r.finish("B", 8)
			r.got("r1", "8:0..9*")
		},
		"the route goes first": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.rank("B")
			r.done("A", net.ErrClosed)
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve B", "cancel A")
			r.send("B", 8, 5, 5)
			r.got("r1", "8:0..5")
		},
		"X21 the next source starts later": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.die("A", "B")
			r.start("B", 9)
			r.send("B", 9, 0, 0)
			r.pass(1250 * time.Millisecond) // its stream was reset first, see X47
			r.got("r1", "8:0..4! 9:0..0")
		},
		"X22 nothing more of an open group": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.die("A", "B")
			r.pass(1500 * time.Millisecond)
			r.send("B", 9, 0, 29)
			r.got("r1", "8:0..4 9:0..29")
			r.finish("B", 9)
			r.send("B", 10, 0, 20)
			r.got("r1", "8:0..4 9:0..29* 10:0..20")
			r.send("B", 11, 0, 0) // T - S = 11 - 9
			r.got("r1", "8:0..4! 9:0..29* 10:0..20 11:0..0")
		},
		"X46 a group was overtaken": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 8, 2)
			r.whole("A", 10, 2)
			r.die("A", "B")
			r.expect("exclude A", "info B", "open B 10 2s [(9,0),-)", "serve B")
			r.whole("B", 9, 2)
			r.refuses("B", 10, 0, media.ErrDuplicate)
			r.got("r1", "8:0..1* 9:0..1* 10:0..1*")
		},
		"X47 a reset, then the end": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.reset("A", 8)
			r.pass(5 * time.Millisecond)
			r.done("A", errTest)
			r.expect("exclude A", "info B", "open B 10 2s [(8,5),-)", "serve B")
			r.send("B", 8, 5, 6)
			r.got("r1", "8:0..6")
		},
		"X47 a reset alone": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.reset("A", 8)
			r.got("r1", "8:0..4")
			r.pass(1250 * time.Millisecond)
			r.got("r1", "8:0..4!")
			r.expect()
		},
		"X37 no other route": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.die("A")
			r.expect("exclude A", "fail: no route covers the path: the session of the source ended: "+net.ErrClosed.Error())
			if err := r.readers["r1"].ended(); !errors.Is(err, session.ErrUnroutable) || errors.Is(err, net.ErrClosed) {
				r.Errorf("reader ended with %v", err)
			}
		},
		"a source that comes while the last one is lost": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.slow = true
			r.done("A", errTest)
			r.expect("exclude A", "check")
			r.got("r1", "8:0..4")
			r.rank("A", "B")
			r.expect("info B", "open B 10 2s [(8,5),-)", "serve B")
			r.send("B", 8, 5, 6)
			r.do(routesChecked{r.asked})
			r.got("r1", "8:0..6")
			// The answer to an older question says nothing of what was lost later.
			old := r.asked
			r.done("B", errTest)
			r.expect("exclude B", "check")
			r.do(routesChecked{old})
			r.expect()
			r.do(routesChecked{r.asked})
			r.expect("fail: " + errTest.Error())
		},
		"X25 numbers start over": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 500, 1)
			r.die("A", "B")
			r.expect("exclude A", "info B", "open B 10 2s [(501,0),-)", "serve B")
			r.refuses("B", 1, 0, media.ErrBelowStart)
			r.got("r1", "500:0..0*")
		},
		"all that was wanted is here": func(r *coreRig) {
			r.rank("A", "B")
			r.join("r1", sub(0, 2*time.Second, "7,0", "8,0"))
			r.whole("A", 7, 2)
			r.log = nil
			r.die("A", "B")
			r.expect("exclude A", "info B") // an empty range opens nothing
			r.join("r2", sub(0, 2*time.Second, "", ""))
			r.expect("open B 0 2s [(8,0),-)", "serve B")
		},
		"a source that is asked dies": func(r *coreRig) {
			r.source("A", lite06).held = true
			r.rank("A", "B")
			r.join("r1", live())
			r.expect("info A")
			r.do(infoAnswered{r.core.probe.id, media.Info{}, net.ErrClosed})
			r.expect("exclude A", "info B")
			r.join("r1", live())
			r.expect("open B 10 2s [-,-)", "serve B")
		},
	}.run(t)
}
