package origin

import (
	"net"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/session"
)

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
		"X38, and it falls silent": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.rank()
			r.pass(9 * time.Second)
			r.send("A", 9, 0, 0)
			for f := uint64(1); f < 5; f++ { // what flows goes on, slow as it may be
				r.pass(9750 * time.Millisecond)
				r.send("A", 9, f, f)
			}
			r.expect()
			r.pass(9750 * time.Millisecond)
			r.expect()
			r.pass(10250 * time.Millisecond)
			r.expect("cancel A", "fail: no route covers the path")
		},
		"X38, a circle: the end was declared, and what is left is silent": func(r *coreRig) {
			r.serving("A", "B")
			r.whole("A", 7, 2)
			r.end("A", 8)
			r.done("A", nil)
			r.rank("B")
			r.rank()
			r.log = nil
			r.pass(750 * time.Millisecond)
			r.expect()
			r.pass(500 * time.Millisecond)
			r.expect("cancel B")
			r.got("r1", "7:0..1*")
			cleanEnd(r, "r1")
		},
		"stale routes are waited for, mid-group": func(r *coreRig) {
			r.serving("A")
			r.send("A", 8, 0, 4)
			r.suspend()
			r.done("A", net.ErrClosed)
			r.pass(500 * time.Millisecond)
			r.expect("exclude A")
			r.rank("B")
			r.expect("info B", "open B 10 2s [(8,5),-)", "serve B")
			r.send("B", 8, 5, 6)
			r.finish("B", 8)
			r.got("r1", "8:0..6*")
		},
		"stale routes are waited for after a declared end": func(r *coreRig) {
			r.serving("A")
			r.whole("A", 7, 2)
			r.suspend()
			r.end("A", 8)
			r.done("A", nil)
			r.pass(1500 * time.Millisecond)
			r.rank("B")
			r.expect("info B", "open B 10 2s [(8,0),-)", "serve B")
			r.whole("B", 8, 2)
			r.got("r1", "7:0..1* 8:0..1*")
		},
		"stale routes that go end it": func(r *coreRig) {
			r.serving("A")
			r.whole("A", 7, 2)
			r.suspend()
			r.end("A", 8)
			r.done("A", nil)
			r.expect()
			r.rank()
			r.expect()
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
