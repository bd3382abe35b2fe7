package origin

import (
	"cmp"
	"slices"

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
	Readers int64  `json:"readers"`
	Groups  int    `json:"groups"` // cached
	Bytes   int64  `json:"bytes"`  // of them
}

// Routes lists the routes, by prefix, best first.
func (o *Origin) Routes() []RouteInfo {
	m := &listRoutes{reply: make(chan []RouteInfo, 1)}
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
			Path: t.key.path, Track: t.name, Without: uint64(t.key.horizon.Hop), Readers: t.readers.Load(),
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
	}
}

type (
	listRoutes struct{ reply chan []RouteInfo }
	listTracks struct{ reply chan []*track }
	countHolds struct{ reply chan int }
)

func (m *listRoutes) handle(w *owner) {
	var out []RouteInfo
	for _, p := range w.table.Snapshot().Prefixes {
		for i, r := range p.Routes {
			info := RouteInfo{
				Prefix: r.Prefix, Hops: r.Hops, Warm: r.Cost.Warm, Cold: r.Cost.Cold, Source: r.Source.String(),
				Live: r.Live, Goaway: r.Goaway,
			}
			if s := w.sessions[r.Session]; s != nil {
				info.Session = s.peer.ID
			}
			if i > 0 {
				info.Step = r.Step.String()
			}
			out = append(out, info)
		}
	}
	m.reply <- out
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
