package origin

import (
	"testing"

	"github.com/moqmesh/moqmesh/route"
)

// comes and goes change the audience.
func (r *coreRig) comes(peer route.Hop) {
	r.core.who.add(peer)
	r.tellDemand()
}

func (r *coreRig) goes(peer route.Hop) {
	r.core.who.remove(peer)
	r.tellDemand()
}

func TestCoreAudience(t *testing.T) {
	examples{
		"a route through a reader is not used while there is another": func(r *coreRig) {
			r.serving("A", "B")
			r.send("A", 8, 0, 4)
			r.comes(r.sources["A"].peer)
			r.expect("info B", "open B 10 2s [(8,5),-)", "update A 10 2s [-,(9,0))", "serve B")
			r.goes(r.sources["A"].peer)
			r.expect("cancel B", "update A 10 2s [-,-)", "serve A")
		},
		"in the middle of its hop list": func(r *coreRig) {
			r.source("A", lite06).hops = hopString([]route.Hop{90, 91, 92})
			r.serving("A", "B")
			r.comes(91)
			r.expect("info B", "open B 10 2s [-,-)", "cancel A", "serve B")
		},
		"for want of another, the reader has to go": func(r *coreRig) {
			r.serving("A", "B")
			r.comes(r.sources["B"].peer)
			r.expect()
			r.rank("B")
			r.expect("expel B", "info B", "expel B", "open B 10 2s [-,-)", "cancel A", "serve B", "expel B")
		},
		"not if the other is refused": func(r *coreRig) {
			r.source("B", lite06).err = errTest
			r.serving("A", "B")
			r.comes(r.sources["A"].peer)
			r.expect("info B", "exclude B", "expel A")
		},
	}.run(t)
}
