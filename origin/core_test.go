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

func TestCoreSwitch(t *testing.T) {
	x17 := func(r *coreRig) {
		r.serving("A")
		r.send("A", 8, 0, 4)
		r.rank("C", "A")
		r.expect("info C", "open C 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve C")
	}
	examples{
		"X17 a cheaper route": func(r *coreRig) {
			x17(r)
			r.send("A", 8, 5, 5)
			r.send("C", 8, 5, 6)
			r.send("A", 8, 6, 7)
			r.got("r1", "8:0..7")
			r.send("C", 9, 0, 1)
			r.refuses("A", 9, 0, media.ErrPastEnd)
			r.finish("A", 8)
			r.expect("cancel A")
			r.got("r1", "8:0..7* 9:0..1")
		},
		"X18 two groups open": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.send("A", 9, 0, 1)
			r.rank("B", "A")
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(10,0))", "serve B")
			r.finish("A", 8)
			r.expect()
			r.send("B", 9, 0, 3)
			r.finish("A", 9) // short of what B has brought: not an end
			r.expect("cancel A")
			r.finish("B", 9)
			r.send("B", 10, 0, 0)
			r.got("r1", "8:0..4* 9:0..3* 10:0..0")
		},
		"X19 the old copy is done first": func(r *coreRig) {
			x17(r)
			r.send("A", 8, 5, 9)
			r.finish("A", 8)
			r.expect("cancel A")
			r.refuses("C", 8, 5, media.ErrDuplicate)
			r.got("r1", "8:0..9*")
		},
		"X20 the old copy dies": func(r *coreRig) {
			x17(r)
			r.die("A", "C")
			r.expect("cancel A") // its streams go first
			r.send("C", 8, 5, 6)
			r.got("r1", "8:0..6")
		},
		"X48 the new copy dies": func(r *coreRig) {
			x17(r)
			r.send("C", 8, 5, 6)
			r.die("C", "A")
			r.expect("exclude C", "update A 10 2s [-,-)", "serve A")
			r.send("A", 8, 5, 8)
			r.send("A", 9, 0, 0)
			r.got("r1", "8:0..8 9:0..0")
		},
		"X48 the new copy dies after a group of the old one was stopped": func(r *coreRig) {
			x17(r)
			r.send("C", 8, 5, 6)
			r.refuses("A", 9, 0, media.ErrPastEnd)
			r.die("C", "A")
			r.expect("exclude C", "cancel A", "open A 10 2s [(8,7),-)", "serve A")
			r.send("A", 8, 7, 8)
			r.got("r1", "8:0..8")
		},
		"X52 overlapping frames": func(r *coreRig) {
			x17(r)
			r.send("C", 8, 7, 8)
			r.got("r1", "8:0..4")
			r.send("A", 8, 5, 6)
			r.got("r1", "8:0..8")
			r.send("A", 8, 7, 7)
			r.finish("A", 8)
			r.got("r1", "8:0..8")
			r.finish("C", 8)
			r.got("r1", "8:0..8*")
		},
		"X24 another publisher, newer": func(r *coreRig) {
			r.serving("A")
			r.whole("A", 8, 2)
			r.rank("B", "A")
			r.expect("info B", "open B 10 2s [(9,0),-)", "cancel A", "serve B")
		},
		"X26 a price goes up, and down again": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.rank("B", "A")
			r.rank("A", "B")
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve B",
				"cancel B", "update A 10 2s [-,-)", "serve A")
		},
		"X27 GOAWAY": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.rank("B", "A!")
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve B")
		},
		"GOAWAY of the only source": func(r *coreRig) {
			r.serving("A")
			r.rank("A!")
			r.join("r2", live()) // tracks that run take further readers
			r.expect()
			r.leave("r1")
			r.leave("r2")
			r.expect("cancel A")
			r.join("r3", live()) // a new request must come from elsewhere
			r.expect("fail: going away")
		},
		"a draining route is not replaced by what ranks behind it": func(r *coreRig) {
			r.rank("A!", "B", "|", "C")
			r.join("r1", live())
			r.expect("fail: going away")
		},
		"X28 withdrawn, and another stands by": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.rank("B")
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve B")
			r.send("A", 8, 5, 6)
			r.finish("A", 8)
			r.expect("cancel A")
			r.got("r1", "8:0..6*")
		},
		"X31 a reader joins during the overlap": func(r *coreRig) {
			x17(r)
			r.join("r2", sub(0, 0, "", ""))
			r.expect()
			r.send("C", 8, 5, 6)
			r.got("r2", "8:0..6")
		},
		"X49 never more than three": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("B", "A")
			r.send("B", 8, 5, 5)
			r.rank("C", "B", "A")
			r.send("C", 8, 6, 6)
			r.log = nil
			r.rank("D", "C", "B", "A")
			r.expect("info D", "cancel A", "open D 10 2s [(8,7),-)", "update C 10 2s [(8,6),(9,0))", "serve D")
			r.send("D", 8, 7, 7)
			r.got("r1", "8:0..7")
		},
		"X55 the last source is asked before anything is given up": func(r *coreRig) {
			r.source("D", lite06)
			x17(r)
			r.send("C", 9, 0, 2)
			r.rank("C", "D")
			r.log = nil
			r.die("C", "D")
			r.expect("exclude C", "info D", "open D 10 2s [(8,5),-)", "serve D")
			r.send("D", 8, 5, 5)
			r.send("D", 9, 3, 3)
			r.got("r1", "8:0..5 9:0..3")
		},
		"X55 its streams were not reset": func(r *coreRig) {
			r.source("D", lite06)
			x17(r)
			r.send("C", 9, 0, 2)
			r.rank("C", "D")
			r.cut("C", net.ErrClosed)
			r.rank("D")
			r.send("D", 8, 5, 5)
			r.send("D", 9, 3, 3)
			r.got("r1", "8:0..5 9:0..3")
		},
		"an error of the old copy is no refusal": func(r *coreRig) {
			x17(r)
			r.cut("A", errTest)
			r.log = nil
			r.die("C", "A")
			r.expect("exclude C", "open A 10 2s [(8,5),-)", "serve A")
		},
		"X51 a reader below the floor": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 100, 2)
			r.die("A", "B")
			r.start("B", 101)
			r.log = nil
			r.join("r2", sub(10, 2*time.Second, "100,0", ""))
			r.expect()
			r.got("r2", "100:0..1*")
			r.join("r3", sub(10, 2*time.Second, "90,0", ""))
			r.expect("update B 10 2s [(90,0),-)")
		},
		"a request that waits follows a re-selection": func(r *coreRig) {
			r.source("B", lite06).held = true
			r.serving("A", "B")
			r.die("A", "B")
			r.expect("exclude A", "info B")
			r.rank("C", "B")
			r.expect("cancel info", "info C", "open C 10 2s [-,-)", "serve C")
		},
		"a switch is given up when the old source is best again": func(r *coreRig) {
			r.source("B", lite06).held = true
			r.serving("A", "B")
			r.rank("B", "A")
			r.rank("A", "B")
			r.expect("info B", "cancel info")
		},
	}.run(t)
}

