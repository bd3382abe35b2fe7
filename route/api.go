// Package route is the relay's route table: which advertisement of a prefix is best, who may see and use it, and
// what each consumer must be told when.
//
// It is pure: no goroutine, lock, clock, randomness or logger. The owner feeds a [Table] events with
// [Table.Apply] and carries out the [Effect] values it returns, in order; it calls [Table.Expire] when
// [Table.Deadline] has come, and asks [Table.Lookup] or [Table.Candidates] where a request goes. Rule ids
// such as (R23) are those of the routing design.
package route

// Hop is the 62-bit identity of a relay or publisher; 0 names nobody.
type Hop uint64

// Cost is a pair of prices: of one more subscription (warm) and of the same path with nothing cached (cold).
type Cost struct{ Warm, Cold uint64 }

// Limits of costs and hop lists.
const (
	MaxCost = 1<<62 - 1 // unknown (cold) or draining
	MaxSum  = 1<<62 - 2 // where a sum stops (R15)
	MaxHops = 32
)

// Ids. The owner chooses them; they are unique among what lives (an AdvertID within its session), and never 0.
type (
	// SessionID names a session, or a publisher or reader in this process.
	SessionID uint64
	// AdvertID names an advertisement of one session for as long as it lives.
	AdvertID uint64
	// ConsumerID names an announce stream that we feed, or a reader in this process.
	ConsumerID uint64
)

// Source says where a route entered (R36).
type Source uint8

// Sources.
const (
	SourceLocal Source = iota // clients, publishers in this process, accepted peers without peer: true
	SourcePeer                // dialed for clustering, a LAN peer, or granted peer: true
)

// String is "local" or "peer".
func (s Source) String() string {
	if s == SourcePeer {
		return "peer"
	}
	return "local"
}

// Route is a snapshot of one live advertisement.
type Route struct {
	Session SessionID
	Advert  AdvertID
	Prefix  string // absolute
	Hops    []Hop  // as stored, oldest first, without our own id; shared, read only
	Cost    Cost   // link included
	Via     Hop    // identity of the session it came over (R23)
	Source  Source
	Seq     uint64 // higher is newer (R18)
	Goaway  bool   // its session takes no new request streams (R41)
	Live    bool   // false while stale (R43)
}

// Requester is who wants to use a route (R23, R37).
type Requester struct {
	// Session is hidden its own routes; 0 = a reader in this process.
	Session SessionID
	// Hop is the identity of the peer, see Table.Requester; 0 hides nothing.
	Hop Hop
	// Local limits the view to routes of source local.
	Local bool
}
