package origin

import (
	"container/list"
	"context"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// track is one logical track. Its goroutine owns the readers, their aggregate, and the upstream copies; what to do is
// the core's decision.
type track struct {
	o    *Origin
	key  frontKey
	name string

	inbox  chan trackMessage // unbuffered: what was taken is handled
	events chan report       // from the goroutines below; always received until running is 0
	wake   chan struct{}     // routes, flags or a copy have news
	routes atomic.Pointer[routesChanged]
	going  atomic.Bool // the origin closes
	// checked is the last question about routes that the owner has answered.
	checked atomic.Uint64
	out     atomic.Bool // room is needed
	// For hedges: a place was granted, and the session of the source is suspect.
	granted, alarmed atomic.Bool
	done             chan struct{}

	// For pages.
	media   atomic.Pointer[media.Track]
	source  atomic.Pointer[source]
	readers atomic.Int64
	copies  atomic.Int64 // upstream subscriptions
	// priority is the highest of its readers.
	priority atomic.Uint32

	// Of the owner goroutine of the origin.
	front   *front
	resting *list.Element

	// Of the track's own goroutine.
	core    core
	demand  demand
	peers   map[*reader]struct{}      // readers whose peer counts in the audience
	barred  *source                   // see expel
	waiting map[*request]trackMessage // until there is a track
	runs    map[*fetchRun]struct{}
	feeds   map[copyID]*upstreamFeed
	probes  map[copyID]context.CancelFunc
	wakers  map[copyID]*copyWaker
	running int
	routing *routesChanged // as last seen
	heardOf uint64         // checked as last seen
	told    demandChanged
	moves   uint64 // of the audience, as far as they matter
	rests   bool
	behind  time.Time // of the last line about a copy that is behind
	err     error     // why the track has failed
}

// trackMessage is what a track is told by requests and readers.
type trackMessage interface{ handle(*track) }

// report is what a goroutine of the track has to say: what the track must do then.
type report struct {
	then func(*track)
	last bool // of its goroutine
}

func newTrack(o *Origin, key frontKey, name string, fixed *media.Info, layers [][]source) *track {
	t := &track{
		o: o, key: key, name: name,
		inbox:   make(chan trackMessage),
		events:  make(chan report),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		waiting: make(map[*request]trackMessage),
		runs:    make(map[*fetchRun]struct{}),
		feeds:   make(map[copyID]*upstreamFeed),
		probes:  make(map[copyID]context.CancelFunc),
		wakers:  make(map[copyID]*copyWaker),
		peers:   make(map[*reader]struct{}),
	}
	t.core = core{
		who:    make(audience),
		linger: o.cfg.Linger, maxAge: o.maxAge, fixed: fixed, layers: layers,
		out: make(map[sourceID]exclusion), infos: make(map[sourceID]media.Info),
		newTrack: o.cfg.Cache.NewTrack,
		waker:    t.copyWaker,
	}
	if key.horizon.Hop == 0 { // else peers that hedged for each other could subscribe in a circle (H1)
		t.core.hedge.floor, t.core.hedge.idle = o.cfg.Hedge, o.cfg.IdleTimeout
	}
	t.routing = &routesChanged{layers: layers}
	t.routes.Store(t.routing)
	return t
}

// reroute tells the track its sources. The slices are shared and read only.
func (t *track) reroute(ev routesChanged) {
	t.routes.Store(&ev)
	t.poke()
}

// evict asks a track to go if it has no readers.
func (t *track) evict() {
	t.out.Store(true)
	t.poke()
}

// shut ends a track.
func (t *track) shut() {
	t.going.Store(true)
	t.poke()
}

func (t *track) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// copyWaker passes on that a media copy has something to tell.
type copyWaker struct {
	t    *track
	news atomic.Bool
}

// Wake implements media.Waker.
func (w *copyWaker) Wake() {
	w.news.Store(true)
	w.t.poke()
}

func (t *track) copyWaker(id copyID) media.Waker {
	w := &copyWaker{t: t}
	t.wakers[id] = w
	return w
}

// run is the goroutine of the track. It has at least one request to begin with.
func (t *track) run(first trackMessage) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	first.handle(t)
	var armed time.Time
	for !t.core.gone {
		if due := t.core.deadline(); !due.Equal(armed) {
			if armed = due; due.IsZero() {
				timer.Stop()
			} else {
				timer.Reset(time.Until(due))
			}
		}
		select {
		case m := <-t.inbox:
			m.handle(t)
		case r := <-t.events:
			t.heard(r)
		case <-t.wake:
			t.woken()
		case <-timer.C:
			armed = time.Time{}
			t.apply(tick{})
		}
	}
	t.finish()
}

