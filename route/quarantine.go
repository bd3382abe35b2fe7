package route

import (
	"cmp"
	"time"
)

// waitTime is how long a worse route of the same publisher waits after a retraction (R35).
const waitTime = 2 * time.Second

// wait says that a name was retracted from c, and what c had held.
type wait struct {
	c    *consumer
	name string
	was  *content
}

// quarantine notes a retraction, if the option is on and the route says whose it was.
func (t *Table) quarantine(c *consumer, n *node, was *content) {
	if !t.cfg.Quarantine || first(was) == 0 {
		return
	}
	if c.waits == nil {
		c.waits = make(map[string]*timer[wait])
	}
	name := c.name(n)
	t.unwait(c, name)
	c.waits[name] = t.waits.push(t.now+waitTime, wait{c, name, was})
}

// waitsFor reports whether best must wait before it is announced anew. If not, the retraction is forgotten.
func (t *Table) waitsFor(c *consumer, n *node, best *content) bool {
	if len(c.waits) == 0 {
		return false
	}
	name := c.name(n)
	w, ok := c.waits[name]
	if ok && first(best) == first(w.value.was) && worse(best, w.value.was) {
		return true
	}
	t.unwait(c, name)
	return false
}

func (t *Table) unwait(c *consumer, name string) {
	if w, ok := c.waits[name]; ok {
		t.waits.remove(w)
		delete(c.waits, name)
	}
}

// expireWait announces what waited, if it is still there.
func (t *Table) expireWait(w *timer[wait]) {
	c, name := w.value.c, w.value.name
	t.unwait(c, name)
	if name == "" {
		c.top = t.step(c, nil, c.top, c.bestTop())
		return
	}
	n := c.root
	for next := range c.root.down(name) {
		n = next
	}
	if c.name(n) == name {
		t.tellOne(c, n)
	}
}

// first is the first hop, 0 if there is none.
func first(c *content) Hop {
	if len(c.list.hops) == 0 {
		return 0
	}
	return c.list.hops[0]
}

// worse compares cost and length of the list.
func worse(a, b *content) bool {
	return cmp.Or(a.cost.Compare(b.cost), cmp.Compare(len(a.list.hops), len(b.list.hops))) > 0
}
