package origin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// Peer describes the other end of a session.
type Peer struct {
	// ID names the session in logs and on pages.
	ID uint64
	// Hop is the identity that the peer has declared; 0 none (R23).
	Hop route.Hop
	// Price is our own price for the link, DeclaredPrice what the peer has declared; nil = none (R14).
	Price, DeclaredPrice *uint64
	// Wire is what the session's version can carry; route.WireLocal for one in this process.
	Wire route.Wire
	// Source is where its routes count as having entered (R36).
	Source route.Source
	// Root is where the session is mounted: names on the wire are relative to it. Clean.
	Root string
	// Publish and Subscribe are the grants, absolute.
	Publish, Subscribe paths.Set
	// Mounts redirect what the peer reads; absolute. They stay as they are.
	Mounts paths.Mounts
	// Hidden: the peer sees hidden names (R30).
	Hidden bool
	// ClusterPeer: the session belongs to the mesh (R33a, R33b).
	ClusterPeer bool
	// LocalOnly limits what it sees and gets to routes of source local (R37).
	LocalOnly bool
	// OnGoaway, if not nil, is told when the peer wants to leave, after its routes were re-priced. It must not block.
	OnGoaway func(uri string)
}

// Session is one attached session. It implements session.Handler; its methods may be called concurrently.
type Session struct {
	o    *Origin
	peer Peer
	up   session.Upstream // nil: it cannot publish
	caps session.Caps
	id   route.SessionID
	link link
	// hearing belongs to the beat.
	hearing hearing
	grant   atomic.Pointer[grant]
	pace    pace
	// life ends when the session is detached; what was asked of it ends with it.
	life context.Context
	stop context.CancelCauseFunc

	// The rest belongs to the owner goroutine.
	adverts   map[route.AdvertID]struct{}
	consumers map[route.ConsumerID]struct{}
}

var _ session.Handler = (*Session)(nil)

// grant is what a session may do, absolute.
type grant struct{ publish, subscribe paths.Set }

// Attach makes a session part of the live set. up is the session as a source; nil for one that only asks, such as an
// HTTP request. The caller must Close what it gets.
func (o *Origin) Attach(p Peer, up session.Upstream) *Session {
	life, stop := context.WithCancelCause(context.Background())
	s := &Session{
		o: o, peer: p, up: up, life: life, stop: stop,
		adverts:   make(map[route.AdvertID]struct{}),
		consumers: make(map[route.ConsumerID]struct{}),
	}
	if up != nil {
		s.caps = up.Caps()
	}
	s.grant.Store(&grant{p.Publish, p.Subscribe})
	s.pace.every = o.paceOf(&p)
	m := &attach{s: s, reply: make(chan error, 1)}
	if err, dead := call(o, m.reply, m); err != nil || dead != nil {
		s.end(net.ErrClosed)
	}
	return s
}

// end cuts off what was asked of the session.
func (s *Session) end(err error) { s.stop(err) }

// Peer returns what the session was attached with.
func (s *Session) Peer() Peer { return s.peer }

// Interests returns the prefixes to ask the peer about: the literal heads of the publish grant, relative to the root,
// without those that another covers or that are mounted. A session that cannot publish has none.
func (s *Session) Interests() []string {
	if s.up == nil {
		return nil
	}
	return slices.DeleteFunc(s.grant.Load().publish.Rebase(s.peer.Root).Heads(), func(head string) bool {
		_, mounted := s.peer.Mounts.Over(paths.Join(s.peer.Root, head))
		return mounted
	})
}

// SetGrant replaces the grants, which are absolute. Advertisements are judged anew; subscriptions in flight stay.
func (s *Session) SetGrant(publish, subscribe paths.Set) {
	g := &grant{publish, subscribe}
	s.grant.Store(g)
	_ = s.o.send(&regrant{s, g}) // a closed origin has no routes
}

// Close detaches the session: its routes are lost at once (R38), its feeds end, and what was asked of it fails. It
// returns when that is done. It may be called twice.
func (s *Session) Close(err error) {
	if err == nil {
		err = net.ErrClosed
	} else if !errors.Is(err, net.ErrClosed) {
		err = fmt.Errorf("%w: %w", net.ErrClosed, err)
	}
	s.end(err)
	m := &detach{s: s, reply: make(chan struct{}, 1)}
	_, _ = call(s.o, m.reply, m) // a closed origin has no session
}

// Announce implements session.Handler. It blocks while the session announces too fast, see Config.AnnounceRate.
func (s *Session) Announce(id session.AdvertID, ad session.Advertisement) error {
	if s.up == nil {
		return fmt.Errorf("%w: the session cannot publish", session.ErrUnauthorized)
	}
	if err := s.await(s.pace.announced(time.Now())); err != nil {
		return err
	}
	return s.advertise(&route.Announce{
		Session: s.id, Advert: advertID(id), Prefix: paths.Join(s.peer.Root, ad.Prefix), Advertised: advertised(&ad),
	})
}

