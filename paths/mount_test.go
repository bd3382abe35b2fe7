package paths_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/paths"
	"pgregory.net/rapid"
)

func TestNewMounts(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("d/", 33), "/")
	for name, c := range map[string]struct {
		in   []paths.Mount
		want error
	}{
		"none":             {nil, nil},
		"two":              {[]paths.Mount{{"b", "t/b"}, {"/a//x/", "/t/"}}, nil},
		"one target":       {[]paths.Mount{{"a", "t"}, {"b", "t"}}, nil},
		"targets overlap":  {[]paths.Mount{{"a", "t"}, {"b", "t/x"}}, nil},
		"alike, but other": {[]paths.Mount{{"a", "ab"}, {"a.b", "t"}}, nil},
		"one point twice":  {[]paths.Mount{{"a", "t"}, {"a/", "u"}}, paths.ErrOverlap},
		"point below":      {[]paths.Mount{{"a", "t"}, {"a/b", "u"}}, paths.ErrOverlap},
		"chain":            {[]paths.Mount{{"a", "z/x"}, {"z", "secret"}}, paths.ErrOverlap},
		"chain above":      {[]paths.Mount{{"a", "z"}, {"z/x", "secret"}}, paths.ErrOverlap},
		"onto itself":      {[]paths.Mount{{"a", "a"}}, paths.ErrOverlap},
		"into itself":      {[]paths.Mount{{"a", "a/b"}}, paths.ErrOverlap},
		"around itself":    {[]paths.Mount{{"a/b", "a"}}, paths.ErrOverlap},
		"root":             {[]paths.Mount{{"", "t"}}, paths.ErrOverlap},
		"onto the root":    {[]paths.Mount{{"a", ""}}, paths.ErrOverlap},
		"wildcard point":   {[]paths.Mount{{"*", "t"}}, paths.ErrLiteral},
		"wildcard target":  {[]paths.Mount{{"a", "t/**"}}, paths.ErrLiteral},
		"point too deep":   {[]paths.Mount{{deep, "t"}}, paths.ErrTooDeep},
		"target too deep":  {[]paths.Mount{{"a", deep}}, paths.ErrTooDeep},
		"not text":         {[]paths.Mount{{"a", "\xff"}}, paths.ErrEncoding},
	} {
		got, err := paths.NewMounts(c.in...)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	got, err := paths.NewMounts(paths.Mount{At: "b", Target: "t/b"}, paths.Mount{At: "/a//x/", Target: "/t/"})
	if want := (paths.Mounts{{"a/x", "t"}, {"b", "t/b"}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMountsResolve(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("d/", 32), "/")
	ms, err := paths.NewMounts(paths.Mount{At: "p/.svc", Target: ".svc/p"}, paths.Mount{At: "p/deep", Target: deep})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"": "", "p": "p", "p/cam": "p/cam", "p/.svc2": "p/.svc2", "p/.svc": ".svc/p", "p/.svc/a/b": ".svc/p/a/b", "p/deep": deep,
	} {
		if got, ok := ms.Resolve(path); !ok || got != want {
			t.Errorf("%q is at %q, %v", path, got, ok)
		}
	}
	if got, ok := ms.Resolve("p/deep/x"); ok {
		t.Errorf("found at %q", got)
	}
	if got, ok := ms[0].Resolve("p/cam"); ok {
		t.Errorf("what is not below a mount is found at %q", got)
	}
	longer, err := paths.NewMounts(paths.Mount{At: "a/b", Target: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"t": true, "": true, "t/x": true, "t/" + deep[2:]: false, "t/" + deep[4:]: true} {
		if got := longer[0].Names(path); got != want {
			t.Errorf("%q has a name: %v", path, got)
		}
	}
}

func TestSetMoved(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("d/", 32), "/")
	for _, c := range []struct{ set, from, to, want string }{
		{"**", "p/.svc", ".svc/p", ".svc/p/**"},
		{"p/**", "p/.svc", ".svc/p", ".svc/p/**"},
		{"p/foo,p/.svc/foo", "p/.svc", ".svc/p", ".svc/p/foo"},
		{"p/foo", "p/.svc", ".svc/p", ""},
		{"p/*/cam", "p/.svc", "t", "t/cam"},
		{"p/**/cam", "p/.svc", "t", "t/**/cam"},
		{"p/**/.svc/cam", "p/.svc", "t", "t/cam,t/**/.svc/cam"},
		{"**", "a", deep, deep}, // "**" can only stand for nothing there
		{"a/x", "a", deep, ""},
	} {
		set, err := paths.ParseSet(strings.Split(c.set, ",")...)
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Moved(c.from, c.to).String(); got != c.want {
			t.Errorf("%q from %q to %q: %q, want %q", c.set, c.from, c.to, got, c.want)
		}
	}
}

// TestMovedMatchesWhatResolves: a path is authorized through a mount exactly if the set matches what it is called.
func TestMovedMatchesWhatResolves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, _ := drawPattern(t, "p")
		o, _ := drawPattern(t, "o")
		set := paths.NewSet(p, o)
		place := rapid.SampledFrom(universe[:43]) // up to two segments
		m := paths.Mount{At: place.Draw(t, "at"), Target: place.Draw(t, "target")}
		named := paths.Join(m.At, place.Draw(t, "rest"))
		at, ok := m.Resolve(named)
		if !ok {
			return
		}
		if got, want := set.Moved(m.At, m.Target).Match(at), set.Match(named); got != want {
			t.Fatalf("%q matches %q: %v; moved from %q to %q, %q: %v", set, named, want, m.At, m.Target, at, got)
		}
	})
}
