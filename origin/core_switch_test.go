package origin

import (
	"net"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

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
