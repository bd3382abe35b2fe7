package admin

import "time"

// Overview is the whole relay on one page: what an operator wants to see first. Lists are cut at ListLimit.
type Overview struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node,omitempty"` // our own address, without query
	Hop     uint64    `json:"hop"`            // our id
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Draining says that sessions are told to go.
	Draining bool `json:"draining"`

	Totals   Totals       `json:"totals"`
	Peers    []Peer       `json:"peers"`    // that are dialed, by key
	Accepted []Link       `json:"accepted"` // sessions that peers have dialed
	List     *PeerList    `json:"list,omitempty"`
	Sessions []Session    `json:"sessions"` // accepted ones, oldest first
	Routes   []RouteEntry `json:"routes"`
	Tracks   []TrackEntry `json:"tracks"`
}

// ListLimit is how many sessions, routes and tracks an Overview lists at most.
const ListLimit = 500

// Totals are levels and sums over all sessions, those that have ended included.
type Totals struct {
	Sessions              int    `json:"sessions"`
	Routes                int    `json:"routes"`
	HoldsPending          int    `json:"holds_pending"`
	Tracks                int    `json:"tracks"`
	Readers               int    `json:"readers"`
	UpstreamSubscriptions int    `json:"upstream_subscriptions"`
	Failovers             uint64 `json:"failovers"`
	CacheBytes            int64  `json:"cache_bytes"`
	CacheCapacity         int64  `json:"cache_capacity"` // 0 = no limit
	Sent                  uint64 `json:"sent"`           // payload bytes
	Received              uint64 `json:"received"`
}

// Peer is one that this relay dials.
type Peer struct {
	Key         string    `json:"key"`    // URL without query
	Source      string    `json:"source"` // connect, connect_api or lan
	State       string    `json:"state"`  // dialing, connected, draining or waiting
	Since       time.Time `json:"since"`  // of the state
	Attempts    int       `json:"attempts"`
	LastError   string    `json:"last_error,omitempty"`
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	NextDial    time.Time `json:"next_dial,omitzero"`
	Links       []Link    `json:"links"` // one, or two while one takes over from the other
}

// Link is a session with a peer.
type Link struct {
	Session   uint64    `json:"session"` // as in log lines
	Hop       uint64    `json:"hop,omitempty"`
	Version   string    `json:"version"`
	Transport string    `json:"transport"`
	Remote    string    `json:"remote"`
	Cost      uint64    `json:"cost"`      // what we charge for pulling from the peer
	PeerCost  uint64    `json:"peer_cost"` // what the peer charges for pulling from us, as far as it has said
	RTT       float64   `json:"rtt_ms"`    // smoothed; 0 = not measured yet
	Loss      float64   `json:"loss"`      // share of our packets that were lost, since the beginning
	Sent      uint64    `json:"sent"`      // payload bytes
	Received  uint64    `json:"received"`
	Since     time.Time `json:"since"`
}

// PeerList is the state of cluster.connect_api.
type PeerList struct {
	Source  string    `json:"source"` // without path and query of a URL
	Peers   int       `json:"peers"`
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// RouteEntry is one route: those of a prefix stand together, the best one first.
type RouteEntry struct {
	Prefix  string   `json:"prefix"`
	Hops    []uint64 `json:"hops"` // oldest first
	Cost    uint64   `json:"cost"` // warm
	Session uint64   `json:"session"`
	Source  string   `json:"source"`
	Live    bool     `json:"live"`
	Goaway  bool     `json:"goaway,omitempty"`
	Step    string   `json:"step,omitempty"` // the rule by which the one before is better
}

// TrackEntry is one track that is read, or was lately.
type TrackEntry struct {
	Path    string `json:"path"`
	Track   string `json:"track"`
	Session uint64 `json:"session,omitempty"` // where it comes from
	Copies  int64  `json:"copies"`            // upstream subscriptions
	Readers int64  `json:"readers"`
	Groups  int    `json:"groups"`
	Bytes   int64  `json:"bytes"`
}
