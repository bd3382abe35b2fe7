package paths_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/paths"
)

func mustParse(t *testing.T, text string) paths.Pattern {
	t.Helper()
	p, err := paths.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustSet(t *testing.T, texts ...string) paths.Set {
	t.Helper()
	s, err := paths.ParseSet(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func texts(ps []paths.Pattern) []string {
	out := []string{}
	for _, p := range ps {
		out = append(out, p.String())
	}
	return out
}

func TestParse(t *testing.T) {
	deep := strings.Repeat("a/", 31)
	tests := []struct {
		in, want, head string
		err            error
	}{
		{in: "", want: "", head: ""},
		{in: "a", want: "a", head: "a"},
		{in: "a/b", want: "a/b", head: "a/b"},
		{in: "**", want: "**", head: ""},
		{in: "a/**", want: "a/**", head: "a"},
		{in: "a/**/b", want: "a/**/b", head: "a"},
		{in: "*/**", want: "**/*", head: ""},
		{in: "a/*/*/**/b", want: "a/**/*/*/b", head: "a"},
		{in: "a/b*/**", want: "a/b*/**", head: "a"},
		{in: "a/b*c/d", want: "a/b*c/d", head: "a"},
		{in: deep + "**", want: deep + "**", head: deep[:len(deep)-1]},
		{in: "zoë/*", want: "zoë/*", head: "zoë"},
		{in: "/", err: paths.ErrEmptySegment},
		{in: "/a", err: paths.ErrEmptySegment},
		{in: "a/", err: paths.ErrEmptySegment},
		{in: "a//b", err: paths.ErrEmptySegment},
		{in: "a**", err: paths.ErrStar},
		{in: "*a*", err: paths.ErrStar},
		{in: "***", err: paths.ErrStar},
		{in: "**/a/**", err: paths.ErrStar},
		{in: deep + "a/**", err: paths.ErrTooDeep},
		{in: "\xff", err: paths.ErrEncoding},
	}
	for _, tt := range tests {
		p, err := paths.Parse(tt.in)
		if !errors.Is(err, tt.err) || p.String() != tt.want || p.Head() != tt.head {
			t.Errorf("Parse(%q) = %q, head %q, %v; want %q, %q, %v", tt.in, p, p.Head(), err, tt.want, tt.head, tt.err)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern  string
		yes, not []string
	}{
		{"", []string{""}, []string{"a"}},
		{"a", []string{"a"}, []string{"", "a/b", "ab"}},
		{"a/**", []string{"a", "a/b", "a/b/c"}, []string{"", "ab", "b/a"}},
		{"**", []string{"", "a", "a/b"}, nil},
		{"*", []string{"a", "*"}, []string{"", "a/b"}},
		{"**/*", []string{"a", "a/b"}, []string{""}},
		{"live-*", []string{"live-", "live-x"}, []string{"live", "live-x/y"}},
		{"*.hang", []string{".hang", "x.hang"}, []string{"x.hang2", "a/x.hang"}},
		{"ab*ba", []string{"abba", "abxba"}, []string{"aba", "ab", "ba"}},
		{"a/*/c", []string{"a/b/c"}, []string{"a/c", "a/b/d", "a/b/c/d"}},
		{"a/**/c", []string{"a/c", "a/b/c", "a/c/c"}, []string{"a", "c", "a/b"}},
		{"a/**/b/c", []string{"a/b/c", "a/x/y/b/c"}, []string{"a/c", "a/b"}},
	}
	for _, tt := range tests {
		p := mustParse(t, tt.pattern)
		for _, path := range tt.yes {
			if !p.Match(path) {
				t.Errorf("%q does not match %q", tt.pattern, path)
			}
		}
		for _, path := range tt.not {
			if p.Match(path) {
				t.Errorf("%q matches %q", tt.pattern, path)
			}
		}
	}
}

func TestContainsAndOverlaps(t *testing.T) {
	deep := strings.Repeat("a/", 17)
	tests := []struct {
		p, o               string
		contains, overlaps bool
	}{
		{"**", "", true, true},
		{"**", "a/*/b*", true, true},
		{"a/**", "a", true, true},
		{"a/**", "a/b/**", true, true},
		{"a/b/**", "a/**", false, true},
		{"a", "a/**", false, true},
		{"*", "a*", true, true},
		{"a*", "*", false, true},
		{"a*", "ab*c", true, true},
		{"ab*", "*ba", false, true},
		{"ab*", "ac*", false, false},
		{"*a", "*b", false, false},
		{"a/**/b", "a/b", true, true},
		{"a/**/b", "a/**/c/b", true, true},
		{"**/*", "a/**", true, true},
		{"**/*/*", "a/**", false, true},
		{"**/a", "a/**", false, true},
		{"a/b", "a/c", false, false},
		{"a/*/c", "**/b/*", false, true},
		{"a/*", "a/*/*", false, false},
		{deep + "**", "**/" + deep + "b", false, true}, // 18 segments are enough
		{deep + "**", "**/" + strings.ReplaceAll(deep, "a", "c") + "b", false, false},
	}
	for _, tt := range tests {
		p, o := mustParse(t, tt.p), mustParse(t, tt.o)
		if got := p.Contains(o); got != tt.contains {
			t.Errorf("%q contains %q: %v", p, o, got)
		}
		if got := p.Overlaps(o); got != tt.overlaps {
			t.Errorf("%q overlaps %q: %v", p, o, got)
		}
		if got := o.Overlaps(p); got != tt.overlaps {
			t.Errorf("%q overlaps %q: %v", o, p, got)
		}
		both, err := p.Intersect(o)
		if err != nil || (len(both) > 0) != tt.overlaps {
			t.Errorf("%q and %q intersect to %q, %v", p, o, texts(both), err)
		}
	}
}

func TestIntersect(t *testing.T) {
	tests := []struct {
		p, o string
		want []string
	}{
		{"**", "a/*", []string{"a/*"}},
		{"a/**", "**/b", []string{"a/**/b"}},
		{"a/**", "**/a", []string{"a/**/a", "a"}},
		{"ab*", "*ba", []string{"ab*ba", "aba"}},
		{"ab*/**", "**/*ba", []string{"ab*/**/*ba", "ab*ba", "aba"}},
		{"a/*", "*/b", []string{"a/b"}},
		{"a/*", "b/*", nil},
		{"a/**/c", "a/b/c", []string{"a/b/c"}},
		{"a/b/**", "a/**/c", []string{"a/b/**/c"}},
		{"*/**", "**", []string{"**/*"}},
	}
	for _, tt := range tests {
		got, err := mustParse(t, tt.p).Intersect(mustParse(t, tt.o))
		if diff := cmp.Diff(append([]string{}, tt.want...), texts(got)); diff != "" || err != nil {
			t.Errorf("%q and %q: %v %s", tt.p, tt.o, err, diff)
		}
	}
}

func TestIntersectTooMany(t *testing.T) {
	ten := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+"/", 11), "/") }
	// Each of the eleven segments has two solutions.
	_, err := mustParse(t, ten("ab*")).Intersect(mustParse(t, ten("*ba")))
	if !errors.Is(err, paths.ErrTooMany) {
		t.Errorf("error %v", err)
	}
	_, err = mustSet(t, ten("ab*")).Intersect(mustSet(t, ten("*ba")))
	if !errors.Is(err, paths.ErrTooMany) {
		t.Errorf("error of the set %v", err)
	}
}

func TestRootedAndRebase(t *testing.T) {
	deep := strings.TrimSuffix(strings.Repeat("r/", 31), "/")
	rooted := []struct {
		pattern, root, want string
		err                 error
	}{
		{"**", "", "**", nil},
		{"**", "a", "a/**", nil},
		{"", "a/b", "a/b", nil},
		{"*/**", "a", "a/**/*", nil},
		{"alice/**", "demo", "demo/alice/**", nil},
		{"a/**", deep, deep + "/a", nil}, // nothing is deeper
		{"a/b/**", deep, "", paths.ErrTooDeep},
		{"a", "x*", "", paths.ErrLiteral},
	}
	for _, tt := range rooted {
		got, err := mustParse(t, tt.pattern).Rooted(tt.root)
		if got.String() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q rooted at %q: %q, %v", tt.pattern, tt.root, got, err)
		}
	}
	rebased := []struct {
		pattern, base string
		want          []string
	}{
		{"**/a", "a", []string{"", "**/a"}},
		{"demo/alice/**", "demo", []string{"alice/**"}},
		{"demo/alice/**", "demo/alice", []string{"**"}},
		{"demo/alice/**", "demo/alice/x/y", []string{"**"}},
		{"demo/alice/**", "demo/bob", []string{}},
		{"a/b", "a/b", []string{""}},
		{"a/b", "a/b/c", []string{}},
		{"**/a/a", "a", []string{"a", "**/a/a"}},
		{"**/a/a", "a/a", []string{"", "a", "**/a/a"}},
		{"x*/*/z", "xy/q", []string{"z"}},
	}
	for _, tt := range rebased {
		got := texts(mustParse(t, tt.pattern).Rebase(tt.base))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q below %q: %s", tt.pattern, tt.base, diff)
		}
	}
}