// finish ends the goroutine: first nobody finds the track any more, then it waits for those that work for it.
func (t *track) finish() {
	t.reject(t.err)
	_ = t.o.send(trackParted{t}) // the owner runs until it has heard actorEnded
	close(t.done)
	t.o.counters.readers.Add(-t.readers.Swap(0))
	for _, cancel := range t.probes {
		cancel()
	}
	for _, f := range t.feeds {
		f.cancel()
	}
	for run := range t.runs {
		run.end(t.err)
	}
	for t.running > 0 {
		if r := <-t.events; r.last {
			t.running--
		}
	}
	_ = t.o.send(actorEnded{t})
}

func (t *track) heard(r report) {
	if r.last {
		t.running--
	}
	r.then(t)
}

// woken looks for what wake stands for.
func (t *track) woken() {
	if t.going.Load() {
		t.apply(closed{net.ErrClosed})
		return
	}
	checked := t.checked.Load() // before the routes: they are as new at least
	if routes := t.routes.Load(); routes != t.routing {
		t.routing = routes
		t.apply(*routes)
	}
	if checked != t.heardOf {
		t.heardOf = checked
		t.apply(routesChecked{checked})
	}
	for id, w := range t.wakers {
		if w.news.CompareAndSwap(true, false) {
			t.sayBehind(id)
			t.apply(copyMoved{id})
		}
	}
	if t.granted.CompareAndSwap(true, false) {
		t.apply(hedgeGranted{})
	}
	if t.alarmed.CompareAndSwap(true, false) {
		t.apply(tick{})
	}
	if t.out.CompareAndSwap(true, false) {
		t.apply(evicted{})
	}
}

// apply gives the core an event and does what it says, until nothing more follows.
func (t *track) apply(ev event) {
	ready := false
	for _, e := range t.core.apply(time.Now(), ev) {
		if _, ok := e.(trackReady); ok {
			ready = true
		}
		t.perform(e)
	}
	if ready {
		t.admit()
	}
	t.expelled()
	t.copies.Store(int64(t.core.subscriptions()))
	if len(t.wakers) > len(t.core.copies) {
		maps.DeleteFunc(t.wakers, func(id copyID, _ *copyWaker) bool { return t.core.byID(id) == nil })
	}
	t.startFetches()
	t.rest()
}

// sync tells the core what is wanted now.
func (t *track) sync() {
	now := demandChanged{readers: t.demand.total, waiting: len(t.waiting) + len(t.runs)}
	if now.readers > 0 {
		now.want, now.asks = t.demand.aggregate(t.core.track.Info().MaxAge)
	}
	now.audience = t.moves
	same := now.asks == t.told.asks && now.readers == t.told.readers && now.waiting == t.told.waiting &&
		now.audience == t.told.audience
	if same && sameWant(now.want, t.told.want) {
		return
	}
	t.told = now
	t.priority.Store(uint32(now.want.Priority))
	t.o.counters.readers.Add(int64(now.readers) - t.readers.Swap(int64(now.readers)))
	t.apply(now)
}

// rest tells the owner whether the track could go if room were needed.
func (t *track) rest() {
	if rests := !t.core.forget.IsZero(); rests != t.rests && !t.core.gone {
		t.rests = rests
		_ = t.o.send(trackRests{t, rests})
	}
}

// admit answers those who have waited for the track to be there.
func (t *track) admit() {
	t.media.Store(t.core.track)
	_ = t.o.send(trackFixed{t, *t.core.fixed})
	waiting := t.waiting
	t.waiting = make(map[*request]trackMessage)
	for req, m := range waiting {
		m.handle(t)
		t.went(req.peer) // now that a reader has come in its place
	}
	t.sync()
}

// reject answers those who wait with an error.
func (t *track) reject(err error) {
	for req := range t.waiting {
		t.went(req.peer)
		req.reply <- reply{err: err}
	}
	clear(t.waiting)
}

// came and went keep the audience.
func (t *track) came(peer route.Hop) {
	t.core.who.add(peer)
	if t.core.who[peer] == 1 {
		t.moved(peer)
	}
}

func (t *track) went(peer route.Hop) {
	t.core.who.remove(peer)
	if t.core.who[peer] == 0 {
		t.moved(peer)
	}
}

// moved counts the comings and goings of those through whom a source is reached: the core must choose anew.
func (t *track) moved(peer route.Hop) {
	if peer != 0 && slices.ContainsFunc(t.core.layers, func(layer []source) bool {
		return slices.ContainsFunc(layer, func(s source) bool { return s.through(peer) })
	}) {
		t.moves++
	}
}

