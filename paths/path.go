package paths

import (
	"errors"
	"iter"
	"strings"
	"unicode/utf8"
)

// MaxSegments is the most segments a path or pattern may have.
const MaxSegments = 32

// Errors of Clean, ParsePattern and what is built on them.
var (
	ErrTooDeep  = errors.New("path has more than 32 segments")
	ErrEncoding = errors.New("path is not valid UTF-8")
)

// Clean normalizes a path as received: leading, trailing and repeated slashes do not count. It fails with
// ErrTooDeep or ErrEncoding. A path that is clean already is returned as it is, without allocating.
func Clean(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", ErrEncoding
	}
	s = strings.Trim(s, "/")
	if strings.Contains(s, "//") {
		s = collapse(s)
	}
	if Depth(s) > MaxSegments {
		return "", ErrTooDeep
	}
	return s, nil
}

// collapse reduces runs of slashes to one.
func collapse(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '/' || s[i-1] != '/' { // s starts with another byte
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// Join places rel below root. The result may be deeper than MaxSegments; who takes a path in from a peer
// checks Depth.
func Join(root, rel string) string {
	switch {
	case root == "":
		return rel
	case rel == "":
		return root
	}
	return root + "/" + rel
}

// Covers reports whether path is prefix itself or lies below it.
func Covers(prefix, path string) bool {
	if prefix == "" {
		return true
	}
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

// Suffix is path relative to prefix: "" for the prefix itself. It reports false where prefix does not
// cover path.
func Suffix(prefix, path string) (string, bool) {
	switch {
	case !Covers(prefix, path):
		return "", false
	case prefix == "":
		return path, true
	case len(path) == len(prefix):
		return "", true
	}
	return path[len(prefix)+1:], true
}

// Deeper returns the deeper one of two paths of which one covers the other, that is the top of what lies
// below both. It reports false if neither covers the other.
func Deeper(a, b string) (string, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	return a, Covers(b, a)
}

// Hidden reports whether a segment of suffix, a path relative to what was asked for, starts with a dot
// (R30).
func Hidden(suffix string) bool {
	return strings.HasPrefix(suffix, ".") || strings.Contains(suffix, "/.")
}

// Depth is the number of segments; 0 for the root.
func Depth(path string) int {
	if path == "" {
		return 0
	}
	return strings.Count(path, "/") + 1
}

// Parent is the path one segment up. The root has none.
func Parent(path string) (string, bool) {
	if path == "" {
		return "", false
	}
	return path[:max(strings.LastIndexByte(path, '/'), 0)], true
}

// Segments yields the segments of path, none for the root.
func Segments(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest, more := path, path != ""; more; {
			var seg string
			seg, rest, more = strings.Cut(rest, "/")
			if !yield(seg) {
				return
			}
		}
	}
}
