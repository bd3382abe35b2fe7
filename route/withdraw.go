package route

import (
	"slices"
	"time"
)

// markTime is how long a withdrawal is believed at most (R44).
const markTime = 2 * time.Second

// mark says that hop has withdrawn its last advertisement of the prefix of node (R43).
type mark struct {
	node *node
	hop  Hop
}

// withdrawn sets the mark for an explicit end of a route that p sent, unless p still claims the prefix by
// another live route (R43, R45). settleMarks must follow.
func (t *Table) withdrawn(n *node, p Hop) {
	claims := func(a *advert) bool { return !a.stale && a.content.list.last() == p }
	if slices.ContainsFunc(n.routes, claims) {
		return
	}
	t.unmark(n, p)
	r := n.rarely()
	r.marks = append(r.marks, t.marks.push(t.now+markTime, mark{n, p}))
}

// unmark forgets that p withdrew the prefix of n.
func (t *Table) unmark(n *node, p Hop) {
	for i, m := range n.marks() {
		if m.value.hop == p {
			t.marks.remove(m)
			n.rare.marks = slices.Delete(n.rare.marks, i, i+1)
			return
		}
	}
}

// marked reports whether a route is to be stale.
func marked(a *advert) bool {
	return slices.ContainsFunc(a.node.marks(), func(m *timer[mark]) bool { return a.content.list.passes(m.value.hop) })
}

// settleMarks forgets marks that concern no route any more (R44), and makes the routes of n stale or live
// accordingly.
func (t *Table) settleMarks(n *node) {
	if n.rare != nil {
		n.rare.marks = slices.DeleteFunc(n.rare.marks, func(m *timer[mark]) bool {
			passes := func(a *advert) bool { return a.content.list.passes(m.value.hop) }
			if slices.ContainsFunc(n.routes, passes) {
				return false
			}
			t.marks.remove(m)
			return true
		})
	}
	for _, a := range n.routes {
		if stale := marked(a); stale != a.stale {
			a.stale = stale
			t.touch(n)
			if stale {
				t.emit(RouteGone{a.session.ID, a.id, n.prefix, GoneStale})
			}
		}
	}
}

// expireMark ends a mark that was not lifted in time: what is still advertised is real (R44).
func (t *Table) expireMark(m mark) {
	t.unmark(m.node, m.hop)
	t.settleMarks(m.node)
}
