package route

import (
	"encoding/binary"
	"slices"
)

// hopList is an immutable hop list, stored once however many routes have it.
type hopList struct {
	hops []Hop
	anon bool   // holds a 0 (R6)
	refs int    // adverts whose content has it
	key  string // its entry in the interner
}

func (l *hopList) has(h Hop) bool { return slices.Contains(l.hops, h) }

// last is the sender, 0 where it is unknown or there is none.
func (l *hopList) last() Hop {
	if len(l.hops) == 0 {
		return 0
	}
	return l.hops[len(l.hops)-1]
}

// passes reports whether the route went through p, which does not include starting there (R43).
func (l *hopList) passes(p Hop) bool { return len(l.hops) > 1 && slices.Contains(l.hops[1:], p) }

// interner keeps the hop lists in use.
type interner struct {
	lists map[string]*hopList
	buf   []byte
}

// get returns the stored list equal to hops, which it copies if need be, and counts one more use.
func (in *interner) get(hops []Hop) *hopList {
	in.buf = in.buf[:0]
	for _, h := range hops {
		in.buf = binary.AppendUvarint(in.buf, uint64(h))
	}
	l, ok := in.lists[string(in.buf)]
	if !ok {
		l = &hopList{anon: slices.Contains(hops, 0), key: string(in.buf)}
		if len(hops) > 0 {
			l.hops = append(make([]Hop, 0, len(hops)), hops...)
		}
		in.lists[l.key] = l
	}
	l.refs++
	return l
}

// put ends one use. Consumers may hold on to the list.
func (in *interner) put(l *hopList) {
	if l.refs--; l.refs == 0 {
		delete(in.lists, l.key)
	}
}

// content is what an advertisement says once it is a route. It is immutable: an update replaces it, and what
// consumers were sent stays as it was.
type content struct {
	list *hopList
	cost Cost
}

func (c *content) equal(o *content) bool {
	return c == o || c.cost == o.cost && slices.Equal(c.list.hops, o.list.hops)
}
