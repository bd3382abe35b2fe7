package paths

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrOverlap says that a mount stands in the way of another, or of itself.
var ErrOverlap = errors.New("mounts overlap")

// Mount redirects what is read at or below At to the same place at or below Target. Both are clean, absolute and
// literal. Nothing can be published through it (auth 5.3).
type Mount struct{ At, Target string }

// Mounts are those of one session, in the order of At.
type Mounts []Mount

// NewMounts checks and sorts mounts. No At may cover, or lie below, another At or any Target, its own included: so
// mounts never chain, and their order is of no importance (A16). Targets may overlap each other. It fails with
// ErrOverlap, ErrLiteral, or an error of Clean.
func NewMounts(list ...Mount) (Mounts, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make(Mounts, 0, len(list))
	for _, m := range list {
		var err error
		if m.At, err = literal(m.At); err != nil {
			return nil, err
		}
		if m.Target, err = literal(m.Target); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Mount) int { return strings.Compare(a.At, b.At) })
	for i, m := range out {
		for j, o := range out {
			if related(m.At, o.Target) || i != j && related(m.At, o.At) {
				return nil, fmt.Errorf("%w: %.64q and %.64q", ErrOverlap, m.At, o.At)
			}
		}
	}
	return out, nil
}

func literal(path string) (string, error) {
	path, err := Clean(path)
	if err == nil && strings.Contains(path, "*") {
		err = fmt.Errorf("%.64q: %w", path, ErrLiteral)
	}
	return path, err
}

// related reports whether one of two paths covers the other.
func related(a, b string) bool { return Covers(a, b) || Covers(b, a) }

// Over is the mount that path is at or below, if there is one.
func (ms Mounts) Over(path string) (Mount, bool) {
	for _, m := range ms {
		if Covers(m.At, path) {
			return m, true
		}
	}
	return Mount{}, false
}

// Resolve is where path is to be found: at itself, or where a mount says. It reports false where that would be deeper
// than MaxSegments.
func (ms Mounts) Resolve(path string) (string, bool) {
	m, ok := ms.Over(path)
	if !ok {
		return path, true
	}
	return m.Resolve(path)
}

// Resolve is where path, which is at or below At, is to be found. It reports false where that would be deeper than
// MaxSegments, and for any other path.
func (m Mount) Resolve(path string) (string, bool) {
	rest, ok := Suffix(m.At, path)
	path = Join(m.Target, rest)
	return path, ok && Depth(path) <= MaxSegments
}

// Names reports whether path, which is at or below Target or covers it, has a name through the mount that is no deeper than
// MaxSegments.
func (m Mount) Names(path string) bool {
	rest, ok := Suffix(m.Target, path)
	return !ok || Depth(m.At)+Depth(rest) <= MaxSegments
}

// Moved is what s matches at or below the literal path from, found below the literal path to instead. Where no path is
// that deep, nothing is matched.
func (s Set) Moved(from, to string) Set {
	var out []Pattern
	for _, p := range s.Rebase(from).patterns {
		if moved, err := p.Rooted(to); err == nil {
			out = append(out, moved)
		}
	}
	return NewSet(out...)
}
