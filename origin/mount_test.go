package origin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/session"
)

func mounts(pairs ...string) option {
	return func(o *origin.Peer) {
		var list []paths.Mount
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, paths.Mount{At: pairs[i], Target: pairs[i+1]})
		}
		var err error
		if o.Mounts, err = paths.NewMounts(list...); err != nil {
			panic(err)
		}
	}
}

func hidden(o *origin.Peer) { o.Hidden = true }

// TestMountShowsTheTarget: what is announced at the target, or covers it, has the name of the mount; what is at the mount
// itself is not there.
func TestMountShowsTheTarget(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		fleet := r.peer("fleet")
		project := r.peer("project", root("p1"), mounts("p1/.svc", ".svc/p1"))
		seesAll := r.peer("sees all", root("p1"), mounts("p1/.svc", ".svc/p1"), hidden)
		for _, name := range []string{".svc", ".svc/p1/foo", ".svc/p2/bar", "p1/cam", "p1/.svc/forged"} {
			fleet.announce(name)
		}
		synctest.Wait()
		for _, c := range []struct {
			of     *peer
			prefix string
			want   []string
		}{
			{project, "", []string{"cam"}}, // a dot hides a mount like any name
			{project, ".svc", []string{"", "foo"}},
			{seesAll, "", []string{".svc", ".svc/foo", "cam"}},
			{seesAll, ".svc", []string{"", "foo"}},
			{seesAll, ".svc/foo", []string{""}},
			{seesAll, "cam", []string{""}},
		} {
			got, err := c.of.Announced(c.prefix)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				r.Errorf("%s below %q: %v %s", c.of.name, c.prefix, err, diff)
			}
			told := strings.Split(c.of.listen(c.prefix).next(), " ")
			slices.Sort(told) // what is in one place comes after another
			if diff := cmp.Diff("+"+strings.Join(c.want, " +"), strings.Join(told, " ")); diff != "" {
				r.Errorf("%s listens below %q: %s", c.of.name, c.prefix, diff)
			}
		}
		above, inside := seesAll.listen(""), project.listen(".svc")
		above.next()
		inside.next()
		fleet.withdraw(".svc/p1/foo")
		if got := above.next(); got != "-.svc/foo" {
			r.Errorf("after the withdrawal: %q", got)
		}
		if got := inside.next(); got != "-foo" {
			r.Errorf("after the withdrawal: %q", got)
		}
	})
}

// TestMountReads: who asks through a mount shares what others get at the target.
func TestMountReads(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		project := r.peer("project", root("p1"), mounts("p1/.svc", ".svc/p1"))
		other := r.peer("other", root("p2"), mounts("p2/.svc", ".svc/p2"))
		pub.announce(".svc/p1/foo")
		pub.announce("p1/.svc/forged")
		v, w := project.view(".svc/foo", "v"), r.peer("direct").view(".svc/p1/foo", "v")
		if s := pub.only(); s.req.Path != ".svc/p1/foo" {
			r.Errorf("asked for %q", s.req.Path)
		} else if err := s.send(1, 0, 1); err != nil {
			r.Fatal(err)
		}
		synctest.Wait()
		for _, got := range []string{v.frames(1), w.frames(1)} {
			if got != "1:0 1:1" {
				r.Errorf("got %q", got)
			}
		}
		for of, path := range map[*peer]string{project: ".svc/forged", other: ".svc/foo"} {
			if _, err := view(of.Session, path, "v", live()); !errors.Is(err, session.ErrUnroutable) {
				r.Errorf("%s gets %q: %v", of.name, path, err)
			}
		}
		v.close()
		w.close()
	})
}

// TestMountAuthorizesTheName: the grant has the names that the session uses, and a wider one counts at once.
func TestMountAuthorizesTheName(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		project := r.peer("project", root("p1"), mounts("p1/.svc", ".svc/p1"), hidden, grants("", "p1/cam p1/.svc/foo"))
		blind := r.peer("blind", root("p1"), mounts("p1/.svc", ".svc/p1"), hidden, grants("", "p1/foo .svc/**"))
		for _, name := range []string{".svc/p1/foo", ".svc/p1/bar"} {
			pub.announce(name)
		}
		l := project.listen("")
		if got := l.next(); got != "+.svc/foo" {
			r.Errorf("announced %q", got)
		}
		if got, err := blind.Announced(""); err != nil || len(got) != 0 {
			r.Errorf("announced %q, %v", got, err)
		}
		project.view(".svc/foo", "v").close()
		for of, path := range map[*peer]string{project: ".svc/bar", blind: ".svc/foo"} {
			if _, err := view(of.Session, path, "v", live()); !errors.Is(err, session.ErrUnauthorized) {
				r.Errorf("%s gets %q: %v", of.name, path, err)
			}
		}
		project.SetGrant(set(""), set("p1/**"))
		if got := l.next(); got != "+.svc/bar" {
			r.Errorf("after a wider grant: %q", got)
		}
		project.view(".svc/bar", "v").close()
	})
}

// TestMountIsReadOnly: nothing is asked for or accepted at or below a mount, and what covers it does not serve there.
func TestMountIsReadOnly(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		project := r.peer("project", root("p1"), mounts("p1/.svc", ".svc/p1", "p1/x", "t"), grants("p1/a/** p1/x/** p1/.svc/y/**", "p1/**"))
		if diff := cmp.Diff([]string{"a"}, project.Interests()); diff != "" {
			r.Errorf("interests (-want +got):\n%s", diff)
		}
		all := r.peer("all", root("p1"), mounts("p1/.svc", ".svc/p1"))
		all.announce("")
		all.announce(".svc/forged")
		all.announce("cam")
		viewer := r.peer("viewer", hidden)
		if got, err := viewer.Announced(""); err != nil || !cmp.Equal(got, []string{"p1", "p1/cam"}) {
			r.Errorf("announced %q, %v", got, err)
		}
		if _, err := view(viewer.Session, "p1/.svc/forged", "v", live()); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("served below a mount: %v", err)
		}
		viewer.view("p1/other", "v").close()
	})
}

// TestMountDepth: paths through a mount are bounded on both sides.
func TestMountDepth(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("d/", 32), "/")
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		pub.announce(deep)
		pub.announce("t/x")
		pub.announce("t/" + deep[2:])
		down := r.peer("down", root("p1"), mounts("p1/svc", deep))
		up := r.peer("up", root("p1"), mounts("p1/a/b", "t"))
		for of, want := range map[*peer]string{down: "svc", up: "a/b/x"} {
			if got, err := of.Announced(""); err != nil || strings.Join(got, " ") != want {
				r.Errorf("%s: announced %q, %v", of.name, got, err)
			}
		}
		down.view("svc", "v").close()
		if _, err := view(down.Session, "svc/x", "v", live()); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("too deep: %v", err)
		}
		if got := down.listen("svc/x").next(); got != "" {
			r.Errorf("announced %q", got)
		}
	})
}

// TestMountsCountAsStreams: a feed costs one announce stream for each mount that it shows, and gives them back.
func TestMountsCountAsStreams(t *testing.T) {
	bubble(t, origin.Config{Feeds: 5}, func(r *rig) {
		p := r.peer("p", mounts("a", "ta", "b", "tb"))
		first := p.listen("")
		if _, err := p.Listen("", 0); !errors.Is(err, session.ErrNoCapacity) {
			r.Errorf("a sixth: %v", err)
		}
		p.listen("a") // one more
		first.Close()
		synctest.Wait()
		p.listen("")
	})
}