func TestCoreRefusals(t *testing.T) {
	differ := func(s *scripted, f func(*media.Info)) { f(&s.info) }
	examples{
		"X32 properties differ": func(r *coreRig) {
			differ(r.source("B", lite06), func(i *media.Info) { i.Timescale = 48000 })
			r.serving("A", "B", "C")
			r.send("A", 8, 0, 4)
			r.die("A", "B", "C")
			r.expect("exclude A", "info B", "exclude B", "info C", "open C 10 2s [(8,5),-)", "serve C")
			r.send("C", 8, 5, 5)
			r.got("r1", "8:0..5")
		},
		"X33 none is compatible": func(r *coreRig) {
			differ(r.source("B", lite06), func(i *media.Info) { i.Timescale = 48000 })
			r.source("C", lite06).err = session.ErrNotFound
			r.serving("A", "B", "C")
			r.die("A", "B", "C")
			r.expect("exclude A", "info B", "exclude B", "info C", "exclude C",
				"fail: no compatible source: timescale is 48000, not 1000")
			if err := r.readers["r1"].ended(); !errors.Is(err, session.ErrUnsupported) {
				r.Errorf("reader ended with %v", err)
			}
		},
		"X33 asked again on the same front": func(r *coreRig) {
			fixed := testInfo()
			fixed.Timescale = 90000
			r.core.fixed = &fixed
			r.rank("B")
			r.join("r1", live())
			r.expect("info B", "exclude B", "fail: no compatible source: timescale is 1000, not 90000")
		},
		"X34 retention": func(r *coreRig) {
			differ(r.source("B", lite06), func(i *media.Info) { i.MaxAge = 7 * time.Second })
			r.serving("A", "B")
			r.die("A", "B")
			r.expect("exclude A", "info B", "exclude B", "fail: no compatible source: retention window is 7s, not 10s")
		},
		"X34 priority": func(r *coreRig) {
			differ(r.source("B", lite06), func(i *media.Info) { i.Priority = 7 })
			r.serving("A", "B")
			r.die("A", "B")
			r.expect("exclude A", "info B", "exclude B", "fail: no compatible source: priority is 7, not 127")
		},
		"X34 group order": func(r *coreRig) {
			differ(r.source("A", lite06), func(i *media.Info) { i.Order = media.OrderAscending })
			differ(r.source("B", lite06), func(i *media.Info) { i.Order = media.OrderDescending })
			r.serving("A", "B", "C")
			r.die("A", "B", "C")
			r.expect("exclude A", "info B", "exclude B", "info C", "open C 10 2s [-,-)", "serve C")
		},
		"X35 equal after the cap": func(r *coreRig) {
			r.core.maxAge = 5 * time.Second
			differ(r.source("B", lite06), func(i *media.Info) { i.MaxAge = 7 * time.Second })
			r.serving("A", "B")
			r.die("A", "B")
			r.expect("exclude A", "info B", "open B 10 2s [-,-)", "serve B")
		},
		"X36 not found": func(r *coreRig) {
			r.source("B", lite06).err = session.ErrNotFound
			r.serving("A", "B", "C")
			r.die("A", "B", "C")
			r.expect("exclude A", "info B", "exclude B", "info C", "open C 10 2s [-,-)", "serve C")
		},
		"X36 all refuse": func(r *coreRig) {
			r.source("B", lite06).err = errTest
			r.source("C", lite06).err = session.ErrNotFound
			r.rank("B", "C")
			r.join("r1", live())
			r.expect("info B", "exclude B", "info C", "exclude C", "fail: not found")
		},
		"the subscription is refused": func(r *coreRig) {
			r.serving("A", "B")
			r.done("A", session.ErrNotFound)
			r.expect("exclude A", "info B", "open B 10 2s [-,-)", "serve B")
			r.done("B", errTest)
			r.expect("exclude B", "fail: scripted refusal")
		},
		"a refusal of a better route leaves the old copy alone": func(r *coreRig) {
			r.source("B", lite06).err = session.ErrNotFound
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("B", "A")
			r.expect("info B", "exclude B")
			r.send("A", 8, 5, 5)
			r.send("A", 9, 0, 0)
			r.got("r1", "8:0..5 9:0..0")
		},
		"on moq-lite 04 a refusal comes with the subscription": func(r *coreRig) {
			r.source("B", lite04).info = testInfo()
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("B", "A")
			r.done("B", session.ErrNotFound)
			r.expect("info B", "open B 10 2s [(8,5),-)", "exclude B")
			r.send("A", 8, 5, 5)
			r.send("A", 9, 0, 0)
			r.got("r1", "8:0..5 9:0..0")
		},
		"F25 a route that comes back is asked again": func(r *coreRig) {
			b := r.source("B", lite06)
			b.err = session.ErrNotFound
			r.serving("A")
			r.rank("B", "A")
			r.rank("A")
			b.err, b.id = nil, 99
			r.rank("B", "A")
			r.expect("info B", "exclude B", "info B", "open B 10 2s [-,-)", "cancel A", "serve B")
			r.rank("A")
			r.rank("A")
			if n, m := len(r.core.out), len(r.core.infos); n != 0 || m != 1 {
				r.Errorf("%d exclusions and %d answers are kept", n, m)
			}
		},
		"F25 one that leaves does not refuse": func(r *coreRig) {
			r.serving("A", "B")
			r.done("A", session.ErrGoingAway)
			r.expect("exclude A", "info B", "open B 10 2s [-,-)", "serve B")
			if why := r.core.out[r.sources["A"].id].why; why != closing {
				r.Errorf("A is out: %d", why)
			}
		},
		"R27 the next prefix decides once the first is refused": func(r *coreRig) {
			r.source("B", lite06).err = errTest
			r.rank("B", "|", "C")
			r.join("r1", live())
			r.expect("info B", "exclude B", "info C", "open C 10 2s [-,-)", "serve C")
		},
		"the withdrawn copy counts until it ends": func(r *coreRig) {
			differ(r.source("B", lite06), func(i *media.Info) { i.Priority = 7 })
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("B")
			r.expect("info B", "exclude B")
			r.send("A", 9, 0, 0)
			r.got("r1", "8:0..4 9:0..0")
			r.done("A", errTest)
			r.expect("exclude A", "fail: no compatible source: priority is 7, not 127")
		},
	}.run(t)
}

