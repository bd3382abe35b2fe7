package origin_test

import (
	"errors"
	"testing"

	"github.com/moqmesh/moqmesh/origin"
)

// TestRefusedPrefix: the sources of a prefix that have all refused a track do not hide the next shorter prefix from it,
// while they serve the other tracks alone (R27).
func TestRefusedPrefix(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		wide, deep, viewer := r.peer("wide"), r.peer("deep"), r.peer("viewer")
		wide.announce("a")
		deep.announce("a/b")
		v := viewer.view("a/b/c", "v")
		deep.only()
		v.close()
		deep.infoErr = errors.New("not here")
		w := viewer.view("a/b/c", "w")
		if got := wide.only().req.Path; got != "a/b/c" || len(wide.infos) != 1 || len(deep.infos) != 2 {
			r.Errorf("asked for %q; questions %v and %v", got, deep.infos, wide.infos)
		}
		w.close()
	})
}
