package route

// Effect is something the owner must do, or may want to know. Within one Apply or Expire the order is: what
// became of routes, then Changed, then Tell; if several timers fire, that order holds for each.
type Effect interface{ effect() }

// TellKind says what a Tell does.
type TellKind uint8

// Kinds of Tell.
const (
	TellNew    TellKind = iota // announce
	TellChange                 // update in place; never on wires without it
	TellGone                   // retract
)

// GoneHow says how a route went.
type GoneHow uint8

// Ways for a route to go.
const (
	GoneLost      GoneHow = iota // its session or stream ended (R38, R39)
	GoneWithdrawn                // ended explicitly
	GoneStale                    // the peer it was derived from withdrew (R43); it may come back
	GoneDetached                 // an update, or the grant, made it unacceptable (R12)
)

// Reason says why an advertisement is not used (section 2.5).
type Reason uint8

// Reasons to decline.
const (
	Reflected   Reason = iota + 1 // the sender's id is in the list it sent (R8)
	Loop                          // our own id is in the list (R9)
	NoRoom                        // the list is full (R8, R5)
	StampTaken                    // the stamp is in the list already (R5)
	TooManyHops                   // longer than the configured cap (R4)
	NotGranted                    // no overlap with the publish grant (R11)
	TooDeep                       // the absolute prefix has too many segments
)

var reasonNames = [...]string{
	"", "reflected by its sender", "loop", "no room in the hop list", "stamp in the hop list", "too many hops",
	"outside of the grant", "too deep",
}

// String says it in words, for the log.
func (r Reason) String() string { return reasonNames[min(int(r), len(reasonNames)-1)] }

// Effects.
type (
	// Tell is one message to one consumer (R31).
	Tell struct {
		Consumer ConsumerID
		Kind     TellKind
		Name     string // relative to the consumer's root
		Hops     []Hop  // as stored, without our own id; nil for TellGone; shared, read only
		Cost     Cost   // within MaxCost
	}

	// Changed says that routes at Prefix appeared, changed, went stale, live or away: whatever serves a path
	// at or below it must be selected anew, now (R26).
	Changed struct{ Prefix string }

	// RouteGone says that a route can no longer be used. One that had gone stale is reported again when
	// it ends.
	RouteGone struct {
		Session SessionID
		Advert  AdvertID
		Prefix  string
		How     GoneHow
	}

	// Declined says that an advertisement is kept without being used (R12). For the log only.
	Declined struct {
		Session SessionID
		Advert  AdvertID
		Prefix  string
		Reason  Reason
	}
)

func (Tell) effect()      {}
func (Changed) effect()   {}
func (RouteGone) effect() {}
func (Declined) effect()  {}
