package route

import "time"

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
type Table struct{}

// New returns an empty table.
func New(cfg Config) *Table { return &Table{} }

// Apply takes in one event at now, which never runs backwards. Timers due by then fire first. The effects
// are to be carried out even if there is an error, which concerns the event alone: it changed nothing.
func (t *Table) Apply(now time.Time, e Event) ([]Effect, error) { return nil, nil }

// Deadline is when Expire must be called next; false if nothing is pending.
func (t *Table) Deadline() (time.Time, bool) { return time.Time{}, false }

// Expire fires the timers that are due at now.
func (t *Table) Expire(now time.Time) []Effect { return nil }

// Requester is the identity under which a session asks (R23). For an unknown id it excludes the session only.
func (t *Table) Requester(id SessionID) Requester { return Requester{} }

// Lookup finds the route that a request of x for path takes now (R26, R27, R41). It does not allocate.
func (t *Table) Lookup(path string, x Requester) (Route, bool) { return Route{}, false }

// Candidates lists the routes for path in the order in which they are to be tried: those of the deepest
// prefix that has one. Routes for which refused (may be nil) says true are left out first (R27).
func (t *Table) Candidates(path string, x Requester, refused func(Route) bool) []Route { return nil }

// Through reports whether a route that could serve path, now or once it is no longer stale, passes through
// x, so that x needs a front of its own.
func (t *Table) Through(path string, x Requester) bool { return false }

// LinkPrice is the price of a link: our own configured one, else what the peer declared, else 1 (R14).
func LinkPrice(own, declared *uint64) uint64 {
	switch {
	case own != nil:
		return min(*own, MaxCost)
	case declared != nil:
		return min(*declared, MaxCost)
	}
	return 1
}
