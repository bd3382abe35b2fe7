package route

import (
	"fmt"
	"slices"
	"time"
)

// Config of a Table.
type Config struct {
	// Hop is our own identity, non-zero (R1).
	Hop Hop
	// MaxHops caps hop lists (R4); 0 = MaxHops.
	MaxHops int
	// Quarantine delays a worse route of the same publisher for 2 s after a retraction (R35).
	Quarantine bool
}

// Table is the relay's view of all routes and of what its consumers hold. It is not safe for concurrent use.
type Table struct {
	cfg       Config
	root      *node
	sessions  map[SessionID]*session
	consumers map[ConsumerID]*consumer
	lists     interner
	seq       uint64 // of the newest route

	base    time.Time // of the first call; times are kept relative to it
	started bool
	now     time.Duration
	holds   queue[hold]
	marks   queue[mark]
	waits   queue[wait]

	// Of the event at hand.
	effects  []Effect
	dirty    []*node
	round    uint64 // counts settle passes
	scratch  [MaxHops]Hop
	audience []*consumer
	next     []held
}

// New returns an empty table.
func New(cfg Config) *Table {
	if cfg.MaxHops <= 0 || cfg.MaxHops > MaxHops {
		cfg.MaxHops = MaxHops
	}
	return &Table{
		cfg:       cfg,
		root:      new(node),
		sessions:  make(map[SessionID]*session),
		consumers: make(map[ConsumerID]*consumer),
		lists:     interner{lists: make(map[string]*hopList)},
	}
}

// Apply takes in one event at now, which never runs backwards. Timers due by then fire first. The effects
// are to be carried out even if there is an error, which concerns the event alone: it changed nothing.
func (t *Table) Apply(now time.Time, e Event) ([]Effect, error) {
	t.expire(t.at(now))
	err := t.apply(e)
	t.settle()
	return t.take(), err
}

func (t *Table) apply(e Event) error {
	switch e := e.(type) {
	case SessionUp:
		return t.sessionUp(&e.SessionInfo)
	case SessionDown:
		return t.sessionDown(e.ID)
	case SessionGrant:
		return t.sessionGrant(&e)
	case Announce:
		return t.announce(&e)
	case Update:
		return t.update(&e)
	case Withdraw:
		return t.withdraw(&e)
	case Goaway:
		return t.drain(e.Session)
	case Listen:
		return t.listen(&e)
	case Unlisten:
		return t.unlisten(e.Consumer)
	}
	return fmt.Errorf("unknown event %T", e)
}

// Deadline is when Expire must be called next; false if nothing is pending.
func (t *Table) Deadline() (time.Time, bool) {
	due := min(t.holds.due(), t.marks.due(), t.waits.due())
	if due == never {
		return time.Time{}, false
	}
	return t.base.Add(due), true
}

// Expire fires the timers that are due at now, each as if at its own time.
func (t *Table) Expire(now time.Time) []Effect {
	t.expire(t.at(now))
	return t.take()
}

// at converts a time, and keeps it from running backwards.
func (t *Table) at(now time.Time) time.Duration {
	if !t.started {
		t.base, t.started = now, true
	}
	return max(now.Sub(t.base), t.now)
}

// expire fires what is due by now, the earliest first. Of what is due at one instant marks come first, so
// that an update says what is so from then on; then waits, then holds.
func (t *Table) expire(now time.Duration) {
	for {
		due := min(t.holds.due(), t.marks.due(), t.waits.due())
		if due > now {
			break
		}
		t.now = due
		switch due {
		case t.marks.due():
			t.expireMark(t.marks.first.value)
		case t.waits.due():
			t.expireWait(t.waits.first)
		default:
			t.expireHold(t.holds.first)
		}
		t.settle()
	}
	t.now = now
}

func (t *Table) emit(e Effect) { t.effects = append(t.effects, e) }

// take returns what was emitted since the last time.
func (t *Table) take() []Effect {
	out := t.effects
	t.effects = nil
	return out
}

// touch notes that the routes of n are not what they were.
func (t *Table) touch(n *node) {
	t.visit(n)
	n.changed = true
}

// visit notes that n may be idle.
func (t *Table) visit(n *node) {
	if !n.visited {
		n.visited = true
		t.dirty = append(t.dirty, n)
	}
}

// settle ends an event: it compares, once and after all consequences, what consumers hold with what they
// should (4.1).
func (t *Table) settle() {
	for _, n := range t.dirty {
		if n.changed {
			t.emit(Changed{n.prefix})
		}
	}
	t.round++
	for _, n := range t.dirty {
		if n.changed {
			t.tell(n)
		}
		n.changed, n.visited = false, false
	}
	for _, n := range t.dirty {
		n.prune()
	}
	clear(t.dirty)
	t.dirty = t.dirty[:0]
	if cap(t.dirty) > 1024 {
		t.dirty = nil
	}
}

// tell brings all consumers of n up to date, in the order of their ids.
func (t *Table) tell(n *node) {
	above := sortConsumers(n.audienceAbove(t.audience[:0]))
	t.tellAbove(n, above)
	clear(above)
	below := sortConsumers(n.audience(above[:0]))
	for _, c := range below {
		if c.round != t.round { // several prefixes may have changed that present as its empty name
			c.round = t.round
			c.top = t.step(c, nil, c.top, c.bestTop())
		}
	}
	t.audience = slices.Delete(below, 0, len(below))
}

// tellAbove does so for consumers rooted strictly above n, to whom it has a name of its own.
func (t *Table) tellAbove(n *node, above []*consumer) {
	next, i := t.next[:0], 0
	for _, c := range above {
		h := held{c: c}
		if i < len(n.held) && n.held[i].c == c {
			h = n.held[i]
			i++
		}
		if h = t.step(c, n, h, c.best(n)); h.sent != nil {
			next = append(next, h)
		}
	}
	clear(n.held)
	n.held = append(n.held[:0], next...)
	if len(next) == 0 {
		n.held = nil
	}
	clear(next)
	t.next = next[:0]
}
