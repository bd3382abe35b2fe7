package origin

import (
	"container/list"
	"net"
	"slices"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// front is one logical broadcast as seen by all requesters with the same horizon. It is created by the first request
// and ends when no route is left and its last track has ended (F37, F38). The owner goroutine has it.
type front struct {
	frontKey
	layers [][]source // candidates now, see routesChanged
	// suspended: there are none, but stale routes.
	suspended bool
	tracks    map[string]*track
	// infos is what the tracks were first accepted with (F22).
	infos map[string]media.Info
	idle  *list.Element // while there are no tracks
}

// frontKey names a front. The horizon hides nothing unless a covering route passes through the requester (F21); it names
// no session, since the routes of a session count as passing through its peer.
type frontKey struct {
	path    string
	horizon route.Requester
}

// shares says whether a requester that routes pass through is served together with everybody else: while the best of them is
// none of these. So a relay with several ways to us costs no second pull. Should that change while it reads, see audience.
// Whoever publishes the broadcast itself has a front of its own, so that watching it never moves the rest.
func (w *owner) shares(plain frontKey, x route.Requester) bool {
	layers := w.layersOf(plain)
	begins := func(s source) bool { return s.begins(x.Hop) }
	for _, layer := range layers {
		if slices.ContainsFunc(layer, begins) {
			return false
		}
	}
	return len(layers) > 0 && !layers[0][0].through(x.Hop)
}

// layersOf returns the sources of a front, whether it exists or not.
func (w *owner) layersOf(k frontKey) [][]source {
	if f := w.fronts[k]; f != nil {
		return f.layers
	}
	return w.layers(k)
}

// resolve finds or makes the logical track of a request. first is given to a new track's goroutine.
type resolve struct {
	s     *Session
	path  string // absolute
	track string
	req   *request
	first trackMessage
	reply chan resolved
}

type resolved struct {
	track *track
	isNew bool // it has got the message
	err   error
}

func (m *resolve) handle(w *owner) {
	t, isNew, err := w.resolve(m)
	m.reply <- resolved{t, isNew, err}
}

func (w *owner) resolve(m *resolve) (t *track, isNew bool, err error) {
	if w.closing || w.sessions[m.s.id] == nil {
		return nil, false, net.ErrClosed
	}
	_, fetch := m.first.(fetchGroup)
	f := w.front(m.path, m.s, !fetch)
	if f == nil || len(f.layers) == 0 {
		return nil, false, session.ErrUnroutable // at once (R28), also while others drain (F38)
	}
	m.req.peer = 0
	if f.horizon.Hop == 0 {
		m.req.peer = w.table.Requester(m.s.id).Hop
	}
	if t := f.tracks[m.track]; t != nil {
		return t, false, nil
	}
	if w.tracks >= w.o.cfg.Tracks && !w.makeRoom() {
		w.settle(f)
		return nil, false, session.ErrNoCapacity
	}
	return w.newTrack(f, m), true, nil
}

// front finds or makes the front of a request; nil if no route covers the path. Where routes pass through the requester, the
// front is one of its own, unless it may share the common one.
func (w *owner) front(path string, s *Session, share bool) *front {
	x := w.table.Requester(s.id)
	key := frontKey{path, route.Requester{Local: s.peer.LocalOnly}}
	if w.table.Through(path, x) && (!share || !w.shares(key, x)) {
		key.horizon.Hop = x.Hop // all sessions of one peer share it (R25)
	}
	if f := w.fronts[key]; f != nil {
		return f
	}
	layers := w.layers(key)
	if len(layers) == 0 {
		return nil
	}
	f := &front{
		frontKey: key, layers: layers, tracks: make(map[string]*track), infos: make(map[string]media.Info),
	}
	w.fronts[key] = f
	w.o.counters.fronts.Store(int64(len(w.fronts)))
	for p, ok := path, true; ok; p, ok = paths.Parent(p) {
		if w.below[p] == nil {
			w.below[p] = make(map[*front]struct{})
		}
		w.below[p][f] = struct{}{}
	}
	return f
}

// layers lists the sources of a front in the order in which they are to be tried, by deciding prefix (R27).
func (w *owner) layers(k frontKey) [][]source {
	var out [][]source
	seen := make(map[uint64]bool)
	for {
		routes := w.table.Candidates(k.path, k.horizon, func(r route.Route) bool { return seen[r.Seq] })
		if len(routes) == 0 {
			return out
		}
		layer := make([]source, 0, len(routes))
		for _, r := range routes {
			seen[r.Seq] = true
			if src, ok := w.source(k.path, r); ok {
				layer = append(layer, src)
			}
		}
		if len(layer) > 0 {
			out = append(out, layer)
		}
	}
}

func (w *owner) source(path string, r route.Route) (source, bool) {
	s := w.sessions[r.Session]
	if s == nil || s.up == nil {
		return source{}, false
	}
	rel, ok := paths.Suffix(s.peer.Root, path)
	if !ok {
		return source{}, false
	}
	src := source{
		id: sourceID(r.Seq), caps: s.caps, goaway: r.Goaway, local: s.peer.Wire == route.WireLocal, via: s, path: rel,
		peer: r.Via, hops: hopString(r.Hops),
	}
	if w.o.cfg.Hedge > 0 {
		src.link = &s.link
	}
	return src, true
}

// reselect tells the tracks of a front what its routes are now (F18).
func (w *owner) reselect(f *front) {
	layers := w.layers(f.frontKey)
	suspended := len(layers) == 0 && w.table.Suspended(f.path, f.horizon)
	if slices.EqualFunc(layers, f.layers, slices.Equal) && suspended == f.suspended {
		return
	}
	f.layers, f.suspended = layers, suspended
	for _, t := range f.tracks {
		t.reroute(routesChanged{layers, suspended})
		if len(f.layers) == 0 && t.resting != nil {
			w.unlist(t) // only tracks that are read keep a front without routes (F38)
		}
	}
	w.settle(f)
}

// settle keeps, parks or removes a front, by what it is still good for.
func (w *owner) settle(f *front) {
	switch {
	case len(f.tracks) > 0:
		if f.idle != nil {
			w.idle.Remove(f.idle)
			f.idle = nil
		}
	case len(f.layers) == 0 || len(f.infos) == 0:
		w.removeFront(f)
	case f.idle == nil:
		f.idle = w.idle.PushBack(f)
		if w.idle.Len() > maxIdleFronts {
			w.removeFront(w.idle.Front().Value.(*front))
		}
	}
}

func (w *owner) removeFront(f *front) {
	if f.idle != nil {
		w.idle.Remove(f.idle)
		f.idle = nil
	}
	delete(w.fronts, f.frontKey)
	w.o.counters.fronts.Store(int64(len(w.fronts)))
	for p, ok := f.path, true; ok; p, ok = paths.Parent(p) {
		if delete(w.below[p], f); len(w.below[p]) == 0 {
			delete(w.below, p)
		}
	}
}

// newTrack starts a logical track in f.
func (w *owner) newTrack(f *front, m *resolve) *track {
	var fixed *media.Info
	if info, ok := f.infos[m.track]; ok {
		fixed = &info
	}
	t := newTrack(w.o, f.frontKey, m.track, fixed, f.layers)
	t.front = f
	f.tracks[m.track] = t
	w.settle(f)
	w.tracks++
	w.actors[t] = struct{}{}
	w.o.counters.tracks.Store(int64(w.tracks))
	go t.run(m.first)
	return t
}

// makeRoom asks the track that has been without readers for the longest time to go.
func (w *owner) makeRoom() bool {
	e := w.resting.Front()
	if e == nil {
		return false
	}
	t := e.Value.(*track)
	w.unrest(t)
	t.evict()
	return true
}

// unlist takes a track out of its front, so that the next request makes a new one.
func (w *owner) unlist(t *track) {
	w.unrest(t)
	if t.front.tracks[t.name] != t {
		return
	}
	delete(t.front.tracks, t.name)
	w.tracks--
	w.o.counters.tracks.Store(int64(w.tracks))
	w.settle(t.front)
}

func (w *owner) unrest(t *track) {
	if t.resting != nil {
		w.resting.Remove(t.resting)
		t.resting = nil
	}
}

// What tracks tell the owner.
type (
	// trackParted says that the next request for the name needs a new track.
	trackParted struct{ t *track }
	// trackFixed says which properties a track was first accepted with (F22).
	trackFixed struct {
		t    *track
		info media.Info
	}
	// routesAsked asks for what is known of routes by now.
	routesAsked struct {
		t  *track
		id uint64
	}
	// trackRests says that a track has no readers, or has some again.
	trackRests struct {
		t     *track
		rests bool
	}
	// actorEnded says that the goroutine of a track is about to return.
	actorEnded struct{ t *track }
)

func (m trackParted) handle(w *owner) { w.unlist(m.t) }

func (m trackFixed) handle(w *owner) {
	f := m.t.front
	if _, known := f.infos[m.t.name]; known || len(f.infos) >= maxProperties {
		return
	}
	f.infos[m.t.name] = m.info
}

// handle comes after everything that the owner was told before, and what follows from that for the track is with it.
func (m routesAsked) handle(*owner) {
	m.t.checked.Store(m.id)
	m.t.poke()
}

func (m trackRests) handle(w *owner) {
	w.unrest(m.t)
	if m.rests && m.t.front.tracks[m.t.name] == m.t {
		m.t.resting = w.resting.PushBack(m.t)
	}
}

func (m actorEnded) handle(w *owner) { delete(w.actors, m.t) }