// Reannounce implements session.Handler. It blocks as Announce does.
func (s *Session) Reannounce(id session.AdvertID, ad session.Advertisement) error {
	if err := s.await(s.pace.changed(time.Now())); err != nil {
		return err
	}
	return s.advertise(&route.Update{Session: s.id, Advert: advertID(id), Advertised: advertised(&ad)})
}

func (s *Session) advertise(e route.Event) error {
	m := &advertise{s: s, event: e, reply: make(chan error, 1)}
	err, dead := call(s.o, m.reply, m)
	if dead != nil {
		return dead
	}
	return err
}

// Withdraw implements session.Handler.
func (s *Session) Withdraw(id session.AdvertID, explicit bool) {
	s.pace.withdrawn()
	_ = s.o.send(&withdraw{s, advertID(id), explicit}) // nothing is left to withdraw in a closed origin
}

// Goaway implements session.Handler.
func (s *Session) Goaway(uri string) {
	m := &goaway{s: s, reply: make(chan struct{}, 1)}
	_, _ = call(s.o, m.reply, m)
	if s.peer.OnGoaway != nil {
		s.peer.OnGoaway(uri)
	}
}

// Listen implements session.Handler. A prefix outside the grant is an empty feed: names out there are invisible, and
// peers take a refusal for the end of the session.
func (s *Session) Listen(prefix string, exclude route.Hop) (session.Feed, error) {
	m := &listen{s: s, root: paths.Join(s.peer.Root, prefix), exclude: exclude, reply: make(chan listening, 1)}
	l, err := call(s.o, m.reply, m)
	if err != nil {
		return nil, err
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.feed, nil
}

// Announced lists the names at or below prefix as they are now, relative to it, as an announce stream would.
func (s *Session) Announced(prefix string) ([]string, error) {
	m := &names{s: s, root: paths.Join(s.peer.Root, prefix), reply: make(chan []string, 1)}
	return call(s.o, m.reply, m)
}

func advertID(id session.AdvertID) route.AdvertID { return route.AdvertID(id) + 1 } // never 0

func advertised(ad *session.Advertisement) route.Advertised {
	a := route.Advertised{Hops: ad.Hops, Cost: ad.Cost}
	if ad.HasSender {
		a.Sender = ad.Sender
	}
	return a
}

// What sessions tell the owner.
type (
	attach struct {
		s     *Session
		reply chan error
	}
	detach struct {
		s     *Session
		reply chan struct{}
	}
	regrant struct {
		s *Session
		g *grant
	}
	advertise struct {
		s     *Session
		event route.Event
		reply chan error
	}
	withdraw struct {
		s        *Session
		advert   route.AdvertID
		explicit bool
	}
	goaway struct {
		s     *Session
		reply chan struct{}
	}
	listen struct {
		s       *Session
		root    string
		exclude route.Hop
		reply   chan listening
	}
	listening struct {
		feed *feed
		err  error
	}
	unlisten struct {
		s   *Session
		ids []route.ConsumerID
	}
	names struct {
		s     *Session
		root  string
		reply chan []string
	}
)

func (m *attach) handle(w *owner) {
	if w.closing {
		m.reply <- net.ErrClosed
		return
	}
	s := m.s
	s.id = route.SessionID(w.newID())
	g := s.grant.Load()
	err := w.apply(route.SessionUp{SessionInfo: route.SessionInfo{
		ID:          s.id,
		Hop:         s.peer.Hop,
		Assigned:    randomHop(w.o.cfg.Random),
		Stamp:       randomHop(w.o.cfg.Random),
		Price:       route.LinkPrice(s.peer.Price, s.peer.DeclaredPrice),
		Wire:        s.peer.Wire,
		Source:      s.peer.Source,
		Publish:     g.publish,
		Subscribe:   g.subscribe,
		Mounts:      s.peer.Mounts,
		Hidden:      s.peer.Hidden,
		ClusterPeer: s.peer.ClusterPeer,
	}})
	if err == nil {
		w.sessions[s.id] = s
		w.o.counters.sessions.Store(int64(len(w.sessions)))
		w.listHeard(s)
	}
	m.reply <- err
}

func (m *detach) handle(w *owner) {
	defer func() { m.reply <- struct{}{} }()
	s := m.s
	if w.sessions[s.id] != s {
		return
	}
	delete(w.sessions, s.id)
	w.listHeard(s)
	w.o.counters.sessions.Store(int64(len(w.sessions)))
	w.o.counters.routes.Add(-int64(len(s.adverts)))
	w.o.counters.consumers.Add(-int64(len(s.consumers)))
	for _, id := range slices.Collect(maps.Keys(s.consumers)) {
		w.feeds[id].end(net.ErrClosed)
		delete(w.feeds, id)
	}
	s.adverts, s.consumers = nil, nil
	_ = w.apply(route.SessionDown{ID: s.id}) // it is known
}

func (m *regrant) handle(w *owner) {
	if w.sessions[m.s.id] == m.s {
		_ = w.apply(route.SessionGrant{ID: m.s.id, Publish: m.g.publish, Subscribe: m.g.subscribe})
	}
}

func (m *advertise) handle(w *owner) { m.reply <- w.advertise(m) }

func (w *owner) advertise(m *advertise) error {
	s := m.s
	if w.sessions[s.id] != s {
		return net.ErrClosed
	}
	added := false
	switch e := m.event.(type) {
	case *route.Announce:
		_, known := s.adverts[e.Advert]
		if added = !known; added && len(s.adverts) >= w.o.cfg.Adverts {
			return fmt.Errorf("%w: %d advertisements", session.ErrNoCapacity, len(s.adverts))
		}
		if err := violation(w.apply(*e)); err != nil {
			return err
		}
		if added {
			s.adverts[e.Advert] = struct{}{}
			w.o.counters.routes.Add(1)
		}
	case *route.Update:
		return violation(w.apply(*e))
	}
	return nil
}

// violation marks what a peer must not do.
func violation(err error) error {
	for _, target := range []error{route.ErrHops, route.ErrDuplicate, route.ErrUnknownAdvert} {
		if errors.Is(err, target) {
			return fmt.Errorf("%w: %w", session.ErrViolation, err)
		}
	}
	return err
}

func (m *withdraw) handle(w *owner) {
	s := m.s
	if _, known := s.adverts[m.advert]; !known || w.sessions[s.id] != s {
		return
	}
	delete(s.adverts, m.advert)
	w.o.counters.routes.Add(-1)
	_ = w.apply(route.Withdraw{Session: s.id, Advert: m.advert, Explicit: m.explicit}) // it is known
}

func (m *goaway) handle(w *owner) {
	if w.sessions[m.s.id] == m.s {
		_ = w.apply(route.Goaway{Session: m.s.id}) // it is known
	}
	m.reply <- struct{}{}
}

func (m *listen) handle(w *owner) { m.reply <- w.listen(m) }

// listen opens a feed, which has a consumer for each place that its names are in.
func (w *owner) listen(m *listen) listening {
	s := m.s
	spots := s.spots(m.root)
	switch {
	case w.sessions[s.id] != s:
		return listening{err: net.ErrClosed}
	case len(s.consumers)+len(spots) > w.o.cfg.Feeds:
		return listening{err: fmt.Errorf("%w: %d announce streams", session.ErrNoCapacity, len(s.consumers))}
	}
	ids := make([]route.ConsumerID, 0, len(spots))
	f := newFeed(func() { _ = w.o.send(&unlisten{s, ids}) })
	for _, at := range spots {
		id := route.ConsumerID(w.newID())
		w.feeds[id] = ear{f, at.under}
		err := w.apply(route.Listen{
			Consumer: id, Session: s.id, Root: at.root, Through: at.through, Exclude: m.exclude, Local: s.peer.LocalOnly,
		})
		if err != nil {
			delete(w.feeds, id)
			w.unlisten(s, ids)
			return listening{err: err}
		}
		s.consumers[id] = struct{}{}
		w.o.counters.consumers.Add(1)
		ids = append(ids, id)
	}
	return listening{feed: f}
}

func (m *unlisten) handle(w *owner) { w.unlisten(m.s, m.ids) }

func (w *owner) unlisten(s *Session, ids []route.ConsumerID) {
	for _, id := range ids {
		if _, known := s.consumers[id]; !known {
			continue
		}
		delete(s.consumers, id)
		delete(w.feeds, id)
		w.o.counters.consumers.Add(-1)
		_ = w.apply(route.Unlisten{Consumer: id}) // it is known
	}
}

func (m *names) handle(w *owner) {
	s := m.s
	x := w.table.Requester(s.id)
	x.Local = s.peer.LocalOnly
	var out []string
	for _, at := range s.spots(m.root) {
		for _, name := range w.table.Names(route.View{
			Root: at.root, Subscribe: s.grant.Load().subscribe, Mounts: s.peer.Mounts, Through: at.through,
			Hidden: s.peer.Hidden, Requester: x,
		}) {
			out = append(out, paths.Join(at.under, name))
		}
	}
	slices.Sort(out)
	m.reply <- out
}
