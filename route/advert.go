package route

import "slices"

// announce takes in a new advertisement (2.5).
func (t *Table) announce(e *Announce) error {
	s := t.sessions[e.Session]
	if s == nil {
		return ErrUnknownSession
	}
	if a := s.adverts[e.Advert]; a != nil {
		if s.Wire.traits().repeats && a.node.prefix == e.Prefix {
			return t.change(a, &e.Advertised)
		}
		return ErrDuplicate // (R7)
	}
	n := t.root.find(e.Prefix)
	if n != nil && n.of(s) != nil {
		return ErrDuplicate // (R7)
	}
	r, err := t.read(s, e.Prefix, &e.Advertised)
	if err != nil {
		return err
	}
	if n == nil {
		n = t.root.make(e.Prefix)
	}
	a := &advert{session: s, node: n, id: e.Advert}
	s.adverts[e.Advert] = a
	t.admit(a, &r)
	return nil
}

// update changes an advertisement in place.
func (t *Table) update(e *Update) error {
	s := t.sessions[e.Session]
	if s == nil {
		return ErrUnknownSession
	}
	a := s.adverts[e.Advert]
	switch {
	case a == nil:
		return ErrUnknownAdvert
	case !s.Wire.traits().inPlace:
		return ErrDuplicate // (R7)
	}
	return t.change(a, &e.Advertised)
}

func (t *Table) change(a *advert, ad *Advertised) error {
	r, err := t.read(a.session, a.node.prefix, ad)
	if err != nil {
		return err
	}
	switch {
	case a.reason != 0:
		a.node.remove(a)
		t.admit(a, &r)
	case r.reason != 0:
		t.detach(a)
		t.park(a, &r)
	default:
		if next := t.content(&r); !next.equal(a.content) {
			t.replace(a, next)
		} else {
			t.lists.put(next.list)
		}
		// Its sender claims the prefix, again (R44).
		t.unmark(a.node, a.content.list.last())
		t.settleMarks(a.node)
	}
	return nil
}

// admit makes a route of an advertisement that is in no list of its node, or parks it.
func (t *Table) admit(a *advert, r *reading) {
	if r.reason != 0 {
		t.park(a, r)
		return
	}
	t.setContent(a, t.content(r))
	t.attach(a)
}

// attach adds a route, which is new whatever it was before (R12, R18).
func (t *Table) attach(a *advert) {
	t.seq++
	a.seq, a.reason = t.seq, 0
	t.unmark(a.node, a.content.list.last()) // (R44)
	a.stale = marked(a)
	a.node.insert(a)
	t.touch(a.node)
	t.settleMarks(a.node)
}

// park keeps an advertisement without using it (R12). One that only lacks the grant keeps its content.
func (t *Table) park(a *advert, r *reading) {
	a.reason, a.stale = r.reason, false
	if r.reason == NotGranted {
		t.setContent(a, t.content(r))
	} else {
		t.setContent(a, nil)
	}
	a.node.rarely().parked = append(a.node.parked(), a)
	t.emit(Declined{a.session.ID, a.id, a.node.prefix, a.reason})
}

// detach takes a route out of its node, on the way to being parked. That is a loss, not a withdrawal (R12).
func (t *Table) detach(a *advert) {
	t.unroute(a, GoneDetached)
	t.settleMarks(a.node)
}

// unroute takes a route out of its node.
func (t *Table) unroute(a *advert, how GoneHow) {
	a.node.remove(a)
	t.touch(a.node)
	t.emit(RouteGone{a.session.ID, a.id, a.node.prefix, how})
}

// replace changes the content of a route in place: it keeps its age (R22).
func (t *Table) replace(a *advert, next *content) {
	a.node.remove(a)
	t.setContent(a, next)
	a.node.insert(a)
	t.touch(a.node)
}

// withdraw ends an advertisement.
func (t *Table) withdraw(e *Withdraw) error {
	s := t.sessions[e.Session]
	if s == nil {
		return ErrUnknownSession
	}
	a := s.adverts[e.Advert]
	if a == nil {
		return ErrUnknownAdvert
	}
	delete(s.adverts, a.id)
	how := GoneLost
	if e.Explicit {
		how = GoneWithdrawn
	}
	last := t.drop(a, how)
	if how == GoneWithdrawn && last != 0 && s.Wire.traits().withdraw {
		t.withdrawn(a.node, last)
	}
	t.settleMarks(a.node)
	return nil
}

// drop removes an advertisement for good, and returns the last hop of the route that it was, 0 if none.
func (t *Table) drop(a *advert, how GoneHow) (last Hop) {
	if a.reason != 0 {
		a.node.remove(a)
		t.visit(a.node)
	} else {
		last = a.content.list.last()
		t.unroute(a, how)
	}
	t.setContent(a, nil)
	return last
}

// content makes the content of a reading. The caller owes a setContent, or a put of its list.
func (t *Table) content(r *reading) *content {
	return &content{t.lists.get(r.hops), r.cost}
}

func (t *Table) setContent(a *advert, c *content) {
	if a.content != nil {
		t.lists.put(a.content.list)
	}
	a.content = c
}

// sortedAdverts lists a session's advertisements in the order of their ids.
func (s *session) sortedAdverts() []*advert {
	out := make([]*advert, 0, len(s.adverts))
	for _, a := range s.adverts {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *advert) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return out
}
