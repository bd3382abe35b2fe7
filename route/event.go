package route

import (
	"errors"

	"github.com/moqmesh/moqmesh/paths"
)

// Errors of Apply. ErrHops, ErrDuplicate and ErrUnknownAdvert are protocol violations of the session named
// in the event (R3, R7); the others mean that the owner is mistaken or late.
var (
	ErrHops            = errors.New("invalid hop list")
	ErrDuplicate       = errors.New("prefix is advertised already")
	ErrUnknownAdvert   = errors.New("unknown advertisement")
	ErrUnknownSession  = errors.New("unknown session")
	ErrUnknownConsumer = errors.New("unknown consumer")
	ErrInUse           = errors.New("id is in use")
)

// SessionInfo is what the table must know of a session. Values are resolved by the owner; the random ones
// are fresh per session, non-zero and below 2^62.
type SessionInfo struct {
	ID SessionID
	// Hop is the identity that the peer declared in SETUP (moq-lite 05 and later) or as HOP_ID; 0 none.
	Hop Hop
	// Assigned is the random identity that stands for a peer without a Hop (R23).
	Assigned Hop
	// Stamp is the random first hop that names publishers without one (R5).
	Stamp Hop
	// Price is what this link costs, see LinkPrice (R14).
	Price  uint64
	Wire   Wire
	Source Source
	// Publish and Subscribe are the grants, absolute. A session in this process has "**" in both.
	Publish, Subscribe paths.Set
	// Mounts redirect what the peer reads: Subscribe has the names that it uses, and its consumers see what is at a
	// mount's target only through a Listen of that mount. What is at or below a mount itself it neither sees nor serves.
	Mounts paths.Mounts
	// Hidden: the peer sees hidden names (R30).
	Hidden bool
	// ClusterPeer: the session belongs to the mesh (R33a, R33b).
	ClusterPeer bool
}

// Event is something that happened: one message, or the start or end of something.
type Event interface{ event() }

// Events. One advertisement message is one event, whatever follows from it.
type (
	// SessionUp adds a session. It must come before everything else about it.
	SessionUp struct{ SessionInfo }

	// SessionDown removes a session with its routes, which are lost (R38), and its consumers.
	SessionDown struct{ ID SessionID }

	// SessionGrant replaces the grants of a session. Advertisements that were declined for the old grant
	// only become routes if they overlap the new one, routes that do not are detached.
	SessionGrant struct {
		ID                 SessionID
		Publish, Subscribe paths.Set
	}

	// Announce is a new advertisement. On wires that update by repeating it (moq-lite 05, moq-transport)
	// one with the same Advert and Prefix as a live one is an Update.
	Announce struct {
		Session SessionID
		Advert  AdvertID
		// Prefix is clean and absolute.
		Prefix string
		Advertised
	}

	// Update changes an advertisement in place.
	Update struct {
		Session SessionID
		Advert  AdvertID
		Advertised
	}

	// Withdraw ends an advertisement. Explicit is false where its stream ended without saying so, which is
	// a loss, not a withdrawal (R39).
	Withdraw struct {
		Session  SessionID
		Advert   AdvertID
		Explicit bool
	}

	// Goaway says that the peer of a session is draining (R40).
	Goaway struct{ Session SessionID }

	// Listen opens a consumer. Its initial set is among the effects, sorted by name.
	Listen struct {
		Consumer ConsumerID
		Session  SessionID
		// Root is the session's root joined with the requested prefix, absolute. Through a mount it is at or below
		// the mount's target.
		Root string
		// Through is the mount of the session that is looked through; nil = none. Names are relative to Root all the same.
		Through *paths.Mount
		// Exclude is the identity stated in the request (moq-lite 04, 05), else 0. It stands for the
		// session's Hop where that is 0.
		Exclude Hop
		// Local limits the view to routes of source local (R37).
		Local bool
	}

	// Unlisten closes a consumer. Nothing is told.
	Unlisten struct{ Consumer ConsumerID }
)

// Advertised is the content of an advertisement as received.
type Advertised struct {
	// Hops as on the wire: as many zeros as hops on moq-lite 03, without the sender on moq-lite 05 and
	// later, empty where the wire has none. The table keeps no reference. Ignored on WireLocal.
	Hops []Hop
	// Sender is the id that the wire states apart from the list (ANNOUNCE_OK); 0 else.
	Sender Hop
	// Cost as on the wire; ignored where the wire carries none.
	Cost Cost
}

func (SessionUp) event()    {}
func (SessionDown) event()  {}
func (SessionGrant) event() {}
func (Announce) event()     {}
func (Update) event()       {}
func (Withdraw) event()     {}
func (Goaway) event()       {}
func (Listen) event()       {}
func (Unlisten) event()     {}
