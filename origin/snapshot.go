package origin

import (
	"cmp"
	"slices"
	"time"

	"github.com/moqmesh/moqmesh/route"
)

// RouteInfo is one route, for pages.
type RouteInfo struct {
	Prefix  string      `json:"prefix"`
	Hops    []route.Hop `json:"hops"` // oldest first, without our own id
	Warm    uint64      `json:"warm"`
	Cold    uint64      `json:"cold"`
	Session uint64      `json:"session"` // Peer.ID
	Source  string      `json:"source"`  // local or peer
	Live    bool        `json:"live"`    // false while stale (R43)
	Goaway  bool        `json:"goaway,omitempty"`
	Step    string      `json:"step,omitempty"` // the key by which the route before it won
}

// TrackInfo is one logical track, for pages.
type TrackInfo struct {
	Path    string `json:"path"`
	Track   string `json:"track"`
	Without uint64 `json:"without,omitempty"` // the hop through which no route is used (F21)
	Session uint64 `json:"session,omitempty"` // Peer.ID of the source that serves, or served last
	Copies  int64  `json:"copies"`            // upstream subscriptions: two while one takes over from another, or is asked beside it
	Readers int64  `json:"readers"`
	Groups  int    `json:"groups"` // cached
	Bytes   int64  `json:"bytes"`  // of them
}

// RouteTable is all that the origin knows of routes, for pages.
type RouteTable struct {
	Routes   []RouteInfo    `json:"routes"`   // by prefix, best first
	Holds    []HoldInfo     `json:"holds"`    // in the order in which they will pass
	Declined []DeclinedInfo `json:"declined"` // by prefix
}

// HoldInfo is a change that waits to be told to a session (routing 4.1).
type HoldInfo struct {
	Session uint64    `json:"session"` // Peer.ID of who will hear of it
	Name    string    `json:"name"`    // as it will be told
	Due     time.Time `json:"due"`
}

// DeclinedInfo is an advertisement that is no route.
type DeclinedInfo struct {
	Prefix  string `json:"prefix"`
	Session uint64 `json:"session"` // Peer.ID of who sent it
	Reason  string `json:"reason"`
}

// Routes lists the routes, by prefix, best first.
func (o *Origin) Routes() []RouteInfo { return o.RouteTable().Routes }

// RouteTable lists routes, held changes and declined advertisements as they are at one moment.
func (o *Origin) RouteTable() RouteTable {
	m := &listRoutes{reply: make(chan RouteTable, 1)}
	out, _ := call(o, m.reply, m) // a closed origin has none
	return out
}

// Tracks lists the logical tracks by path and name, those that linger included.
func (o *Origin) Tracks() []TrackInfo {
	m := &listTracks{reply: make(chan []*track, 1)}
	tracks, _ := call(o, m.reply, m)
	out := make([]TrackInfo, 0, len(tracks))
	for _, t := range tracks {
		info := TrackInfo{
			Path: t.key.path, Track: t.name, Without: uint64(t.key.horizon.Hop), Readers: t.readers.Load(), Copies: t.copies.Load(),
		}
		if src := t.source.Load(); src != nil {
			info.Session = src.via.peer.ID
		}
		if m := t.media.Load(); m != nil {
			st := m.Stats()
			info.Groups, info.Bytes = st.Groups, st.Bytes
		}
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b TrackInfo) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Track, b.Track), cmp.Compare(a.Without, b.Without))
	})
	return out
}

// Counters returns a snapshot of the totals.
func (o *Origin) Counters() Counters {
	m := &countHolds{reply: make(chan int, 1)}
	holds, _ := call(o, m.reply, m)
	n := &o.counters
	return Counters{
		Sessions:      int(n.sessions.Load()),
		Routes:        int(n.routes.Load()),
		Consumers:     int(n.consumers.Load()),
		Fronts:        int(n.fronts.Load()),
		Tracks:        int(n.tracks.Load()),
		Readers:       int(n.readers.Load()),
		Upstreams:     int(n.copies.Load()),
		HoldsPending:  holds,
		Subscriptions: n.subscriptions.Load(),
		Failovers:     n.failovers.Load(),
		Refusals:      n.refusals.Load(),
		Mismatches:    n.mismatches.Load(),
		InfoRequests:  n.infos.Load(),
		Fetches:       n.fetches.Load(),

		Hedges: n.hedges.Load(), HedgesWon: n.hedgesWon.Load(), HedgesNeedless: n.hedgesNeedless.Load(),
		HedgesRefused: n.hedgesRefused.Load(),

		Slowed: n.paced.Load(),
	}
}

type (
	listRoutes struct{ reply chan RouteTable }
	listTracks struct{ reply chan []*track }
	countHolds struct{ reply chan int }
)

func (m *listRoutes) handle(w *owner) {
	out := RouteTable{Routes: []RouteInfo{}, Holds: []HoldInfo{}, Declined: []DeclinedInfo{}}
	table := w.table.Snapshot()
	for _, p := range table.Prefixes {
		for i, r := range p.Routes {
			info := RouteInfo{
				Prefix: r.Prefix, Hops: r.Hops, Warm: r.Cost.Warm, Cold: r.Cost.Cold, Source: r.Source.String(),
				Live: r.Live, Goaway: r.Goaway,
			}
			info.Session = w.peerID(r.Session)
			if i > 0 {
				info.Step = r.Step.String()
			}
			out.Routes = append(out.Routes, info)
		}
		for _, d := range p.Declined {
			out.Declined = append(out.Declined, DeclinedInfo{Prefix: p.Prefix, Session: w.peerID(d.Session), Reason: d.Reason.String()})
		}
	}
	for _, h := range table.Holds {
		out.Holds = append(out.Holds, HoldInfo{Session: w.peerID(h.Session), Name: h.Name, Due: h.Due.UTC()})
	}
	m.reply <- out
}

// peerID is the number by which others know a session; 0 if it is gone.
func (w *owner) peerID(id route.SessionID) uint64 {
	if s := w.sessions[id]; s != nil {
		return s.peer.ID
	}
	return 0
}

func (m *listTracks) handle(w *owner) {
	var out []*track
	for _, f := range w.fronts {
		for _, t := range f.tracks {
			out = append(out, t)
		}
	}
	m.reply <- out
}

func (m *countHolds) handle(w *owner) { m.reply <- w.table.HoldsPending() }