// expelled ends what those read, or wait for, through whom a source is reached that is to serve (R23).
func (t *track) expelled() {
	src := t.barred
	if t.barred = nil; src == nil {
		return
	}
	for req := range t.waiting {
		if src.through(req.peer) {
			delete(t.waiting, req)
			t.went(req.peer)
			req.reply <- reply{err: session.ErrUnroutable}
		}
	}
	for r := range t.peers {
		if src.through(r.peer) {
			t.forget(r)
			r.media.Fail(session.ErrUnroutable)
		}
	}
	t.sync()
}

// forget takes a reader out of the audience.
func (t *track) forget(r *reader) {
	if _, ok := t.peers[r]; ok {
		delete(t.peers, r)
		t.went(r.peer)
	}
}

// park keeps a request until there is a track. It returns false if it need not wait.
func (t *track) park(req *request, m trackMessage) bool {
	if t.core.track != nil {
		return false
	}
	t.waiting[req] = m
	t.came(req.peer)
	t.sync()
	return true
}

// What requests and readers tell a track.
type (
	wantInfo struct{ req *request }
	join     struct{ req *request }
	// leave gives up a request that was not answered.
	leave  struct{ req *request }
	change struct {
		r   *reader
		sub media.Subscription
	}
	part struct{ r *reader }
)

func (m wantInfo) handle(t *track) {
	if !t.park(m.req, m) {
		m.req.reply <- reply{info: t.core.track.Info()}
	}
}

func (m join) handle(t *track) {
	if t.park(m.req, m) {
		return
	}
	r := &reader{t: t, media: t.core.track.NewReader(m.req.sub, m.req.waker), sub: m.req.sub, peer: m.req.peer, open: true}
	t.demand.add(r.sub)
	if r.peer != 0 {
		t.peers[r] = struct{}{}
		t.came(r.peer)
	}
	m.req.reply <- reply{reader: r}
	t.sync()
}

func (m leave) handle(t *track) {
	if _, ok := t.waiting[m.req]; ok {
		delete(t.waiting, m.req)
		t.went(m.req.peer)
	}
	t.leaveFetch(m.req)
	t.sync()
}

func (m change) handle(t *track) {
	if m.r.open {
		t.demand.remove(m.r.sub)
		m.r.sub = m.sub
		t.demand.add(m.sub)
		t.sync()
	}
}

func (m part) handle(t *track) {
	if m.r.open {
		m.r.open = false
		t.demand.remove(m.r.sub)
		t.forget(m.r)
		t.sync()
	}
}

// perform carries out one effect of the core. It does not block.
func (t *track) perform(e effect) {
	log := t.o.log
	switch e := e.(type) {
	case askInfo:
		t.ask(e)
	case cancelInfo:
		if cancel := t.probes[e.id]; cancel != nil {
			cancel()
		}
	case openCopy:
		t.open(e)
	case updateCopy:
		if f := t.feeds[e.id]; f != nil {
			f.update(e.sub)
		}
	case cancelCopy:
		if f := t.feeds[e.id]; f != nil {
			f.cancel()
		}
	case servedBy:
		src := e.src
		if was := t.source.Swap(&src); t.core.serves > 1 && was.id != src.id {
			t.o.counters.failovers.Add(1)
			log.Debug("track switched", "path", t.key.path, "track", t.name, "session", src.via.peer.ID)
		}
	case checkRoutes:
		_ = t.o.send(routesAsked{t, e.id}) // the owner runs until it has heard actorEnded
	case excluded:
		t.excluded(e)
	case wantHedge:
		_ = t.o.send(hedgeAsked{t, e.priority, true})
	case unwantHedge:
		_ = t.o.send(hedgeAsked{t: t})
	case hedged:
		t.o.counters.hedged(e.hedgeOutcome)
		log.Debug("track hedged", "path", t.key.path, "track", t.name, "session", e.src.via.peer.ID, "outcome", e.hedgeOutcome.String())
	case suspect:
		e.src.link.suspicious.Store(true)
		log.Info("nothing arrives from a peer: its tracks are asked for elsewhere too", "session", e.src.via.peer.ID)
		_ = t.o.send(sessionSuspected{e.src.via})
	case expel:
		src := e.src
		t.barred = &src
	case partTrack:
		_ = t.o.send(trackParted{t})
	case failTrack:
		t.err = e.err
		log.Debug("track failed", "path", t.key.path, "track", t.name, "error", e.err)
	case forgetTrack, trackReady:
	}
}

func (t *track) excluded(e excluded) {
	attrs := []any{"path", t.key.path, "track", t.name, "session", e.src.via.peer.ID, "error", e.err}
	switch e.why {
	case mismatched:
		t.o.counters.mismatches.Add(1)
		t.o.log.Warn("source refused: its properties differ", attrs...)
	case refused:
		t.o.counters.refusals.Add(1)
		t.o.log.Debug("source refused the track", attrs...)
	case closing, ended:
		t.o.log.Debug("source left", attrs...)
	}
}
