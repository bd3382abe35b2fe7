package origin

import (
	"errors"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

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
		"F24 a source without timestamps goes on with the publisher's clock": func(r *coreRig) {
			b := r.source("B", lite04)
			b.info.Unstamped, b.ahead = true, 1_700_000_000_000
			r.serving("A", "B")
			r.send("A", 7, 0, 1)
			r.send("A", 8, 0, 1)
			r.die("A", "B")
			r.send("B", 8, 2, 2)
			r.send("B", 9, 0, 0)
			r.pass(1500 * time.Millisecond) // from now on age decides about 7
			r.send("B", 7, 2, 2)
			r.got("r1", "7:0..2 8:0..2 9:0..0")
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
