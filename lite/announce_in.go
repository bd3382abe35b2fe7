package lite

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// announceBuffer is the read buffer of an ANNOUNCE stream of ours, in bytes.
const announceBuffer = 4 << 10

// AnnounceSink takes the announcements of one stream, as a session.Handler takes those of a session: in order, by one
// goroutine.
type AnnounceSink interface {
	Announce(id session.AdvertID, ad session.Advertisement) error
	Reannounce(id session.AdvertID, ad session.Advertisement) error
	Withdraw(id session.AdvertID, explicit bool)
	// Ready says that everything that was announced at first has come. Versions 03 and 04 do not tell.
	Ready()
}

// Announced asks for announcements below prefix, beside the interests of Run, and passes them to a sink of their own.
// It returns nil when the peer has ended the stream, the cause of ctx when that ends, and else how the session has ended:
// a reset, a message that cannot be decoded and a broken rule end it (moq-lite 4.2). What was announced has been withdrawn
// by then.
func (s *Session) Announced(ctx context.Context, prefix string, sink AnnounceSink) error {
	if !s.enter() {
		return s.closedError()
	}
	defer s.leave()
	return s.announce(ctx, &listener{prefix: prefix, sink: sink, ready: sink.Ready})
}

// listen asks for announcements on behalf of the handler, until the session ends.
func (s *Session) listen(prefix string) {
	_ = s.announce(s.conn.Context(), &listener{prefix: prefix, sink: s.handler, ready: func() {}})
}

// announce runs a listener to its end.
func (s *Session) announce(ctx context.Context, l *listener) error {
	if s.leaving.Load() { // no new requests after a GOAWAY
		return session.ErrGoingAway
	}
	l.s, l.ids, l.names = s, make(map[uint64]advert), make(map[string]uint64)
	err := l.run(ctx)
	l.withdraw()
	if errors.Is(err, io.EOF) { // the peer has no more to announce
		return nil
	}
	if ctx.Err() != nil && s.conn.Context().Err() == nil {
		return context.Cause(ctx)
	}
	if _, broken := errors.AsType[*violation](err); !broken {
		err = fmt.Errorf("announce stream: %w", peerError(err))
	}
	return s.fail(err)
}

// listener reads one ANNOUNCE stream of ours.
type listener struct {
	s      *Session
	prefix string
	sink   interface {
		Announce(id session.AdvertID, ad session.Advertisement) error
		Reannounce(id session.AdvertID, ad session.Advertisement) error
		Withdraw(id session.AdvertID, explicit bool)
	}
	ready  func()
	ids    map[uint64]advert // live announce ids; before 06 we count them as 06 does
	names  map[string]uint64 // live suffixes with their announce id
	next   uint64            // announce id
	active uint64            // how many are announced at first, as far as the peer has said
	sender route.Hop         // of ANNOUNCE_OK
}

// advert is a live announcement.
type advert struct {
	id       session.AdvertID
	suffix   string
	declined bool // occupies its name and id, and is kept from the host
}

// run reads until the stream or ctx ends.
func (l *listener) run(ctx context.Context) error {
	v := l.s.version
	opened, err := l.s.conn.OpenStream(ctx)
	if err != nil {
		return err
	}
	st := l.s.tally(opened, session.ControlAnnounce)
	req := message.AnnounceRequest{Prefix: l.prefix, ExcludeHop: message.Hop(l.s.cfg.Hop)}
	b, err := req.Append(message.StreamAnnounce.Append(nil), v)
	if err != nil {
		refuse(st, StreamCancelled)
		return err
	}
	if _, err := st.Write(b); err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // also after the peer's FIN
	stop := context.AfterFunc(ctx, func() { st.Stop(StreamCancelled) })
	defer stop()
	in := newInput(st, announceBuffer)
	if err := l.first(in); err != nil {
		return decodeViolation(err)
	}
	for {
		m, err := message.ReadAnnounce(in, v)
		if err == nil {
			err = l.apply(m)
		}
		if err != nil {
			return decodeViolation(err)
		}
	}
}

// first reads the first answer where the version has one.
func (l *listener) first(in *input) error {
	v := l.s.version
	switch {
	case v.HasAnnounceInit():
		var m message.AnnounceInit
		if err := message.Read(in, v, &m); err != nil {
			return err
		}
		for _, suffix := range m.Suffixes {
			if err := l.start(message.Announce{Suffix: suffix}); err != nil {
				return err
			}
		}
		l.ready()
	case v.HasAnnounceOK():
		var m message.AnnounceOK
		if err := message.Read(in, v, &m); err != nil {
			return err
		}
		l.sender, l.active = route.Hop(m.Hop), m.Active
		if m.Active == 0 {
			l.ready()
		}
	}
	return nil
}

