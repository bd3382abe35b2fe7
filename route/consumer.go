package route

import (
	"slices"
	"strings"

	"github.com/moqmesh/moqmesh/paths"
)

// consumer is one announce stream that we feed, or a reader in this process.
type consumer struct {
	*view
	id      ConsumerID
	session *session
	root    *node
	x       Hop  // identity from which routes are hidden (R23)
	local   bool // sees routes of source local only (R37)
	top     held // of the empty name, presented by prefixes at or above root
	waits   map[string]*timer[wait]
	round   uint64
}

func (t *Table) listen(e *Listen) error {
	s := t.sessions[e.Session]
	switch {
	case s == nil:
		return ErrUnknownSession
	case t.consumers[e.Consumer] != nil:
		return ErrInUse
	}
	x := s.identity
	if s.Hop == 0 && e.Exclude != 0 && s.Wire.traits().excludes {
		x = e.Exclude
		t.identify(s, x)
		t.settle()
	}
	c := &consumer{view: s.own, id: e.Consumer, session: s, x: x, local: e.Local, root: t.root.make(e.Root)}
	if e.Through != nil {
		c.view = s.view(e.Through)
	}
	c.top.c = c
	t.consumers[c.id] = c
	s.consumers = append(s.consumers, c)
	r := c.root.rarely()
	i, _ := slices.BinarySearchFunc(r.consumers, c, byConsumer)
	r.consumers = slices.Insert(r.consumers, i, c)
	c.root.addEars(1)

	t.refresh(c, c.heads)
	return nil
}

func (t *Table) unlisten(id ConsumerID) error {
	c := t.consumers[id]
	if c == nil {
		return ErrUnknownConsumer
	}
	t.close(c)
	return nil
}

// close removes a consumer with all it holds, without telling it.
func (t *Table) close(c *consumer) {
	c.walk(c.heads, func(n *node) {
		if i, ok := n.holder(c); ok {
			t.unhold(&n.held[i])
			n.held = slices.Delete(n.held, i, i+1)
			if len(n.held) == 0 {
				n.held = nil
			}
		}
	})
	t.unhold(&c.top)
	for _, w := range c.waits {
		t.waits.remove(w)
	}
	delete(t.consumers, c.id)
	c.session.consumers = slices.DeleteFunc(c.session.consumers, func(o *consumer) bool { return o == c })
	c.root.rare.consumers = slices.DeleteFunc(c.root.rare.consumers, func(o *consumer) bool { return o == c })
	c.root.addEars(-1)
	c.root.prune()
}

// walk calls f for the nodes strictly below the root of c that may concern it: those above and below the
// heads of what it may see. Some may come twice.
func (c *consumer) walk(heads []string, f func(*node)) {
	for _, head := range heads {
		below, ok := paths.Suffix(c.root.prefix, head)
		switch {
		case ok && below != "":
			last := c.root
			for n := range c.root.down(below) {
				f(n)
				last = n
			}
			if len(last.prefix) != len(head) {
				continue
			}
			for _, n := range last.children {
				n.subtree(f)
			}
		case paths.Covers(head, c.root.prefix):
			for _, n := range c.root.children {
				n.subtree(f)
			}
			return
		}
	}
}

// refresh brings c up to date with all nodes that concern it, in the order of their names.
func (t *Table) refresh(c *consumer, heads []string) {
	c.top = t.step(c, nil, c.top, c.bestTop())
	var nodes []*node
	c.walk(heads, func(n *node) {
		if len(n.routes)+len(n.held) > 0 {
			nodes = append(nodes, n)
		}
	})
	slices.SortFunc(nodes, func(a, b *node) int { return strings.Compare(a.prefix, b.prefix) })
	for _, n := range nodes {
		t.tellOne(c, n)
	}
}

// tellOne brings c up to date with a node strictly below its root.
func (t *Table) tellOne(c *consumer, n *node) {
	i, ok := n.holder(c)
	h := held{c: c}
	if ok {
		h = n.held[i]
	}
	switch h = t.step(c, n, h, c.best(n)); {
	case ok && h.sent == nil:
		n.held = slices.Delete(n.held, i, i+1)
	case ok:
		n.held[i] = h
	case h.sent != nil:
		n.held = slices.Insert(n.held, i, h)
	}
}

// holder finds c among those who hold n.
func (n *node) holder(c *consumer) (int, bool) {
	return slices.BinarySearchFunc(n.held, c, func(h held, c *consumer) int { return byConsumer(h.c, c) })
}

// name is what n, nil for those at or above the root, is called on the stream of c.
func (c *consumer) name(n *node) string {
	if n == nil {
		return ""
	}
	suffix, _ := paths.Suffix(c.root.prefix, n.prefix)
	return suffix
}

// best is what c should hold of a node strictly below its root; nil if nothing (R29).
func (c *consumer) best(n *node) *content {
	switch {
	case len(n.routes) == 0, !c.session.Hidden && paths.Hidden(c.name(n)): // (R30)
		return nil
	case c.through != nil && !c.through.Names(n.prefix):
		return nil
	case c.through == nil && len(c.session.Mounts) > 0:
		if _, mounted := c.session.Mounts.Over(n.prefix); mounted {
			return nil
		}
	}
	return c.bestOf(n, n.prefix)
}

// bestTop is what c should hold under the empty name: of the prefixes at or above its root that have a
// route for it the longest wins.
func (c *consumer) bestTop() *content {
	for n := c.root; n != nil; n = n.parent {
		if best := c.bestOf(n, c.root.prefix); best != nil {
			return best
		}
	}
	return nil
}

// bestOf is the best route of n that may be shown to c; top is the deeper one of its prefix and c's root.
func (c *consumer) bestOf(n *node, top string) *content {
	for _, a := range n.routes {
		if !a.stale && c.sees(a) && a.shares(top, c.subscribe) {
			return a.content
		}
	}
	return nil
}

// sees reports whether a route may be announced to c, grants aside.
func (c *consumer) sees(a *advert) bool {
	if !a.visible(c.session.ID, c.x) || c.local && a.session.Source != SourceLocal {
		return false
	}
	form := c.session.Wire.traits().list
	switch {
	case c.session.Wire == WireLocal:
		return true
	case c.session.ClusterPeer && !form.names() && a.session.Source == SourcePeer && a.content.list.anon:
		return false // (R33b)
	}
	return form == listNone || len(a.content.list.hops) < c.session.maxHops // (R4)
}