func TestCoreEnds(t *testing.T) {
	cleanEnd := func(r *coreRig, name string) {
		r.Helper()
		if err := r.readers[name].ended(); err == nil || err.Error() != "EOF" {
			r.Errorf("%s ended with %v", name, err)
		}
	}
	examples{
		"the only source ends": func(r *coreRig) {
			r.serving("A")
			r.whole("A", 7, 2)
			r.send("A", 8, 0, 1)
			r.end("A", 9)
			r.finish("A", 8)
			r.done("A", nil)
			r.expect()
			r.got("r1", "7:0..1* 8:0..1*")
			cleanEnd(r, "r1")
		},
		"on moq-lite 04 a clean end names no group": func(r *coreRig) {
			r.source("A", lite04)
			r.serving("A")
			r.whole("A", 7, 2)
			r.done("A", nil)
			r.got("r1", "7:0..1*")
			cleanEnd(r, "r1")
		},
		"a track without groups": func(r *coreRig) {
			r.serving("A")
			r.end("A", 0)
			r.done("A", nil)
			cleanEnd(r, "r1")
		},
		"X50 the old copy ends": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("C", "A")
			r.log = nil
			r.end("A", 9)
			r.send("C", 9, 0, 0)
			r.done("A", nil)
			r.expect()
			r.got("r1", "8:0..4 9:0..0")
		},
		"X57 another publisher goes on": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 7, 2)
			r.end("A", 8)
			r.expect("info B", "open B 10 2s [(8,0),-)", "cancel A", "serve B")
			r.rank("B")
			r.whole("B", 8, 2)
			r.got("r1", "7:0..1* 8:0..1*")
			if err := r.readers["r1"].ended(); err != nil {
				r.Errorf("r1 ended with %v", err)
			}
		},
		"X58 another path to the same publisher": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 7, 2)
			r.end("A", 8)
			r.end("B", 8)
			r.done("B", nil)
			r.expect("info B", "open B 10 2s [(8,0),-)", "cancel A", "serve B")
			cleanEnd(r, "r1")
		},
		"X39 the source dies after its end, short of the last group": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 20, 0, 1)
			r.end("A", 21)
			r.expect("info B", "open B 10 2s [(20,2),-)", "update A 10 2s [-,(21,0))", "serve B")
			r.die("A", "B")
			r.send("B", 20, 2, 3)
			r.finish("B", 20)
			r.end("B", 21)
			r.done("B", nil)
			r.got("r1", "20:0..3*")
			cleanEnd(r, "r1")
		},
		"the second source does not have the track": func(r *coreRig) {
			r.source("B", lite06).err = session.ErrNotFound
			r.serving("A", "B")
			r.whole("A", 7, 2)
			r.end("A", 8)
			r.expect("info B", "exclude B")
			r.done("A", nil)
			cleanEnd(r, "r1")
		},
		"the second source dies after it has gone on": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 7, 2)
			r.end("A", 8)
			r.whole("B", 8, 1)
			r.log = nil
			r.die("B", "A")
			r.expect("exclude B", "fail: no route covers the path: the session of the source ended: "+net.ErrClosed.Error())
		},
		"a withdrawn copy goes on though another source has ended": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("C", "A")
			r.end("A", 9)
			r.rank("A")
			r.send("C", 9, 0, 0)
			r.got("r1", "8:0..4 9:0..0")
		},
		"an old copy finishes below the end": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("C", "A")
			r.end("C", 9)
			r.end("A", 9)
			r.done("C", nil)
			r.send("A", 8, 5, 6)
			r.finish("A", 8)
			r.got("r1", "8:0..6*")
			cleanEnd(r, "r1")
		},
		"the end is known while an old copy finishes": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("C")
			r.end("C", 9)
			r.done("C", nil)
			if end, ok := r.readers["r1"].media.End(); end != 9 || !ok {
				r.Errorf("the end is %d %v", end, ok)
			}
			r.send("A", 8, 5, 6)
			r.finish("A", 8)
			r.got("r1", "8:0..6*")
			cleanEnd(r, "r1")
		},
		"later switches do not reopen it": func(r *coreRig) {
			r.serving("A")
			r.whole("A", 7, 2)
			r.end("A", 8)
			r.done("A", nil)
			r.rank("B", "A")
			r.expect("part")
			r.join("r2", live())
			r.got("r2", "7:0..1*")
			cleanEnd(r, "r2")
			r.leave("r1")
			r.leave("r2")
			r.pass(media.Linger)
			r.expect("forget")
		},
		"X38 withdrawn while its session lives": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank()
			r.send("A", 9, 0, 1)
			r.expect()
			r.got("r1", "8:0..4 9:0..1")
			r.finish("A", 8)
			r.finish("A", 9)
			r.end("A", 10)
			r.done("A", nil)
			cleanEnd(r, "r1")
		},
		"X38, then its session dies": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank()
			r.done("A", net.ErrClosed)
			r.expect("exclude A", "fail: no route covers the path: the session of the source ended: "+net.ErrClosed.Error())
		},
		"X54 a route appears while it drains": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank()
			r.rank("B")
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve B")
		},
		"F37 a living old copy finishes before the track ends": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank("B")
			r.log = nil
			r.die("B")
			r.expect("exclude B")
			r.send("A", 8, 5, 6)
			r.finish("A", 8)
			r.expect("cancel A", "fail: no route covers the path: the session of the source ended: "+net.ErrClosed.Error())
			r.got("r1", "8:0..6*")
		},
		"readers of an empty range end with the last route": func(r *coreRig) {
			r.rank("A")
			r.join("r1", sub(0, 0, "5,0", "5,0"))
			r.log = nil
			r.rank()
			r.expect("fail: no route covers the path")
		},
	}.run(t)
}