// decodeViolation marks what the peer must not send on an ANNOUNCE stream.
func decodeViolation(err error) error {
	if malformed(err) {
		return violationf("announcement: %w", err)
	}
	return err
}

// apply carries out one announcement. The host may take its time for each: what a peer that is gone has announced and we have
// not come to is left out, its withdrawals are not.
func (l *listener) apply(m message.Announce) error {
	if ctx := l.s.conn.Context(); m.Kind != message.AnnounceEnd && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	switch m.Kind {
	case message.AnnounceStart:
		id, live := l.names[m.Suffix]
		if live && l.s.version.HasReannounce() && !l.s.version.HasAnnounceIDs() {
			return l.restart(id, m)
		}
		return l.start(m)
	case message.AnnounceRestart:
		return l.restart(m.ID, m)
	case message.AnnounceEnd:
		return l.retract(m)
	default:
		return nil // unknown types are skipped and assign no id
	}
}

// start records a new announcement and reports it.
func (l *listener) start(m message.Announce) error {
	if _, live := l.names[m.Suffix]; live {
		return violationf("announced twice on one stream")
	}
	if l.s.announced.Add(1) > int64(l.s.cfg.Limits.Announcements) {
		l.s.announced.Add(-1)
		l.s.cfg.Limited.Announcements.Add(1)
		return &violation{SessionInternal, fmt.Errorf("%w: announcements", session.ErrNoCapacity)}
	}
	if !l.s.holdNames(len(m.Suffix)) {
		l.s.announced.Add(-1)
		return &violation{SessionInternal, errNames}
	}
	a := advert{id: session.AdvertID(l.s.advertID.Add(1)), suffix: m.Suffix}
	a.declined = !message.Announceable(m.Suffix) || paths.Depth(paths.Join(l.prefix, m.Suffix)) > paths.MaxSegments
	l.names[m.Suffix] = l.next
	l.ids[l.next] = a
	l.next++
	l.count(a).announced(a.suffix)
	var err error
	if !a.declined {
		err = l.verdict(l.sink.Announce(a.id, l.advertisement(m)))
	}
	if l.next == l.active {
		l.ready()
	}
	return err
}

// restart replaces a live announcement in place.
func (l *listener) restart(id uint64, m message.Announce) error {
	a, live := l.ids[id]
	if !live {
		return violationf("announce id %d is not live", id)
	}
	if a.declined {
		return nil
	}
	m.Suffix = a.suffix
	return l.verdict(l.sink.Reannounce(a.id, l.advertisement(m)))
}

// retract ends an announcement: by id on 06, else by name, where an unknown one is ignored.
func (l *listener) retract(m message.Announce) error {
	id := m.ID
	if !l.s.version.HasAnnounceIDs() {
		var live bool
		if id, live = l.names[m.Suffix]; !live {
			return nil
		}
	}
	a, live := l.ids[id]
	if !live {
		return violationf("announce id %d is not live", id)
	}
	delete(l.ids, id)
	delete(l.names, a.suffix)
	l.gone(a, true)
	return nil
}

// withdraw ends everything that was learned on the stream, after the stream.
func (l *listener) withdraw() {
	for _, a := range l.ids {
		l.gone(a, false)
	}
}

// count is where an advertisement is counted: what the host does not hear of, for the session only.
func (l *listener) count(a advert) count {
	if a.declined {
		return count{all: &l.s.counters.Received}
	}
	return l.s.received(paths.Join(l.prefix, a.suffix))
}

func (l *listener) gone(a advert, explicit bool) {
	l.s.announced.Add(-1)
	l.s.dropNames(len(a.suffix))
	l.count(a).withdrawn(a.suffix)
	if !a.declined {
		l.sink.Withdraw(a.id, explicit)
	}
}

// advertisement is m as the host sees it.
func (l *listener) advertisement(m message.Announce) session.Advertisement {
	v := l.s.version
	ad := session.Advertisement{
		Prefix:    paths.Join(l.prefix, m.Suffix),
		Sender:    l.sender,
		HasSender: v.HasAnnounceOK(),
		Cost:      route.Cost{Warm: m.Warm, Cold: m.Cold},
	}
	if v.HasHopCount() {
		ad.Hops = make([]route.Hop, m.HopCount)
		return ad
	}
	for _, h := range m.Hops {
		ad.Hops = append(ad.Hops, route.Hop(h))
	}
	return ad
}

// verdict turns the host's refusal into the end of the session where it is meant so. Any other only declines.
func (l *listener) verdict(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, session.ErrViolation):
		return &violation{SessionViolation, err}
	case errors.Is(err, session.ErrNoCapacity):
		return &violation{SessionInternal, err}
	default:
		l.s.log.Debug("announcement declined", "cause", err)
	}
	return nil
}
