package admin

import "time"

// Session describes a session that was accepted. Empty fields are left out of pages.
type Session struct {
	ID         string          `json:"id"`
	Node       string          `json:"node,omitempty"`
	Transport  string          `json:"transport,omitempty"`
	Remote     string          `json:"remote,omitempty"` // ip:port
	Local      string          `json:"local,omitempty"`  // ip:port
	ServerName string          `json:"server_name,omitempty"`
	ALPN       string          `json:"alpn,omitempty"`
	Path       string          `json:"path,omitempty"` // without query
	Role       string          `json:"role,omitempty"`
	TLS        *ClientIdentity `json:"tls,omitempty"`
	Started    int64           `json:"started"` // unix seconds

	// What follows is ours alone.
	Version  string  `json:"version,omitempty"` // of MoQ
	Tier     string  `json:"tier,omitempty"`
	Peer     bool    `json:"peer,omitempty"`     // admitted as a relay of the cluster
	Hop      uint64  `json:"hop,omitempty"`      // as it has declared, which any relay does and some clients do
	RTT      float64 `json:"rtt_ms,omitempty"`   // smoothed
	Sent     uint64  `json:"sent,omitempty"`     // payload bytes
	Received uint64  `json:"received,omitempty"` // payload bytes
}

// ClientIdentity is a verified client certificate.
type ClientIdentity struct {
	Name        string `json:"name,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"` // SHA-256, hex
	Expires     int64  `json:"expires,omitempty"`     // unix seconds
	Issuer      string `json:"issuer,omitempty"`
}

// Node is a peer that this relay dialed and holds a session with.
type Node struct {
	Node        string       `json:"node"` // URL without query
	Connections []Connection `json:"connections"`
}

// Connection is one session with a node.
type Connection struct {
	ID uint64 `json:"id"` // as in the log lines of the session
}

// State is what the internal endpoints show. Every method returns a snapshot that the caller owns; all may be called
// concurrently.
type State interface {
	Nodes() []Node
	Sessions() []Session
	Metrics() Metrics
}

// InternalConfig is what the internal endpoints read.
type InternalConfig struct {
	State State
	// PathMatcher compiles a pattern for the filter field "path". Required.
	PathMatcher func(pattern string) (func(path string) bool, error)
	// Revalidate asks again about the sessions of these ids and returns those that are asked about. Nil = no session
	// has a lease, so none is.
	Revalidate func(ids []string) []string
	// Overview is what the page at / shows, and /overview as JSON. Nil = there is none.
	Overview func() Overview
	// Pages are further JSON pages: path with a leading slash, and a function that returns a snapshot.
	Pages map[string]func() any
}

// Role says which way content flows.
type Role string

// The roles of content.
const (
	RolePublisher  Role = "publisher"  // what we send
	RoleSubscriber Role = "subscriber" // what we receive
)

// Metrics are the relay's counters. Totals never fall.
type Metrics struct {
	Tiers []TierMetrics // those that saw something
	// Accepts holds one entry per TCP listener.
	Accepts          []AcceptMetrics
	DrainingSessions int

	Own OwnMetrics
}

// TierMetrics are the totals of one tier.
type TierMetrics struct {
	Tier                           string // empty = the default tier
	SessionsOpened, SessionsClosed uint64
	Publisher, Subscriber          ContentMetrics
	ControlSent, ControlReceived   map[ControlClass]uint64 // bytes
}

// ContentMetrics are the totals of one tier and role.
type ContentMetrics struct {
	Bytes, Frames, Groups, Datagrams                     uint64
	StaleBytes, StaleFrames, StaleGroups, StaleDatagrams uint64
	Fetches                                              uint64
	AnnouncesStarted, AnnouncesEnded                     uint64
	SubscriptionsOpened, SubscriptionsClosed             uint64
	ViewersOpened, ViewersClosed                         uint64
}

// ControlClass groups control messages.
type ControlClass string

// The classes of control bytes.
const (
	ControlSession   ControlClass = "session"
	ControlAnnounce  ControlClass = "announce"
	ControlTrackInfo ControlClass = "track_info"
	ControlSubscribe ControlClass = "subscribe"
	ControlFetch     ControlClass = "fetch"
	ControlProbe     ControlClass = "probe"
	ControlAuth      ControlClass = "auth"
	ControlGoaway    ControlClass = "goaway"
	ControlOther     ControlClass = "other"
)

// AcceptMetrics tell how a TCP listener fares.
type AcceptMetrics struct {
	Listener string            // web, internal, tcp, unix
	Failures map[string]uint64 // by class: connection, exhausted, unknown
	// Stalled is for how long accepting has failed without a success, in seconds; 0 = it works.
	Stalled float64
}

// AuthMetrics tell how admission fares.
type AuthMetrics struct {
	// Connects and Refreshes count answers by outcome: granted, refused, unavailable, invalid.
	Connects, Refreshes map[string]uint64
	// Recovered counts sessions that came in during an outage, because they had been granted a moment before.
	Recovered uint64
	// Stale is the number of sessions that keep a grant which could not be renewed.
	Stale int64
	// Ended counts sessions whose permission ended first, by reason.
	Ended map[string]uint64
}

// OwnMetrics are those that the reference does not have. They have the prefix moqmesh_.
type OwnMetrics struct {
	Sessions              int // live, accepted and dialed
	Routes                int
	HoldsPending          int // changes of routes that wait to be announced
	UpstreamSubscriptions int
	Tracks, Readers       int    // logical tracks, and subscriptions that are served from them
	Failovers             uint64 // tracks that went on from another source
	Refusals              uint64 // sources that refused a track, or ended it with an error
	// Hedges are second sources that were asked because the first had fallen silent; of these, HedgesWon have delivered a
	// frame first, HedgesNeedless ended without, HedgesRefused did not have the track or died.
	Hedges, HedgesWon, HedgesNeedless, HedgesRefused uint64
	DuplicateFrames                                  uint64 // received again and dropped
	CacheBytes                                       int64
	CacheCapacity                                    int64 // 0 = unbounded
	CacheGroups                                      int
	CacheEvictions                                   uint64
	GroupsShed                                       uint64 // skipped by readers because the relay was late
	Lateness                                         time.Duration
	Overloaded                                       bool
	JoinsDelayed                                     uint64
	MemoryUsed, MemoryLimit                          int64 // bytes; 0 = not known, no limit
	MemoryShort                                      bool
	Dials, DialFailures                              uint64 // of peers
	Auth                                             AuthMetrics
	// Limited counts what was turned away, by limit.
	Limited map[string]uint64
	// Peers counts those that are dialed, by the state of their dial; states that nobody is in may be left out.
	Peers map[string]int
	// PeerListFailing says that the list of peers cannot be used as it is now.
	PeerListFailing bool
}
