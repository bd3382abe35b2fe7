package route

import (
	"slices"

	"github.com/moqmesh/moqmesh/paths"
)

// Requester is the identity under which a session asks (R23). For an unknown id it excludes nothing but
// that session.
func (t *Table) Requester(id SessionID) Requester {
	x := Requester{Session: id}
	if s := t.sessions[id]; s != nil {
		x.Hop = s.identity
	}
	return x
}

// Lookup finds the route that a request of x for path takes now (R26, R27, R41). It does not allocate.
func (t *Table) Lookup(path string, x Requester) (Route, bool) {
	for n := t.root.deepest(path); n != nil; n = n.parent {
		for i, a := range n.routes {
			if !a.usable(path, x) {
				continue
			}
			r := a.route()
			if r.Goaway {
				r = standIn(r, n.routes[i+1:], path, x)
			}
			return r, true
		}
	}
	return Route{}, false
}

// standIn returns the route that serves requests in place of r, whose session is draining: among those that
// rank behind it the best local one that does not cost the maximum, else r itself (R41).
func standIn(r Route, behind []*advert, path string, x Requester) Route {
	for _, a := range behind {
		if a.usable(path, x) && a.route().standsIn() {
			return a.route()
		}
	}
	return r
}

func (r Route) standsIn() bool { return r.Source == SourceLocal && r.Cost.Compare(worst) < 0 }

// usable reports whether a route is a candidate for a request (R27), refusals aside.
func (a *advert) usable(path string, x Requester) bool {
	return !a.stale && a.visible(x.Session, x.Hop) && (!x.Local || a.session.Source == SourceLocal) && a.serves(path)
}

// Candidates lists the routes for path in the order in which they are to be tried: those of the deepest
// prefix that has one. Routes for which refused (may be nil) says true are left out first (R27).
func (t *Table) Candidates(path string, x Requester, refused func(Route) bool) []Route {
	for n := t.root.deepest(path); n != nil; n = n.parent {
		var out []Route
		for _, a := range n.routes {
			if !a.usable(path, x) {
				continue
			}
			if r := a.route(); refused == nil || !refused(r) {
				out = append(out, r)
			}
		}
		if len(out) > 0 {
			return prefer(out)
		}
	}
	return nil
}

// prefer turns the order of the ranking into that of requests: local routes below the maximum come before the
// first one whose session is draining (R41).
func prefer(routes []Route) []Route {
	i := slices.IndexFunc(routes, func(r Route) bool { return r.Goaway })
	if i >= 0 {
		slices.SortStableFunc(routes[i:], func(a, b Route) int {
			switch x, y := a.standsIn(), b.standsIn(); {
			case x == y:
				return 0
			case x:
				return -1
			}
			return 1
		})
	}
	return routes
}

// Suspended reports whether a stale route could serve path for x if it were live. That state does not last: it comes back,
// ends, or is replaced by what its sender has beside it (R44).
func (t *Table) Suspended(path string, x Requester) bool {
	for n := t.root.deepest(path); n != nil; n = n.parent {
		for _, a := range n.routes {
			if a.stale && a.visible(x.Session, x.Hop) && (!x.Local || a.session.Source == SourceLocal) && a.serves(path) {
				return true
			}
		}
	}
	return false
}

// Through reports whether a route that could serve path, now or once it is no longer stale, is hidden from
// x, so that x needs a front of its own.
func (t *Table) Through(path string, x Requester) bool {
	for n := t.root.deepest(path); n != nil; n = n.parent {
		for _, a := range n.routes {
			if !a.visible(x.Session, x.Hop) && a.serves(path) {
				return true
			}
		}
	}
	return false
}

// View selects what Names lists.
type View struct {
	// Root is an absolute prefix; names are relative to it.
	Root string
	// Subscribe is the grant of who asks, absolute, and Mounts what it reads elsewhere, see SessionInfo.
	Subscribe paths.Set
	Mounts    paths.Mounts
	// Through is as in Listen.
	Through *paths.Mount
	// Hidden includes names with a segment that starts with a dot (R30).
	Hidden bool
	// Requester is who asks, see Table.Requester.
	Requester
}

// Names lists the prefixes at or below a root that are advertised, sorted and relative to it, as an announce
// stream would. Prefixes at or above the root are the empty name (R29).
func (t *Table) Names(v View) []string {
	asking := &session{SessionInfo: SessionInfo{ID: v.Session, Subscribe: v.Subscribe, Mounts: v.Mounts, Hidden: v.Hidden}}
	top := t.root.deepest(v.Root)
	c := &consumer{view: asking.view(v.Through), session: asking, x: v.Hop, local: v.Local, root: &node{prefix: v.Root, parent: top}}
	if len(top.prefix) == len(v.Root) {
		c.root = top
	}
	var out []string
	if c.bestTop() != nil {
		out = append(out, "")
	}
	c.walk(c.heads, func(n *node) {
		if c.best(n) != nil {
			out = append(out, c.name(n))
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// route is the snapshot of an advertisement that is a route.
func (a *advert) route() Route {
	return Route{
		Session: a.session.ID,
		Advert:  a.id,
		Prefix:  a.node.prefix,
		Hops:    a.content.list.hops,
		Cost:    a.content.cost,
		Via:     a.session.identity,
		Source:  a.session.Source,
		Seq:     a.seq,
		Goaway:  a.session.goaway,
		Live:    !a.stale,
	}
}
