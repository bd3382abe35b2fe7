package route

import (
	"iter"
	"slices"
	"strings"

	"github.com/moqmesh/moqmesh/paths"
)

// node is a prefix that is advertised, listened to, or above such a one. The nodes form a trie by segments.
type node struct {
	prefix   string
	parent   *node
	children map[string]*node // by last segment; nil if none
	routes   []*advert        // ranked, stale ones included
	held     []held           // what consumers rooted strictly above hold or wait for, by consumer id
	rare     *rare            // what few nodes have; nil if none
	ears     int32            // consumers rooted here or below
	visited  bool             // is among Table.dirty
	changed  bool             // and its routes are not what they were
}

// rare is the part of a node that is usually empty.
type rare struct {
	consumers []*consumer        // rooted here, by id
	parked    []*advert          // declined or detached, in order of arrival (R12)
	marks     []*timer[mark]     // withdrawn by these peers (R43)
	listening map[*node]struct{} // children with ears
}

// advert is one advertisement of one session: a route, or parked.
type advert struct {
	session *session
	node    *node
	content *content // nil where it was declined before its list and cost were known
	id      AdvertID
	seq     uint64
	stale   bool   // R43
	reason  Reason // why it is parked; 0 for a route
}

func (n *node) rarely() *rare {
	if n.rare == nil {
		n.rare = new(rare)
	}
	return n.rare
}

func (n *node) consumers() []*consumer {
	if n.rare == nil {
		return nil
	}
	return n.rare.consumers
}

func (n *node) parked() []*advert {
	if n.rare == nil {
		return nil
	}
	return n.rare.parked
}

func (n *node) marks() []*timer[mark] {
	if n.rare == nil {
		return nil
	}
	return n.rare.marks
}

// of finds the advertisement of s at n, route or parked.
func (n *node) of(s *session) *advert {
	for _, list := range [...][]*advert{n.routes, n.parked()} {
		for _, a := range list {
			if a.session == s {
				return a
			}
		}
	}
	return nil
}

// down yields the existing nodes on the way from n, exclusive, to the relative path below, inclusive.
func (n *node) down(below string) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		at := n
		for seg := range paths.Segments(below) {
			if at = at.children[seg]; at == nil || !yield(at) {
				return
			}
		}
	}
}

// deepest is the lowest existing node on the way to path, starting from the root n.
func (n *node) deepest(path string) *node {
	for next := range n.down(path) {
		n = next
	}
	return n
}

// find returns the node of path, nil if it does not exist.
func (n *node) find(path string) *node {
	if d := n.deepest(path); len(d.prefix) == len(path) {
		return d
	}
	return nil
}

// make returns the node of path below the root n, creating it and what is missing above.
func (n *node) make(path string) *node {
	at := n.deepest(path)
	if len(at.prefix) == len(path) {
		return at
	}
	path = strings.Clone(path) // it may be part of a larger message
	rest, _ := paths.Suffix(at.prefix, path)
	end := len(path) - len(rest)
	for seg := range paths.Segments(rest) {
		end += len(seg)
		child := &node{prefix: path[:end], parent: at}
		if at.children == nil {
			at.children = make(map[string]*node)
		}
		at.children[path[end-len(seg):end]] = child
		at, end = child, end+1
	}
	return at
}

// prune removes n, and what is above it, as far as nothing needs it.
func (n *node) prune() {
	for n.parent != nil && n.idle() {
		up := n.parent
		delete(up.children, n.prefix[len(up.prefix)+min(len(up.prefix), 1):])
		if len(up.children) == 0 {
			up.children = nil
		}
		n = up
	}
}

func (n *node) idle() bool {
	if r := n.rare; r != nil {
		if len(r.consumers)+len(r.parked)+len(r.marks)+len(r.listening) > 0 {
			return false
		}
		n.rare = nil
	}
	return len(n.children)+len(n.routes)+len(n.held) == 0
}

// subtree calls f for n and every node below, in no particular order.
func (n *node) subtree(f func(*node)) {
	f(n)
	for _, child := range n.children {
		child.subtree(f)
	}
}

// addEars counts a consumer rooted at n; d is 1 or -1.
func (n *node) addEars(d int32) {
	for ; n != nil; n = n.parent {
		n.ears += d
		switch up := n.parent; {
		case up == nil:
		case n.ears == 0:
			delete(up.rare.listening, n)
		case n.ears == d: // the first
			r := up.rarely()
			if r.listening == nil {
				r.listening = make(map[*node]struct{})
			}
			r.listening[n] = struct{}{}
		}
	}
}

// audience appends the consumers rooted at n or below.
func (n *node) audience(out []*consumer) []*consumer {
	if n.rare == nil {
		return out
	}
	out = append(out, n.rare.consumers...)
	for child := range n.rare.listening {
		out = child.audience(out)
	}
	return out
}

// audienceAbove appends the consumers rooted strictly above n.
func (n *node) audienceAbove(out []*consumer) []*consumer {
	for up := n.parent; up != nil; up = up.parent {
		out = append(out, up.consumers()...)
	}
	return out
}

func byConsumer(a, b *consumer) int {
	switch {
	case a.id < b.id:
		return -1
	case a.id > b.id:
		return 1
	}
	return 0
}

func sortConsumers(cs []*consumer) []*consumer {
	if !slices.IsSortedFunc(cs, byConsumer) {
		slices.SortFunc(cs, byConsumer)
	}
	return cs
}
