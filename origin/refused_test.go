package origin_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
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

// TestRouteThatComesBack is asked again, even on the same session: a refusal is one of that route (F25).
func TestRouteThatComesBack(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		other, pub, viewer := r.peer("other"), r.peer("pub"), r.peer("viewer")
		other.announce("room")
		pub.announce("room")
		pub.infoErr = errors.New("not yet")
		v := viewer.view("room", "v")
		other.only()
		pub.infoErr = nil
		pub.withdraw("room")
		pub.announce("room")
		pub.only()
		if len(other.live()) != 0 {
			r.Error("the other source still serves")
		}
		v.close()
	})
}

// TestFetchWhileDraining: no group is asked for over a session that is going away; what is cached is there (R41).
func TestFetchWhileDraining(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		pub.fetch = group
		v := viewer.view("room", "v")
		s := pub.only()
		if err := s.send(5, 0, 1); err != nil {
			r.Fatal(err)
		}
		s.finish(5)
		pub.Goaway("")
		if got := viewer.fetchGroup(r.Context(), 5, 0, nil); got.err != nil || got.text != "5:0 5:1" {
			r.Errorf("cached: %+v", got)
		}
		if got := viewer.fetchGroup(r.Context(), 4, 0, nil); !errors.Is(got.err, session.ErrGoingAway) || len(pub.fetches) != 0 {
			r.Errorf("not cached: %+v, asked for %v", got, pub.fetches)
		}
		v.close()
	})
}

// TestLocalList: who sees local routes only is listed only these (R37).
func TestLocalList(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		here := r.peer("client")
		there := r.peer("relay", func(p *origin.Peer) { p.Source = route.SourcePeer })
		local := r.peer("local", func(p *origin.Peer) { p.LocalOnly = true })
		here.announce("here")
		there.announce("there")
		for _, c := range []struct {
			of   *peer
			want []string
		}{{local, []string{"here"}}, {r.peer("viewer"), []string{"here", "there"}}} {
			synctest.Wait()
			got, err := c.of.Announced("")
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				r.Errorf("%s: %v %s", c.of.name, err, diff)
			}
		}
	})
}
