package paths

import (
	"encoding/json"
	"slices"
	"strings"
)

// Set is a union of patterns, reduced: no member contains another. The zero Set is empty and matches
// nothing. In JSON it is an array of strings.
type Set struct{ patterns []Pattern }

// All is the set of all paths.
var All = NewSet(Pattern{text: "**", deep: true})

// NewSet returns the union of patterns.
func NewSet(patterns ...Pattern) Set { return Set{reduce(patterns)} }

// ParseSet parses every text with Parse and returns the union.
func ParseSet(texts ...string) (Set, error) {
	ps := make([]Pattern, 0, len(texts))
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			return Set{}, err
		}
		ps = append(ps, p)
	}
	return NewSet(ps...), nil
}

// Empty reports whether s matches nothing.
func (s Set) Empty() bool { return len(s.patterns) == 0 }

// Patterns returns a copy of the members.
func (s Set) Patterns() []Pattern { return slices.Clone(s.patterns) }

// Strings returns the members as text.
func (s Set) Strings() []string {
	out := make([]string, len(s.patterns))
	for i, p := range s.patterns {
		out[i] = p.text
	}
	return out
}

// String lists the members, separated by commas.
func (s Set) String() string { return strings.Join(s.Strings(), ",") }

// MarshalJSON writes an array of strings.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.Strings()) }

// UnmarshalJSON reads an array of strings with ParseSet.
func (s *Set) UnmarshalJSON(data []byte) error {
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	parsed, err := ParseSet(texts...)
	if err == nil {
		*s = parsed
	}
	return err
}

// Match reports whether a member matches path.
func (s Set) Match(path string) bool {
	for i := range s.patterns {
		if s.patterns[i].Match(path) {
			return true
		}
	}
	return false
}

// Contains reports whether every member of o is contained in one of s. Members of s are not taken together.
func (s Set) Contains(o Set) bool {
	for _, p := range o.patterns {
		if !slices.ContainsFunc(s.patterns, func(q Pattern) bool { return q.Contains(p) }) {
			return false
		}
	}
	return true
}

// Equal reports whether both sets have the same members, in any order.
func (s Set) Equal(o Set) bool { return s.Contains(o) && o.Contains(s) }

// Overlaps reports whether some path matches both sets.
func (s Set) Overlaps(o Set) bool { return s.Shares("", o) }

// Reaches reports whether s matches some path at or below prefix (R11).
func (s Set) Reaches(prefix string) bool { return s.Shares(prefix, All) }

// Shares reports whether some path at or below prefix matches both s and o (R29). It does not allocate.
func (s Set) Shares(prefix string, o Set) bool {
	for i := range s.patterns {
		for j := range o.patterns {
			if shares(prefix, &s.patterns[i], &o.patterns[j]) {
				return true
			}
		}
	}
	return false
}

// shares is Shares for one pattern each.
func shares(prefix string, p, o *Pattern) bool {
	top, ok := Deeper(p.lit, o.lit)
	if ok {
		top, ok = Deeper(top, prefix)
	}
	switch {
	case !ok:
		return false
	case p.subtree() && o.subtree():
		return Depth(top) <= MaxSegments
	}
	var buf [MaxSegments]segment
	below := Pattern{head: buf[:0], deep: true}
	for part := range Segments(prefix) {
		if len(below.head) == MaxSegments {
			return false
		}
		below.head = append(below.head, segment{pre: part})
	}
	return overlap([]*Pattern{&below, p, o})
}

// Intersect returns the set of paths that match both. It fails with ErrTooMany where that takes more than
// 1024 patterns.
func (s Set) Intersect(o Set) (Set, error) {
	var out []Pattern
	for _, p := range s.patterns {
		for _, q := range o.patterns {
			both, err := p.Intersect(q)
			if err != nil {
				return Set{}, err
			}
			if out = reduce(append(out, both...)); len(out) > maxIntersection {
				return Set{}, ErrTooMany
			}
		}
	}
	return Set{out}, nil
}

// Rooted places every member below a literal root, see Pattern.Rooted.
func (s Set) Rooted(root string) (Set, error) {
	out := make([]Pattern, len(s.patterns))
	for i, p := range s.patterns {
		var err error
		if out[i], err = p.Rooted(root); err != nil {
			return Set{}, err
		}
	}
	return NewSet(out...), nil
}

// Rebase returns what s matches at or below the literal path base, relative to it.
func (s Set) Rebase(base string) Set {
	var out []Pattern
	for _, p := range s.patterns {
		out = append(out, p.Rebase(base)...)
	}
	return NewSet(out...)
}

// Heads returns the longest literal prefixes of the members, sorted, without those that another covers:
// together they cover everything that s matches.
func (s Set) Heads() []string {
	heads := make([]string, len(s.patterns))
	for i := range s.patterns {
		heads[i] = s.patterns[i].lit
	}
	slices.SortFunc(heads, compareBySegment)
	out := heads[:0]
	for _, h := range heads {
		if len(out) == 0 || !Covers(out[len(out)-1], h) {
			out = append(out, h)
		}
	}
	return out
}

// compareBySegment orders paths so that what one covers comes right after it: "a", "a/b", "a.b".
func compareBySegment(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		case x < y:
			return -1
		default:
			return 1
		}
	}
	return len(a) - len(b)
}
