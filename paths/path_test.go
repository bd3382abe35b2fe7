package paths_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/paths"
	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	deep := strings.Repeat("a/", 32)
	tests := []struct {
		in, want string
		err      error
	}{
		{"", "", nil},
		{"/", "", nil},
		{"///", "", nil},
		{"a", "a", nil},
		{"/a/b/", "a/b", nil},
		{"a//b///c", "a/b/c", nil},
		{".stats/node", ".stats/node", nil},
		{"a/../b", "a/../b", nil}, // dots mean nothing
		{"zoë/日本", "zoë/日本", nil},
		{deep, deep[:len(deep)-1], nil},
		{deep + "a", "", paths.ErrTooDeep},
		{"a/\xff", "", paths.ErrEncoding},
		{"a/\xed\xa0\x80", "", paths.ErrEncoding}, // surrogate
	}
	for _, tt := range tests {
		got, err := paths.Clean(tt.in)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Clean(%q) = %q, %v; want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

func TestRelations(t *testing.T) {
	tests := []struct {
		prefix, path string
		covers       bool
		suffix       string
	}{
		{"", "", true, ""},
		{"", "a/b", true, "a/b"},
		{"a", "a", true, ""},
		{"a", "a/b", true, "b"},
		{"a", "a/b/c", true, "b/c"},
		{"a/b", "a/bc", false, ""},
		{"a/b", "a", false, ""},
		{"a", "", false, ""},
		{"a", "b", false, ""},
	}
	for _, tt := range tests {
		if got := paths.Covers(tt.prefix, tt.path); got != tt.covers {
			t.Errorf("Covers(%q, %q) = %v", tt.prefix, tt.path, got)
		}
		got, ok := paths.Suffix(tt.prefix, tt.path)
		if got != tt.suffix || ok != tt.covers {
			t.Errorf("Suffix(%q, %q) = %q, %v", tt.prefix, tt.path, got, ok)
		}
		if tt.covers {
			if got := paths.Join(tt.prefix, tt.suffix); got != tt.path {
				t.Errorf("Join(%q, %q) = %q", tt.prefix, tt.suffix, got)
			}
			for _, pair := range [][2]string{{tt.prefix, tt.path}, {tt.path, tt.prefix}} {
				if got, ok := paths.Deeper(pair[0], pair[1]); !ok || got != tt.path {
					t.Errorf("Deeper(%q) = %q, %v", pair, got, ok)
				}
			}
		}
	}
	if _, ok := paths.Deeper("a/b", "a/c"); ok {
		t.Error("Deeper of two siblings")
	}
}

func TestHidden(t *testing.T) {
	for suffix, want := range map[string]bool{
		"": false, "cam": false, ".stats": true, ".stats/node": true, "a/.b": true, "a/b.c": false, "a.": false,
	} {
		if got := paths.Hidden(suffix); got != want {
			t.Errorf("Hidden(%q) = %v", suffix, got)
		}
	}
}

func TestSegmentsAndParents(t *testing.T) {
	for path, want := range map[string][]string{"": nil, "a": {"a"}, "a/b/c": {"a", "b", "c"}} {
		got := slices.Collect(paths.Segments(path))
		if !slices.Equal(got, want) || paths.Depth(path) != len(want) {
			t.Errorf("Segments(%q) = %q, depth %d", path, got, paths.Depth(path))
		}
		parent, ok := paths.Parent(path)
		if ok != (path != "") || ok && parent != strings.Join(want[:len(want)-1], "/") {
			t.Errorf("Parent(%q) = %q, %v", path, parent, ok)
		}
	}
	for range paths.Segments("a/b") {
		break // stopping early is allowed
	}
}

func TestCleanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.StringOf(rapid.SampledFrom([]rune("ab./"))).Draw(t, "path")
		got, err := paths.Clean(in)
		if err != nil {
			if n := len(strings.FieldsFunc(in, func(r rune) bool { return r == '/' })); n <= paths.MaxSegments {
				t.Fatalf("Clean(%q) with %d segments: %v", in, n, err)
			}
			return
		}
		want := strings.Join(strings.FieldsFunc(in, func(r rune) bool { return r == '/' }), "/")
		if got != want {
			t.Fatalf("Clean(%q) = %q, want %q", in, got, want)
		}
	})
}

func TestPathAllocations(t *testing.T) {
	got := testing.AllocsPerRun(100, func() {
		p, _ := paths.Clean("/room/cam/")
		rest, ok := paths.Suffix("room", p)
		if !ok || !paths.Covers("room", p) || paths.Hidden(rest) {
			t.Fatal(p)
		}
		for seg := range paths.Segments(p) {
			if seg == "" {
				t.Fatal(p)
			}
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
