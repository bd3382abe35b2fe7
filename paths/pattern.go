package paths

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Errors of patterns, besides ErrTooDeep and ErrEncoding.
var (
	ErrEmptySegment = errors.New("pattern has an empty segment")
	ErrStar         = errors.New("more than one star in a segment, or more than one **")
	ErrLiteral      = errors.New("a literal path cannot contain *")
	ErrTooMany      = errors.New("intersection has more than 1024 patterns")
)

const maxIntersection = 1024

// Pattern describes a set of paths: segments that are literals, "*" (any one), "pre*suf" (one that starts
// with pre and ends with suf, not overlapping), and at most one "**" (any number of segments, none
// included). It is exact: "a" is only a, "a/**" is a and everything below, "**" is everything. The zero
// Pattern is the empty one and matches only the root.
type Pattern struct {
	text string    // canonical: no "*" right before "**"
	head []segment // before "**", or all
	tail []segment // after "**"
	deep bool      // has "**"
	lit  string    // longest literal prefix, part of text
}

// Parse reads a pattern. Empty segments, two stars in one segment and more than 32 segments are errors.
func Parse(text string) (Pattern, error) {
	p, err := parse(text)
	if err != nil {
		return Pattern{}, fmt.Errorf("pattern %q: %w", text, err)
	}
	return p, nil
}

func parse(text string) (Pattern, error) {
	switch {
	case !utf8.ValidString(text):
		return Pattern{}, ErrEncoding
	case Depth(text) > MaxSegments:
		return Pattern{}, ErrTooDeep
	}
	var head, tail []segment
	deep := false
	for part := range Segments(text) {
		if part == "**" && !deep {
			deep = true
			continue
		}
		seg, ok := parseSegment(part)
		switch {
		case part == "":
			return Pattern{}, ErrEmptySegment
		case !ok:
			return Pattern{}, ErrStar
		case deep:
			tail = append(tail, seg)
		default:
			head = append(head, seg)
		}
	}
	return build(head, tail, deep)
}

// build makes the canonical pattern of the parts, and fails with ErrTooDeep where no path is that deep.
func build(head, tail []segment, deep bool) (Pattern, error) {
	n := len(head) + len(tail)
	if n > MaxSegments {
		return Pattern{}, ErrTooDeep
	}
	switch {
	case deep && n == MaxSegments: // "**" can only stand for nothing
		head, tail, deep = slices.Concat(head, tail), nil, false
	case deep:
		for i := len(head); i > 0 && head[i-1].any(); i = len(head) {
			tail = slices.Insert(slices.Clip(tail), 0, head[i-1])
			head = head[:i-1]
		}
	}
	p := Pattern{head: head, tail: tail, deep: deep}
	p.text, p.lit = p.render()
	return p, nil
}

// render writes the pattern, and how much of it is a literal prefix.
func (p *Pattern) render() (text, lit string) {
	var parts []string
	literal, end := true, 0
	add := func(part string, isLiteral bool) {
		parts = append(parts, part)
		if literal = literal && isLiteral; literal {
			end += len(part) + min(len(parts)-1, 1)
		}
	}
	for i := range p.head {
		add(p.head[i].String(), !p.head[i].glob)
	}
	if p.deep {
		add("**", false)
	}
	for i := range p.tail {
		add(p.tail[i].String(), false)
	}
	text = strings.Join(parts, "/")
	return text, text[:end]
}

// String is the canonical text: "*/**" is "**/*".
func (p Pattern) String() string { return p.text }

// Head is the longest literal prefix of the pattern: everything it matches is there or below.
func (p Pattern) Head() string { return p.lit }

// Literal reports whether the pattern has no star, that is, matches exactly one path.
func (p Pattern) Literal() bool { return !p.deep && len(p.lit) == len(p.text) }

// subtree reports whether the pattern is a literal path and everything below.
func (p *Pattern) subtree() bool {
	return p.deep && len(p.tail) == 0 && len(p.text)-len(p.lit) <= len("/**")
}

// least is the depth of the shallowest path that matches.
func (p *Pattern) least() int { return len(p.head) + len(p.tail) }

