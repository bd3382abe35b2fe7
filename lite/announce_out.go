package lite

import (
	"context"
	"errors"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// announceFlush is how much of a batch of announcements is written at once, in bytes.
const announceFlush = 32 << 10

// initNames is how many names go into one ANNOUNCE_INIT; the rest follow as announcements.
const initNames = 1 << 16

// serveAnnounce serves an ANNOUNCE stream. Once the request is accepted it is never finished or reset by us, except when
// the peer ended it: a reference peer takes that as the end of the session (moq-lite 4.2). What the peer may not see, and
// what we cannot list, is an empty set.
func (s *Session) serveAnnounce(r *request) {
	var m message.AnnounceRequest
	if !r.read(&m) {
		return
	}
	if !s.holdNames(len(m.Prefix)) {
		s.log.Warn("announce stream refused", "cause", errNames)
		refuse(r, StreamNoCapacity)
		return
	}
	defer s.dropNames(len(m.Prefix))
	if !s.out.addAnnounce(s.cfg.Limits.AnnounceStreams) {
		s.cfg.Limited.AnnounceStreams.Add(1)
		s.log.Warn("announce stream refused", "cause", session.ErrNoCapacity)
		refuse(r, StreamNoCapacity)
		return
	}
	defer s.out.removeAnnounce()
	r.whileOpen(func(ctx context.Context) {
		a := announcer{s: s, r: r, prefix: m.Prefix, names: make(map[string]uint64)}
		err := a.serve(ctx, m)
		for name := range a.names {
			a.count(name).withdrawn(name)
		}
		if ctx.Err() == nil {
			s.log.Warn("announcements stopped", "prefix", m.Prefix, "cause", err)
			<-ctx.Done()
		}
		r.giveUp(ctx, err)
	})
}

// announcer writes the announcements of one ANNOUNCE stream.
type announcer struct {
	s      *Session
	r      *request
	prefix string
	names  map[string]uint64 // what the peer holds, with its announce id
	next   uint64            // announce id
	buf    []byte
}

// serve writes the initial set and then changes, until ctx ends or the feed fails.
func (a *announcer) serve(ctx context.Context, m message.AnnounceRequest) error {
	if a.s.version.HasAnnounceIDs() { // 06: the feed excludes the hop that SETUP declares
		select {
		case <-a.s.setup:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	feed, err := a.listen(m)
	if err != nil {
		return errors.Join(err, a.initial(nil))
	}
	defer feed.Close()
	updates, err := feed.Next(ctx)
	if err != nil {
		return errors.Join(err, a.initial(nil))
	}
	for err = a.initial(updates); err == nil; err = a.changes(updates) {
		if updates, err = feed.Next(ctx); err != nil {
			return err
		}
	}
	return err
}

// listen opens the feed. A client that only publishes is told nothing.
func (a *announcer) listen(m message.AnnounceRequest) (session.Feed, error) {
	if a.s.Peer().Role == message.RolePublisher {
		return new(silentFeed), nil
	}
	return a.s.handler.Listen(m.Prefix, route.Hop(m.ExcludeHop))
}

// initial writes the first answer of the version and the initial set.
func (a *announcer) initial(updates []session.Update) error {
	v := a.s.version
	switch {
	case v.HasAnnounceInit():
		n := min(len(updates), initNames)
		return errors.Join(a.init(updates[:n]), a.changes(updates[n:]))
	case v.HasAnnounceOK():
		active := uint64(0)
		for i := range updates {
			if a.sendable(&updates[i]) {
				active++
			}
		}
		ok := message.AnnounceOK{Hop: message.Hop(a.s.cfg.Hop), Active: active}
		var err error
		if a.buf, err = ok.Append(a.buf[:0], v); err != nil {
			return err
		}
	}
	return a.changes(updates)
}

// count is where the announcement of a name is counted.
func (a *announcer) count(name string) count { return a.s.sent(paths.Join(a.prefix, name)) }

// init writes ANNOUNCE_INIT (01, 02).
func (a *announcer) init(updates []session.Update) error {
	var m message.AnnounceInit
	for i := range updates {
		if u := &updates[i]; a.sendable(u) {
			a.names[u.Name] = 0
			m.Suffixes = append(m.Suffixes, u.Name)
		}
	}
	for _, name := range m.Suffixes {
		a.count(name).announced(name)
	}
	b, err := m.Append(nil, a.s.version)
	if err == nil {
		_, err = a.r.Write(b)
	}
	return err
}

// changes writes what is in buf and one announcement per update, in few writes.
func (a *announcer) changes(updates []session.Update) error {
	for i := range updates {
		m, ok := a.translate(&updates[i])
		if !ok {
			continue
		}
		var err error
		if a.buf, err = m.Append(a.buf, a.s.version); err != nil {
			return err
		}
		if len(a.buf) >= announceFlush {
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	return a.flush()
}

func (a *announcer) flush() error {
	if len(a.buf) == 0 {
		return nil
	}
	_, err := a.r.Write(a.buf)
	if a.buf = a.buf[:0]; cap(a.buf) > 2*announceFlush {
		a.buf = nil
	}
	return err
}

// sendable is false for a route whose chain has no room for our own hop on wires that carry chains (moq-lite 6.1), and for
// a name that cannot be announced.
func (a *announcer) sendable(u *session.Update) bool {
	v := a.s.version
	full := len(u.Hops) >= message.MaxHops && (v.HasHopCount() || v.HasHops())
	return u.Kind != session.UpdateGone && !full && message.Announceable(u.Name)
}

// translate turns an update into the announcement that brings the peer from what it holds to what it should hold. It
// reports false if nothing is to be said.
func (a *announcer) translate(u *session.Update) (m message.Announce, ok bool) {
	v := a.s.version
	id, held := a.names[u.Name]
	switch {
	case a.sendable(u) && !held:
		m.Kind = message.AnnounceStart
		a.names[u.Name] = a.next
		a.next++
		a.count(u.Name).announced(u.Name)
	case a.sendable(u) && v.HasAnnounceIDs():
		m.Kind, m.ID = message.AnnounceRestart, id
	case a.sendable(u) && v.HasReannounce():
		m.Kind = message.AnnounceStart
	case a.sendable(u), !held: // no update in place on this version, or nothing to retract
		return m, false
	default:
		delete(a.names, u.Name)
		a.count(u.Name).withdrawn(u.Name)
		return message.Announce{Kind: message.AnnounceEnd, ID: id, Suffix: u.Name}, true
	}
	m.Suffix = u.Name
	m.HopCount = uint64(len(u.Hops)) + 1 // the sender counts itself (03)
	m.Hops = a.hops(u.Hops)
	m.Warm, m.Cold = u.Cost.Warm, u.Cost.Cold
	return m, true
}

// hops is the chain as the version wants it.
func (a *announcer) hops(hops []route.Hop) []message.Hop {
	out := make([]message.Hop, 0, len(hops)+1)
	for _, h := range hops {
		out = append(out, message.Hop(h))
	}
	if a.s.version.HopsIncludeSender() {
		out = append(out, message.Hop(a.s.cfg.Hop))
	}
	return out
}

// silentFeed has nothing to tell: an empty initial set, and no changes.
type silentFeed struct{ begun bool }

func (f *silentFeed) Next(ctx context.Context) ([]session.Update, error) {
	if !f.begun {
		f.begun = true
		return nil, nil
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (*silentFeed) Close() {}
