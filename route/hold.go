package route

import (
	"slices"
	"time"
)

// holdTime is how long a change of a held name waits (4.1).
const holdTime = 300 * time.Millisecond

// held is what a consumer holds of one name.
type held struct {
	c    *consumer
	sent *content     // what the peer has; nil if nothing
	hold *timer[hold] // running while best differs from sent
}

// hold is an update that waits. node is nil for the empty name.
type hold struct {
	c    *consumer
	node *node
}

// step is the table of 4.1 for one consumer and name: it compares what c holds with the best, tells c what
// it must hear at once, and starts or stops the hold. It returns what c holds then.
func (t *Table) step(c *consumer, n *node, h held, best *content) held {
	switch {
	case h.sent == nil && best == nil:
	case h.sent == nil:
		if t.waitsFor(c, n, best) {
			break
		}
		t.tellNew(c, n, best)
		h.sent = best
	case best == nil:
		t.unhold(&h)
		t.emit(Tell{Consumer: c.id, Kind: TellGone, Name: c.name(n)})
		t.quarantine(c, n, h.sent)
		h.sent = nil
	case c.session.differs(h.sent, best):
		if h.hold == nil {
			h.hold = t.holds.push(t.now+holdTime, hold{c, n})
		}
	default:
		t.unhold(&h)
		if c.session.updates() {
			h.sent = best // the same as far as the peer can tell
		}
	}
	return h
}

func (t *Table) tellNew(c *consumer, n *node, best *content) {
	t.emit(Tell{c.id, TellNew, c.name(n), best.list.hops, best.cost})
}

func (t *Table) unhold(h *held) {
	if h.hold != nil {
		t.holds.remove(h.hold)
		h.hold = nil
	}
}

// expireHold sends the update that waited, with what is best now.
func (t *Table) expireHold(timer *timer[hold]) {
	c, n := timer.value.c, timer.value.node
	h, best := &c.top, (*content)(nil)
	if n == nil {
		best = c.bestTop()
	} else {
		i, _ := n.holder(c)
		h, best = &n.held[i], c.best(n)
	}
	t.unhold(h)
	h.sent = best
	if !c.session.Wire.traits().inPlace { // (R33a)
		t.emit(Tell{Consumer: c.id, Kind: TellGone, Name: c.name(n)})
		t.tellNew(c, n, best)
		return
	}
	t.emit(Tell{c.id, TellChange, c.name(n), best.list.hops, best.cost})
}

// updates reports whether the peer can be told of changes to what it holds: its wire updates in place (R33),
// or it is a cluster peer on moq-lite 04 (R33a).
func (s *session) updates() bool {
	return s.Wire.traits().inPlace || s.Wire == WireLite04 && s.ClusterPeer
}

// differs reports whether an update is due: the peer can be told, and its wire can carry the difference (R32).
func (s *session) differs(a, b *content) bool {
	if a == b || !s.updates() {
		return false
	}
	traits := s.Wire.traits()
	if traits.cost == costBoth && a.cost != b.cost || traits.cost == costWarm && a.cost.Warm != b.cost.Warm {
		return true
	}
	return traits.list != listNone && a.list != b.list && !slices.Equal(a.list.hops, b.list.hops)
}
