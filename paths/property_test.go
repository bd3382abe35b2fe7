package paths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/paths"
	"pgregory.net/rapid"
)

// The properties compare with brute force: every path of up to five segments over a few segment texts, and
// a matcher that follows the definition word by word.

// universe holds all paths of at most five of these segments. They tell apart all segment patterns below.
var universe = func() []string {
	all, last := []string{""}, []string{""}
	for range 5 {
		var next []string
		for _, p := range last {
			for _, seg := range []string{"a", "b", "ab", "ba", "aa", "x"} {
				next = append(next, paths.Join(p, seg))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}()

// naiveMatch is the definition: "**" stands for any number of segments, "*" for any text.
func naiveMatch(pattern, path []string) bool {
	if len(pattern) == 0 {
		return len(path) == 0
	}
	if pattern[0] == "**" {
		return naiveMatch(pattern[1:], path) || len(path) > 0 && naiveMatch(pattern, path[1:])
	}
	return len(path) > 0 && naiveSegment(pattern[0], path[0]) && naiveMatch(pattern[1:], path[1:])
}

func naiveSegment(pattern, text string) bool {
	pre, suf, glob := strings.Cut(pattern, "*")
	if !glob {
		return pattern == text
	}
	for i := 0; i <= len(text); i++ {
		for j := i; j <= len(text); j++ {
			if text[:i] == pre && text[j:] == suf {
				return true
			}
		}
	}
	return false
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "/")
}

// drawPattern draws a pattern of at most three segments, so that five are enough for any witness.
func drawPattern(t *rapid.T, label string) (paths.Pattern, []string) {
	segs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "*", "a*", "*a", "*b", "b*"}), 0, 3).Draw(t, label)
	if len(segs) < 3 && rapid.Bool().Draw(t, label+" deep") {
		segs = slices.Insert(segs, rapid.IntRange(0, len(segs)).Draw(t, label+" at"), "**")
	}
	p, err := paths.Parse(strings.Join(segs, "/"))
	if err != nil {
		t.Fatal(err)
	}
	return p, segs
}

func TestPatternsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, ps := drawPattern(t, "p")
		o, os := drawPattern(t, "o")
		both, err := p.Intersect(o)
		if err != nil {
			t.Fatal(err)
		}
		contains, overlaps := true, false
		for _, path := range universe {
			segs := split(path)
			inP, inO := naiveMatch(ps, segs), naiveMatch(os, segs)
			if p.Match(path) != inP {
				t.Fatalf("%q matches %q: %v", p, path, !inP)
			}
			contains = contains && (inP || !inO)
			overlaps = overlaps || inP && inO
			if got := slices.ContainsFunc(both, func(b paths.Pattern) bool { return b.Match(path) }); got != (inP && inO) {
				t.Fatalf("%q and %q intersect to %q, which matches %q: %v", p, o, texts(both), path, got)
			}
			if inP && !paths.Covers(p.Head(), path) {
				t.Fatalf("%q matches %q outside of its head", p, path)
			}
		}
		if got := p.Contains(o); got != contains {
			t.Fatalf("%q contains %q: %v", p, o, got)
		}
		if p.Overlaps(o) != overlaps || o.Overlaps(p) != overlaps {
			t.Fatalf("%q overlaps %q: want %v", p, o, overlaps)
		}
	})
}

func TestSharesAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, ps := drawPattern(t, "p")
		o, os := drawPattern(t, "o")
		prefix := rapid.SampledFrom(universe[:259]).Draw(t, "prefix") // up to three segments
		shares, reaches := false, false
		for _, path := range universe {
			if paths.Covers(prefix, path) {
				segs := split(path)
				in := naiveMatch(ps, segs)
				reaches = reaches || in
				shares = shares || in && naiveMatch(os, segs)
			}
		}
		if got := paths.NewSet(p).Shares(prefix, paths.NewSet(o)); got != shares {
			t.Fatalf("%q shares %q with %q: %v", p, prefix, o, got)
		}
		if got := paths.NewSet(p).Reaches(prefix); got != reaches {
			t.Fatalf("%q reaches %q: %v", p, prefix, got)
		}
	})
}

func TestRootedAndRebaseAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, ps := drawPattern(t, "p")
		base := rapid.SampledFrom(universe[:259]).Draw(t, "base")
		rooted, err := p.Rooted(base)
		if err != nil {
			t.Fatal(err)
		}
		if back := paths.NewSet(rooted).Rebase(base); !back.Equal(paths.NewSet(p)) {
			t.Fatalf("%q at %q and back: %q", p, base, back)
		}
		rebased := paths.NewSet(p.Rebase(base)...)
		for _, path := range universe[:1555] { // up to four segments
			if got := rooted.Match(paths.Join(base, path)); got != p.Match(path) {
				t.Fatalf("%q matches %q below %q: %v", rooted, path, base, got)
			}
			if got, want := rebased.Match(path), naiveMatch(ps, split(paths.Join(base, path))); got != want {
				t.Fatalf("%q below %q is %q, which matches %q: %v", p, base, rebased, path, got)
			}
		}
	})
}

func TestSetsAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members [2][]paths.Pattern
		for i := range members {
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				p, _ := drawPattern(t, "p")
				members[i] = append(members[i], p)
			}
		}
		s, o := paths.NewSet(members[0]...), paths.NewSet(members[1]...)
		both, err := s.Intersect(o)
		if err != nil {
			t.Fatal(err)
		}
		heads := s.Heads()
		for i, h := range heads {
			for j, k := range heads {
				if i != j && paths.Covers(h, k) {
					t.Fatalf("head %q covers %q", h, k)
				}
			}
		}
		for _, path := range universe[:1555] {
			in := func(ps []paths.Pattern) bool {
				return slices.ContainsFunc(ps, func(p paths.Pattern) bool { return p.Match(path) })
			}
			if s.Match(path) != in(members[0]) {
				t.Fatalf("%q reduced to %q: %q", texts(members[0]), s, path)
			}
			if both.Match(path) != (in(members[0]) && in(members[1])) {
				t.Fatalf("%q and %q intersect to %q: %q", s, o, both, path)
			}
			if s.Match(path) && !slices.ContainsFunc(heads, func(h string) bool { return paths.Covers(h, path) }) {
				t.Fatalf("%q is in %q and below none of %q", path, s, heads)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a/b", "**", "*/**/x", "a*b/**/c", "a//b", "***", "\xff", strings.Repeat("a/", 40)} {
		f.Add(seed, "a/b/c")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		clean, err := paths.Clean(path)
		if err != nil || len(text)+len(clean) > 300 { // the naive matcher is slow
			return
		}
		p, err := paths.Parse(text)
		if err != nil {
			return
		}
		again, err := paths.Parse(p.String())
		if err != nil || again.String() != p.String() || !again.Contains(p) || !p.Contains(again) {
			t.Fatalf("%q reads back as %q, %v", p, again, err)
		}
		if got, want := p.Match(clean), naiveMatch(split(text), split(clean)); got != want {
			t.Fatalf("%q matches %q: %v", text, clean, got)
		}
		if !p.Overlaps(p) || !p.Contains(p) {
			t.Fatalf("%q does not contain itself", p)
		}
		if p.Match(clean) {
			literal, err := paths.Parse(clean)
			if err == nil && !p.Contains(literal) {
				t.Fatalf("%q matches %q and does not contain it", p, clean)
			}
			if len(p.Rebase(clean)) == 0 {
				t.Fatalf("%q at %q has nothing left", p, clean)
			}
		}
	})
}