func TestSet(t *testing.T) {
	s := mustSet(t, "a/b", "c/*", "a/**", "c/d", "a/**")
	if diff := cmp.Diff([]string{"c/*", "a/**"}, s.Strings()); diff != "" {
		t.Error("not reduced:", diff)
	}
	if s.String() != "c/*,a/**" || s.Empty() || !new(paths.Set).Empty() {
		t.Errorf("String %q, Empty %v", s, s.Empty())
	}
	if !slices.EqualFunc(s.Patterns(), s.Strings(), func(p paths.Pattern, text string) bool { return p.String() == text }) {
		t.Error("Patterns and Strings differ")
	}
	if !s.Equal(mustSet(t, "a/**", "c/*")) || s.Equal(mustSet(t, "a/**")) || s.Equal(paths.Set{}) {
		t.Error("Equal")
	}
	if !s.Contains(mustSet(t, "a/x", "c/x")) || s.Contains(mustSet(t, "a/x", "d")) || !s.Contains(paths.Set{}) {
		t.Error("Contains")
	}
	if !s.Match("a/x/y") || s.Match("c/x/y") || new(paths.Set).Match("") {
		t.Error("Match")
	}
	if !s.Overlaps(mustSet(t, "c/**")) || s.Overlaps(mustSet(t, "c", "d/**")) {
		t.Error("Overlaps")
	}
	if _, err := paths.ParseSet("a", "b//c"); !errors.Is(err, paths.ErrEmptySegment) {
		t.Error(err)
	}
	both, err := s.Intersect(mustSet(t, "**/b", "c"))
	if diff := cmp.Diff([]string{"c/b", "a/**/b"}, both.Strings()); diff != "" || err != nil {
		t.Error(err, diff)
	}
	rooted, err := s.Rooted("r")
	if diff := cmp.Diff([]string{"r/c/*", "r/a/**"}, rooted.Strings()); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := s.Rooted("*"); !errors.Is(err, paths.ErrLiteral) {
		t.Error(err)
	}
	if got := mustSet(t, "a/b/**", "*/b", "c").Rebase("a"); !got.Equal(mustSet(t, "b/**")) {
		t.Errorf("Rebase: %q", got)
	}
	if !paths.All.Equal(mustSet(t, "**")) {
		t.Error("All")
	}
}

