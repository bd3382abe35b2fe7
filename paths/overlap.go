package paths

import "slices"

// Overlaps reports whether some path matches both.
func (p Pattern) Overlaps(o Pattern) bool { return overlap([]*Pattern{&p, &o}) }

// overlap reports whether some path matches all patterns.
func overlap(ps []*Pattern) bool {
	least, head, tail, exact := 0, 0, 0, -1
	for _, p := range ps {
		if !p.deep {
			if exact >= 0 && exact != p.least() {
				return false
			}
			exact = p.least()
		}
		least, head, tail = max(least, p.least()), max(head, len(p.head)), max(tail, len(p.tail))
	}
	if exact >= 0 {
		return exact >= least && overlapAt(ps, exact)
	}
	// From this depth on heads and tails do not meet: nothing is easier than that.
	n := head + tail
	if n <= MaxSegments {
		return overlapAt(ps, n)
	}
	for n = least; n <= MaxSegments; n++ {
		if overlapAt(ps, n) {
			return true
		}
	}
	return false
}

// overlapAt is overlap for paths of n segments.
func overlapAt(ps []*Pattern, n int) bool {
	for i := range n {
		if !compatible(ps, i, n) {
			return false
		}
	}
	return true
}

// compatible reports whether some text fits all patterns as the i-th of n segments.
func compatible(ps []*Pattern, i, n int) bool {
	join := segment{glob: true}
	for _, p := range ps {
		seg := p.at(i, n)
		switch {
		case seg == nil:
		case !join.glob:
			if !seg.match(join.pre) {
				return false
			}
		case !seg.glob:
			if !join.match(seg.pre) {
				return false
			}
			join = *seg
		default:
			pre, suf, ok := join.ends(seg)
			if !ok {
				return false
			}
			join = segment{pre, suf, true}
		}
	}
	return true
}

// Intersect returns patterns that together match exactly what both p and o match. None contains another. It
// fails with ErrTooMany where there are more than 1024.
func (p Pattern) Intersect(o Pattern) ([]Pattern, error) {
	least := max(p.least(), o.least())
	head, tail := max(len(p.head), len(o.head)), max(len(p.tail), len(o.tail))
	var out []Pattern
	if p.deep && o.deep {
		var err error
		if out, err = intersectDeep(&p, &o, head, tail); err != nil {
			return nil, err
		}
		// Shallower paths, in which heads meet tails.
		for n := least; n < min(head+tail, MaxSegments+1); n++ {
			if out, err = intersectAt(out, &p, &o, n); err != nil {
				return nil, err
			}
		}
		return reduce(out), nil
	}
	if !p.deep && p.least() != least || !o.deep && o.least() != least {
		return nil, nil
	}
	out, err := intersectAt(nil, &p, &o, least)
	return reduce(out), err
}

// intersectAt adds the paths of exactly n segments.
func intersectAt(out []Pattern, p, o *Pattern, n int) ([]Pattern, error) {
	columns := make([][]segment, n)
	for i := range columns {
		columns[i] = intersectSegments(p.at(i, n), o.at(i, n))
	}
	return product(out, columns, n, false)
}

// intersectDeep returns the paths of at least head+tail segments.
func intersectDeep(p, o *Pattern, head, tail int) ([]Pattern, error) {
	n := head + tail
	if n > MaxSegments {
		return nil, nil
	}
	columns := make([][]segment, n)
	for i := range columns {
		columns[i] = intersectSegments(p.at(i, n), o.at(i, n))
	}
	return product(nil, columns, head, true)
}

func intersectSegments(a, b *segment) []segment {
	switch {
	case a == nil && b == nil:
		return []segment{{glob: true}}
	case a == nil:
		return []segment{*b}
	case b == nil:
		return []segment{*a}
	}
	return a.intersect(b)
}

// product adds a pattern for each choice of one segment per column, with "**" after the first head columns
// if deep.
func product(out []Pattern, columns [][]segment, head int, deep bool) ([]Pattern, error) {
	total := 1
	for _, c := range columns {
		if total *= len(c); total > maxIntersection {
			return nil, ErrTooMany
		}
	}
	if len(out)+total > maxIntersection {
		return nil, ErrTooMany
	}
	for i := range total {
		row := make([]segment, len(columns))
		for j, c := range columns {
			row[j], i = c[i%len(c)], i/len(c)
		}
		out = append(out, must(build(row[:head:head], row[head:], deep)))
	}
	return out, nil
}

// reduce drops patterns that another one contains; of equal ones the first stays.
func reduce(ps []Pattern) []Pattern {
	var out []Pattern
	for _, p := range ps {
		if slices.ContainsFunc(out, func(o Pattern) bool { return o.Contains(p) }) {
			continue
		}
		out = slices.DeleteFunc(out, func(o Pattern) bool { return p.Contains(o) })
		out = append(out, p)
	}
	return out
}