func TestCoreLinger(t *testing.T) {
	away := func(r *coreRig, d time.Duration) {
		r.Helper()
		r.serving("A")
		for g := uint64(3); g < 8; g++ {
			r.whole("A", g, 2)
		}
		r.send("A", 8, 0, 4)
		r.leave("r1")
		r.expect("cancel A")
		r.pass(d)
	}
	long := sub(10, 10*time.Second, "", "")
	examples{
		"X40 back within the linger": func(r *coreRig) {
			away(r, 20*time.Second)
			r.join("r2", long)
			r.expect("open A 10 10s [(8,5),-)", "serve A")
			r.got("r2", "")
			r.start("A", 8)
			r.send("A", 8, 5, 5)
			r.got("r2", "3:0..1* 4:0..1* 5:0..1* 6:0..1* 7:0..1* 8:0..5")
		},
		"X41 the source has moved on": func(r *coreRig) {
			away(r, 20*time.Second)
			r.join("r2", long)
			r.start("A", 60)
			g, f := r.core.track.Fetch(5, 0)
			if f != nil {
				r.Error("group 5 is not in the cache any more")
			}
			g.Close()
			r.send("A", 60, 0, 0)
			r.got("r2", "60:0..0")
		},
		"X42 too late": func(r *coreRig) {
			away(r, 30*time.Second)
			r.expect("forget")
			if !r.core.gone {
				r.Error("the track is still there")
			}
		},
		"29 s, 100 times": func(r *coreRig) {
			r.serving("A")
			for range 100 {
				r.leave("r1")
				r.pass(29 * time.Second)
				r.join("r1", live())
				r.expect("cancel A", "open A 10 2s [-,-)", "serve A")
			}
		},
		"from the end of the newest when all is complete": func(r *coreRig) {
			r.serving("A")
			r.whole("A", 7, 2)
			r.leave("r1")
			r.log = nil
			r.join("r2", live())
			r.expect("open A 10 2s [(7,2),-)", "serve A")
		},
		"the route goes meanwhile": func(r *coreRig) {
			r.serving("A")
			r.leave("r1")
			r.log = nil
			r.rank()
			r.expect("forget")
		},
		"another source meanwhile": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.leave("r1")
			r.log = nil
			r.rank("B")
			r.expect()
			r.join("r2", long)
			r.expect("info B", "open B 10 10s [(8,5),-)", "serve B")
			r.send("B", 8, 5, 6)
			r.got("r2", "8:0..6")
		},
		"published in this process: forgotten at once": func(r *coreRig) {
			r.source("A", lite06).local = true
			r.serving("A")
			r.leave("r1")
			r.expect("cancel A", "forget")
		},
		"evicted": func(r *coreRig) {
			r.serving("A")
			r.do(evicted{})
			r.expect()
			r.leave("r1")
			r.do(evicted{})
			r.expect("cancel A", "forget")
		},
		"a request that is given up leaves nothing": func(r *coreRig) {
			r.source("A", lite06).held = true
			r.rank("A")
			r.join("r1", live())
			r.expect("info A")
			r.waiting = 0
			r.tellDemand()
			r.expect("cancel info", "forget")
		},
		"the origin closes": func(r *coreRig) {
			r.serving("A")
			r.do(closed{net.ErrClosed})
			r.expect("cancel A", "fail: "+net.ErrClosed.Error())
		},
	}.run(t)
}