// at is the segment that the i-th of n segments of a path must match; nil if any will do. n is at least
// p.least, and exactly that without "**".
func (p *Pattern) at(i, n int) *segment {
	if i < len(p.head) {
		return &p.head[i]
	}
	if i -= n - len(p.tail); i >= 0 {
		return &p.tail[i]
	}
	return nil
}

// Match reports whether path matches.
func (p Pattern) Match(path string) bool {
	switch {
	case !Covers(p.lit, path):
		return false
	case p.subtree():
		return true
	}
	n := Depth(path)
	if n < p.least() || !p.deep && n > p.least() {
		return false
	}
	i := 0
	for part := range Segments(path) {
		if seg := p.at(i, n); seg != nil && !seg.match(part) {
			return false
		}
		i++
	}
	return true
}

// Contains reports whether p matches every path that o matches.
func (p Pattern) Contains(o Pattern) bool {
	switch {
	case o.least() < p.least():
		return false
	case !p.deep && (o.deep || o.least() != p.least()):
		return false
	case p.deep && o.deep:
		return p.containsDeep(&o)
	}
	n := o.least()
	for i := range n {
		if seg := p.at(i, n); seg != nil && !seg.contains(o.at(i, n)) {
			return false
		}
	}
	return true
}

// containsDeep is Contains for two patterns with "**". Seen from either end, o's segments must fit p's, and
// where o leaves a segment open p may only have "*". (In front "*" never comes to lie there.)
func (p *Pattern) containsDeep(o *Pattern) bool {
	if len(p.head) > len(o.head) {
		return false
	}
	for i := range p.head {
		if !p.head[i].contains(&o.head[i]) {
			return false
		}
	}
	for k := 1; k <= len(p.tail); k++ {
		seg := &p.tail[len(p.tail)-k]
		if k <= len(o.tail) && !seg.contains(&o.tail[len(o.tail)-k]) || k > len(o.tail) && !seg.any() {
			return false
		}
	}
	return true
}

// Rooted is the pattern below a literal root, which is clean. It fails with ErrLiteral where the root has a
// star and with ErrTooDeep where no path is that deep.
func (p Pattern) Rooted(root string) (Pattern, error) {
	if strings.Contains(root, "*") {
		return Pattern{}, fmt.Errorf("root %q: %w", root, ErrLiteral)
	}
	if root == "" {
		return p, nil
	}
	head := make([]segment, 0, Depth(root)+len(p.head))
	for part := range Segments(root) {
		head = append(head, segment{pre: part})
	}
	// A pattern such as "**/*" at "a" is "a/**/*": nothing moves, since no "*" stands before "**".
	return build(append(head, p.head...), p.tail, p.deep)
}

// Rebase returns what p matches below the literal path base, relative to it. There may be several
// patterns: "**/a" at "a" is "" and "**/a".
func (p Pattern) Rebase(base string) []Pattern {
	n, i := Depth(base), 0
	for part := range Segments(base) {
		if i < len(p.head) && !p.head[i].match(part) {
			return nil
		}
		i++
	}
	if n <= len(p.head) {
		return []Pattern{must(build(p.head[n:], p.tail, p.deep))}
	}
	if !p.deep {
		return nil
	}
	var out []Pattern
	// The last k segments of base may be the first k of the tail.
	for k := min(len(p.tail), n-len(p.head)); k > 0; k-- {
		if p.tailStarts(base, n, k) {
			out = append(out, must(build(p.tail[k:], nil, false)))
		}
	}
	return append(out, must(build(nil, p.tail, true)))
}

// tailStarts reports whether the last k of the n segments of base match the first k of the tail.
func (p *Pattern) tailStarts(base string, n, k int) bool {
	i := 0
	for part := range Segments(base) {
		if i >= n-k && !p.tail[i-(n-k)].match(part) {
			return false
		}
		i++
	}
	return true
}

// must is for parts of patterns that exist: they are never too deep.
func must(p Pattern, err error) Pattern {
	if err != nil {
		panic(err)
	}
	return p
}
