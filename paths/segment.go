package paths

import "strings"

// segment is one segment of a pattern other than "**": a literal (pre), or everything that starts with pre
// and ends with suf without the two overlapping.
type segment struct {
	pre, suf string
	glob     bool
}

// parseSegment reads text, which is not empty and not "**".
func parseSegment(text string) (segment, bool) {
	pre, suf, glob := strings.Cut(text, "*")
	return segment{pre, suf, glob}, !strings.Contains(suf, "*")
}

func (s segment) String() string {
	if s.glob {
		return s.pre + "*" + s.suf
	}
	return s.pre
}

// any reports whether s is "*".
func (s *segment) any() bool { return s.glob && s.pre == "" && s.suf == "" }

func (s *segment) match(text string) bool {
	if !s.glob {
		return s.pre == text
	}
	return len(text) >= len(s.pre)+len(s.suf) && strings.HasPrefix(text, s.pre) && strings.HasSuffix(text, s.suf)
}

// contains reports whether every text that o matches is matched by s.
func (s *segment) contains(o *segment) bool {
	if !o.glob {
		return s.match(o.pre)
	}
	return s.glob && strings.HasPrefix(o.pre, s.pre) && strings.HasSuffix(o.suf, s.suf)
}

// ends returns the stricter beginning and the stricter end of two globs; false if they exclude each other.
func (s *segment) ends(o *segment) (pre, suf string, ok bool) {
	pre, suf = s.pre, s.suf
	less, tail := o.pre, o.suf
	if len(less) > len(pre) {
		pre, less = less, pre
	}
	if len(tail) > len(suf) {
		suf, tail = tail, suf
	}
	return pre, suf, strings.HasPrefix(pre, less) && strings.HasSuffix(suf, tail)
}

// intersect returns segments that together match what both s and o match. There may be several: "ab*" and
// "*ba" have "ab*ba" and "aba" in common.
func (s *segment) intersect(o *segment) []segment {
	switch {
	case !s.glob:
		if o.match(s.pre) {
			return []segment{*s}
		}
		return nil
	case !o.glob:
		return o.intersect(s)
	}
	pre, suf, ok := s.ends(o)
	if !ok {
		return nil
	}
	out := []segment{{pre, suf, true}}
	shortest := max(len(s.pre)+len(s.suf), len(o.pre)+len(o.suf))
	for k := 1; k <= min(len(pre), len(suf)) && len(pre)+len(suf)-k >= shortest; k++ {
		if pre[len(pre)-k:] == suf[:k] {
			out = append(out, segment{pre: pre + suf[k:]})
		}
	}
	return out
}
