package route

import (
	"slices"
	"time"
)

// Ranked is a route and why it is not further ahead.
type Ranked struct {
	Route
	// Step is the key by which the route before this one won; StepNone for the first.
	Step Step
}

// Prefix is the state of one advertised prefix.
type Prefix struct {
	Prefix   string
	Routes   []Ranked // best first, stale ones included
	Declined []Declined
	Marks    []Mark
}

// Mark says that a peer has withdrawn its last advertisement of the prefix; routes through it are stale until
// then (R43, R44).
type Mark struct {
	Hop   Hop
	Until time.Time
}

// Hold is an update that waits (4.1).
type Hold struct {
	Consumer ConsumerID
	Session  SessionID
	Name     string
	Due      time.Time
}

// Snapshot is the whole table.
type Snapshot struct {
	Prefixes []Prefix // by prefix
	Holds    []Hold   // in the order in which they will fire
}

// Snapshot copies the state of the table for display. It takes time in proportion to its size.
func (t *Table) Snapshot() Snapshot {
	var out Snapshot
	t.root.subtree(func(n *node) {
		if len(n.routes)+len(n.parked()) > 0 {
			out.Prefixes = append(out.Prefixes, t.prefix(n))
		}
	})
	slices.SortFunc(out.Prefixes, func(a, b Prefix) int {
		if a.Prefix < b.Prefix {
			return -1
		}
		return 1
	})
	for h := t.holds.first; h != nil; h = h.next {
		c := h.value.c
		out.Holds = append(out.Holds, Hold{c.id, c.session.ID, c.name(h.value.node), t.base.Add(h.due)})
	}
	return out
}

func (t *Table) prefix(n *node) Prefix {
	out := Prefix{Prefix: n.prefix}
	for i, a := range n.routes {
		r := Ranked{Route: a.route()}
		if i > 0 {
			_, r.Step = decide(n.routes[i-1], a)
		}
		out.Routes = append(out.Routes, r)
	}
	for _, a := range n.parked() {
		out.Declined = append(out.Declined, Declined{a.session.ID, a.id, n.prefix, a.reason})
	}
	for _, m := range n.marks() {
		out.Marks = append(out.Marks, Mark{m.value.hop, t.base.Add(m.due)})
	}
	return out
}

// Explain lists all routes that could serve a request of x for path, best first over all covering prefixes,
// and the step that put each behind the one before. What Lookup returns differs from the first only where
// that one is draining (R41).
func (t *Table) Explain(path string, x Requester) []Ranked {
	var out []Ranked
	for n := t.root.deepest(path); n != nil; n = n.parent {
		var last *advert
		for _, a := range n.routes {
			if !a.usable(path, x) {
				continue
			}
			r := Ranked{Route: a.route()}
			switch {
			case last != nil:
				_, r.Step = decide(last, a)
			case len(out) > 0:
				r.Step = StepPrefix
			}
			last, out = a, append(out, r)
		}
	}
	return out
}