func TestHeads(t *testing.T) {
	tests := []struct{ set, want []string }{
		{nil, []string{}},
		{[]string{"**"}, []string{""}},
		{[]string{"b/*", "a/**", "a.b/**", "a/c/d"}, []string{"a", "a.b", "b"}},
		{[]string{"a/b/c", "a/b/*", "a/bc"}, []string{"a/b", "a/bc"}},
		{[]string{"x*/y", "a"}, []string{""}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, mustSet(t, tt.set...).Heads()); diff != "" {
			t.Errorf("heads of %q: %s", tt.set, diff)
		}
	}
}

func TestReachesAndShares(t *testing.T) {
	tests := []struct {
		set    []string
		prefix string
		want   bool
	}{
		{[]string{"live/**"}, "", true},
		{[]string{"live/**"}, "live", true},
		{[]string{"live/**"}, "live/x", true},
		{[]string{"live/**"}, "vod", false},
		{[]string{"live/*/x"}, "live/a", true},
		{[]string{"live/*/x"}, "live/a/b", false},
		{[]string{"live"}, "live/a", false},
		{[]string{"vod", "live/**"}, "live/a", true},
		{nil, "", false},
		{[]string{"**/x"}, strings.Repeat("a/", 31) + "a", false}, // no room below
		{[]string{"**"}, strings.Repeat("a/", 32) + "a", false},
		{[]string{"**/*"}, strings.Repeat("a/", 32) + "a", false},
	}
	for _, tt := range tests {
		if got := mustSet(t, tt.set...).Reaches(tt.prefix); got != tt.want {
			t.Errorf("%q reaches %q: %v", tt.set, tt.prefix, got)
		}
	}
	a, b := mustSet(t, "live/**"), mustSet(t, "**/x")
	if !a.Shares("", b) || !a.Shares("live/a", b) || a.Shares("vod", b) || b.Shares("live", mustSet(t, "*")) {
		t.Error("Shares")
	}
	if n := testing.AllocsPerRun(100, func() { a.Shares("live/a", b); a.Reaches("live/a"); a.Match("live/a") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSetJSON(t *testing.T) {
	var v struct {
		Publish   paths.Set `json:"publish"`
		Subscribe paths.Set `json:"subscribe"`
	}
	if err := json.Unmarshal([]byte(`{"publish":["*/**","a/b"],"subscribe":[]}`), &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if want := `{"publish":["**/*"],"subscribe":[]}`; string(out) != want || err != nil {
		t.Errorf("%s, %v", out, err)
	}
	for _, bad := range []string{`"a"`, `["a//b"]`, `[1]`} {
		s := mustSet(t, "kept")
		if err := json.Unmarshal([]byte(bad), &s); err == nil || s.String() != "kept" {
			t.Errorf("%s: %q, %v", bad, s, err)
		}
	}
}
