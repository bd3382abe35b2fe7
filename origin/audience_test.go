package origin_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/session"
)

// A relay that has another way to us reads what everybody reads, unless its own way is the best there is.
func TestSharedFront(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		near, far, viewer := r.peer("near"), r.peer("far"), r.peer("viewer")
		near.announce("room", 9)
		far.announce("room", 9, 8, 7)
		v, w := viewer.view("room", "v"), far.view("room", "v")
		synctest.Wait()
		if got := r.o.Tracks(); len(got) != 1 || got[0].Readers != 2 || got[0].Copies != 1 || got[0].Without != 0 {
			r.Errorf("logical tracks: %+v", got)
		}
		s := near.only()
		if err := s.send(1, 0, 1); err != nil {
			r.Error(err)
		}
		// The way that is left leads through one of the readers. It loses its subscription, the other goes on.
		near.die()
		if err := w.ended(); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("far ended with %v", err)
		}
		w.close()
		next := far.only()
		if next.req.Start == nil || *next.req.Start != (media.Position{Group: 1, Frame: 2}) {
			r.Errorf("far is asked from %+v", next.req.Start)
		}
		if err := v.ended(); err != nil {
			r.Errorf("the viewer ended with %v", err)
		}
		v.close()
	})
}

// A publisher that watches its own broadcast has a front of its own, and moves nobody (X30).
func TestOwnBroadcast(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		first, second, viewer := r.peer("first"), r.peer("second"), r.peer("viewer")
		second.announce("room")
		first.announce("room") // newer
		v, w := viewer.view("room", "v"), second.view("room", "v")
		x := first.view("room", "v")
		if n, m := len(first.live()), len(second.live()); n != 2 || m != 1 {
			r.Errorf("%d and %d subscriptions", n, m)
		}
		for _, o := range []*viewing{v, w, x} {
			o.close()
		}
	})
}
