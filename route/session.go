package route

import "github.com/moqmesh/moqmesh/paths"

// session is what the table keeps of a session.
type session struct {
	SessionInfo
	identity  Hop  // what the peer declared, else what we assigned it (R23)
	learned   bool // the identity comes from an announce stream
	goaway    bool
	maxHops   int // our cap (R4)
	adverts   map[AdvertID]*advert
	consumers []*consumer // in order of arrival
	own       *view       // of what is read without a mount
}

// view is what some consumers of a session may see.
type view struct {
	through   *paths.Mount // nil = not through a mount
	subscribe paths.Set    // of what is there, whatever the peer calls it
	heads     []string     // of subscribe
}

// view is what s may see through a mount, or without one.
func (s *session) view(through *paths.Mount) *view {
	v := &view{through: through, subscribe: s.Subscribe}
	if through != nil {
		v.subscribe = v.subscribe.Moved(through.At, through.Target)
	}
	v.heads = v.subscribe.Heads()
	return v
}

func (t *Table) sessionUp(info *SessionInfo) error {
	if t.sessions[info.ID] != nil {
		return ErrInUse
	}
	s := &session{SessionInfo: *info, identity: info.Hop, maxHops: t.cfg.MaxHops, adverts: make(map[AdvertID]*advert)}
	if s.identity == 0 {
		s.identity = info.Assigned
	}
	s.own = s.view(nil)
	t.sessions[info.ID] = s
	return nil
}

// sessionDown removes a session. Its routes are lost, which is no withdrawal (R38).
func (t *Table) sessionDown(id SessionID) error {
	s := t.sessions[id]
	if s == nil {
		return ErrUnknownSession
	}
	consumers := s.consumers
	s.consumers = nil
	for _, c := range consumers {
		t.close(c)
	}
	for _, a := range s.sortedAdverts() {
		t.drop(a, GoneLost)
		t.settleMarks(a.node)
	}
	delete(t.sessions, id)
	return nil
}

// drain re-prices everything learned from a session to the maximum, in place (R40).
func (t *Table) drain(id SessionID) error {
	s := t.sessions[id]
	if s == nil {
		return ErrUnknownSession
	}
	s.goaway = true
	for _, a := range s.sortedAdverts() {
		if a.content == nil {
			continue
		}
		next := &content{t.lists.get(a.content.list.hops), worst}
		if a.reason != 0 {
			t.setContent(a, next)
		} else {
			t.replace(a, next)
		}
	}
	return nil
}

// sessionGrant replaces grants in place.
func (t *Table) sessionGrant(e *SessionGrant) error {
	s := t.sessions[e.ID]
	if s == nil {
		return ErrUnknownSession
	}
	if !s.Publish.Equal(e.Publish) {
		s.Publish = e.Publish
		for _, a := range s.sortedAdverts() {
			t.regrant(a)
		}
	}
	if s.Subscribe.Equal(e.Subscribe) {
		return nil
	}
	s.Subscribe = e.Subscribe
	s.own = s.view(nil)
	t.settle()
	for _, c := range s.consumers {
		was := c.view
		if c.view = s.own; was.through != nil {
			c.view = s.view(was.through)
		}
		t.refresh(c, was.heads)
		t.refresh(c, c.heads)
	}
	return nil
}

// regrant judges an advertisement by a new grant (R11).
func (t *Table) regrant(a *advert) {
	reaches := a.session.reaches(a.node.prefix)
	switch {
	case a.reason == 0 && reaches:
		t.touch(a.node) // what it can serve may differ
	case a.reason == 0:
		t.detach(a)
		a.reason, a.stale = NotGranted, false
		r := a.node.rarely()
		r.parked = append(r.parked, a)
		t.emit(Declined{a.session.ID, a.id, a.node.prefix, NotGranted})
	case a.reason == NotGranted && reaches:
		a.node.remove(a)
		t.attach(a)
	}
}

// identify gives a session without a declared identity the one that its first announce stream states (R23:
// moq-lite 04, 05).
func (t *Table) identify(s *session, x Hop) {
	if s.learned {
		return
	}
	s.identity, s.learned = x, true
	for _, a := range s.sortedAdverts() {
		if a.reason == 0 {
			t.touch(a.node) // it is hidden from others than before
		}
	}
}

// visible reports whether a route may be shown to, or used for, the peer known as x on session s (R23).
func (a *advert) visible(s SessionID, x Hop) bool {
	return a.session.ID != s && (x == 0 || a.session.identity != x && !a.content.list.has(x))
}

// reaches reports whether the grant lets s serve anything at or below prefix (R11). Mounts are for reading only.
func (s *session) reaches(prefix string) bool {
	_, mounted := s.Mounts.Over(prefix)
	return !mounted && s.Publish.Reaches(prefix)
}

// serves reports whether the grant lets the route serve path (R27).
func (a *advert) serves(path string) bool {
	_, mounted := a.session.Mounts.Over(path)
	return !mounted && a.session.Publish.Match(path)
}

// shares reports whether the grant lets the route serve anything at or below top that subscribe covers (R29).
func (a *advert) shares(top string, subscribe paths.Set) bool {
	_, mounted := a.session.Mounts.Over(top)
	return !mounted && a.session.Publish.Shares(top, subscribe)
}
