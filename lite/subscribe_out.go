package lite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

// served is what the session serves to its peer.
type served struct {
	mu        sync.Mutex
	subs      map[uint64]*serving
	announces int
}

// errNames means that the names of the peer take too much memory.
var errNames = fmt.Errorf("%w: bytes of names", session.ErrNoCapacity)

// errDuplicateID means that the peer used a subscribe id for two subscriptions at a time.
var errDuplicateID = errors.New("subscribe id is in use")

// add registers a subscription.
func (o *served) add(sv *serving, limit int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.subs[sv.id] != nil:
		return errDuplicateID
	case len(o.subs) >= limit:
		return fmt.Errorf("%w: subscriptions", session.ErrNoCapacity)
	case o.subs == nil:
		o.subs = make(map[uint64]*serving)
	}
	o.subs[sv.id] = sv
	return nil
}

func (o *served) remove(sv *serving) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.subs, sv.id)
}

// addAnnounce counts an ANNOUNCE stream; it reports false if there are too many.
func (o *served) addAnnounce(limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.announces >= limit {
		return false
	}
	o.announces++
	return true
}

func (o *served) removeAnnounce() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.announces--
}

// serveSubscribe serves one subscription. This goroutine reads what the subscriber says; workers write (sender.go).
func (s *Session) serveSubscribe(r *request) {
	var m message.Subscribe
	if !r.read(&m) {
		return
	}
	ctx, cancel := context.WithCancel(s.conn.Context())
	defer cancel()
	if err := s.awaitSetup(ctx); err != nil { // the host tells peers by their hop
		refuse(r, StreamCode(err))
		return
	}
	sv := &serving{s: s, r: r, id: m.ID, cancel: cancel, sub: subscription(m.Bounds, s.version), done: make(chan struct{})}
	sv.priority = sv.sub.Priority
	size := len(m.Broadcast) + len(m.Track)
	if !s.holdNames(size) {
		s.log.Debug("subscription refused", "cause", errNames)
		refuse(r, StreamCode(errNames))
		return
	}
	defer s.dropNames(size)
	if err := s.out.add(sv, s.cfg.Limits.Subscriptions); err != nil {
		if errors.Is(err, session.ErrNoCapacity) {
			s.cfg.Limited.Subscriptions.Add(1)
		}
		s.log.Debug("subscription refused", "cause", err)
		refuse(r, StreamCode(err))
		return
	}
	defer s.out.remove(sv)
	stop := context.AfterFunc(r.Context(), sv.stopped)
	defer stop()
	sv.startFirst(ctx, m.Broadcast, m.Track)
	sv.readUpdates()
	<-sv.done
	r.Stop(StreamInternal)
	if sv.reader != nil {
		sv.reader.Close()
		s.viewed.close(m.Broadcast, sv.sent)
	}
}

// subscription is what the preferences on the wire mean (moq-lite 5.7).
func subscription(b message.Bounds, v message.Version) media.Subscription {
	sub := media.Subscription{Priority: b.Priority, MaxAge: b.MaxAge}
	if b.MaxAge == wire.MaxDuration {
		sub.MaxAge = media.Unlimited
	}
	switch {
	case b.StartGroup.Set:
		sub.Start = &media.Position{Group: b.StartGroup.Value, Frame: b.StartFrame}
	case !v.HasFloor():
		sub.Latest = true
	}
	switch {
	case b.EndFrame.Set:
		sub.End = &media.Position{Group: b.EndGroup.Value, Frame: b.EndFrame.Value + 1}
	case b.EndGroup.Set:
		sub.End = &media.Position{Group: b.EndGroup.Value + 1}
	}
	return sub
}

// ending is how a served subscription ends.
type ending struct {
	finish bool   // FIN on our side, else reset with code
	code   uint64 // of the reset
	track  bool   // the track ended cleanly: say where
	abort  bool   // groups in flight are of no use any more
}

// serving is one subscription of the peer. The writing part is in sender.go.
type serving struct {
	s      *Session
	r      *request
	id     uint64
	cancel context.CancelFunc // of the host's Subscribe
	done   chan struct{}      // closed when nothing is written any more
	reader session.Reader     // set once, by the first worker, before polling starts
	sent   count              // set before reader

	pull   sync.Mutex    // held while the reader is asked for groups and datagrams; taken before mu
	media  *media.Reader // of reader; its users hold pull
	newest uint64        // highest group taken up
	begun  bool          // newest is valid

	bounds    sync.Mutex // held while START or END is written; taken before nothing else
	startSent bool
	endSent   bool

	mu        sync.Mutex
	sub       media.Subscription // as last asked
	dirty     bool               // the host has not heard of sub
	updating  bool               // somebody is telling it
	ready     bool               // reader is set
	priority  uint8
	workers   int       // goroutines
	free      int       // of them, those that look for work or will
	busy      []*worker // of them, those that write a group
	idle      *worker   // parked, if any
	rested    *worker   // ended, to be used again, if any
	pending   bool      // woken since a free worker last looked
	active    int       // groups taken up and not ended
	top       uint64    // highest group begun
	whole     spans     // groups sent to their end, and datagrams
	watched   bool      // the session checks the ages of our groups
	datagrams sending
	over      bool   // no new groups
	ending    ending // valid if over
	finished  bool   // done is closed or about to be
}

// readUpdates reads what the subscriber sends until its side ends. Whatever ends it ends the subscription.
func (sv *serving) readUpdates() {
	for {
		var m message.SubscribeUpdate
		err := sv.readUpdate(&m)
		switch {
		case err == nil:
			sv.update(subscription(m.Bounds, sv.s.version))
			continue
		case errors.Is(err, io.EOF): // unsubscribed
			sv.end(ending{finish: true, abort: true})
		case errors.Is(err, errExtra), malformed(err):
			sv.s.log.Debug("subscription ended", "cause", err)
			sv.end(ending{code: StreamMalformed, abort: true})
		default:
			sv.end(ending{code: StreamCancelled, abort: true})
		}
		return
	}
}

// readUpdate reads one SUBSCRIBE_UPDATE. Where there is none, any byte is an error.
func (sv *serving) readUpdate(m *message.SubscribeUpdate) error {
	if sv.s.version.HasSubscribeUpdate() {
		return sv.r.in.message(sv.s.version, m, sv.s.cfg.Limits.RequestBytes)
	}
	if _, err := sv.r.in.ReadByte(); err != nil {
		return err
	}
	return errExtra
}

// update replaces the preferences.
func (sv *serving) update(sub media.Subscription) {
	sv.mu.Lock()
	sv.sub = sub
	sv.dirty = true
	moved := sv.priority != sub.Priority
	sv.priority = sub.Priority
	sv.mu.Unlock()
	if moved {
		sv.s.ranks.setPriority(sv.id, sub.Priority)
	}
	sv.tellHost()
}

// tellHost passes the newest preferences on, in order, once the host's reader is there.
func (sv *serving) tellHost() {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if sv.updating || !sv.ready {
		return
	}
	sv.updating = true
	for sv.dirty {
		sv.dirty = false
		sub := sv.sub
		sv.mu.Unlock()
		sv.reader.Update(sub)
		sv.mu.Lock()
	}
	sv.updating = false
}

// stopped is called when our side of the stream has ended, by whomever. STOP_SENDING unsubscribes.
func (sv *serving) stopped() {
	if !sv.s.enter() {
		return
	}
	defer sv.s.leave()
	var by *transport.StreamError
	if errors.As(context.Cause(sv.r.Context()), &by) && by.Remote {
		sv.end(ending{code: StreamCancelled, abort: true})
	}
}

// end lets the subscription end. The first call says how; a later one can still abort the groups in flight. A failure
// is told at once, the other endings wait for the groups in flight.
func (sv *serving) end(how ending) {
	sv.mu.Lock()
	first := !sv.over
	if first {
		sv.over, sv.ending = true, how
	}
	sv.ending.abort = sv.ending.abort || how.abort
	var streams []transport.SendStream
	if how.abort {
		streams = sv.abortLocked()
	}
	idle := sv.unparkLocked()
	sv.mu.Unlock()
	if idle != nil {
		idle.wake <- struct{}{}
	}
	if how.abort {
		sv.cancel()
	}
	for _, st := range streams {
		st.Reset(StreamCancelled)
	}
	if first && !how.finish {
		sv.r.Reset(how.code)
	}
	sv.finish()
}

// finish ends our side of the stream once the last worker has gone.
func (sv *serving) finish() {
	sv.mu.Lock()
	if !sv.over || sv.workers > 0 || sv.finished {
		sv.mu.Unlock()
		return
	}
	sv.finished = true
	how := sv.ending
	sv.mu.Unlock()
	if how.finish {
		if how.track {
			sv.sendBounds()
			sv.sendDrops()
		}
		_ = sv.r.Close()
	}
	_ = sv.r.SetReadDeadline(time.Now().Add(grace)) // the subscriber ends its side, too
	close(sv.done)
}

// sendBounds writes START and END as soon as they are known (05 and later).
func (sv *serving) sendBounds() {
	v := sv.s.version
	if !v.HasSubscribeStartEnd() {
		return
	}
	sv.bounds.Lock()
	defer sv.bounds.Unlock()
	var b []byte
	if !sv.startSent {
		if group, ok := sv.media.Start(); ok {
			sv.startSent = true
			b, _ = message.SubscribeStart{Group: group}.Append(b, v)
		}
	}
	if !sv.endSent {
		if group, ok := sv.media.End(); ok {
			sv.endSent = true
			b, _ = message.SubscribeEnd{Group: group}.Append(b, v)
		}
	}
	if len(b) > 0 {
		_, _ = sv.r.Write(b) // a failure ends the subscription through the context of the stream
	}
}

// maxDrops is how many ranges of missing groups a subscriber is told of at the end of a track.
const maxDrops = 64

// sendDrops tells of the groups between START and END that the subscriber did not get, the newest first (05 and later). It
// need not wait for them then, as it would for groups in flight (moq-lite 4.3).
func (sv *serving) sendDrops() {
	v := sv.s.version
	start, begun := sv.media.Start()
	end, ended := sv.media.End()
	if !v.HasSubscribeStartEnd() || !begun || !ended || start >= end {
		return
	}
	sv.mu.Lock()
	gaps := sv.whole.gaps(start, end-1, maxDrops)
	sv.mu.Unlock()
	var b []byte
	for _, g := range gaps {
		b, _ = message.SubscribeDrop{Start: g.first, End: g.last}.Append(b, v)
	}
	if len(b) > 0 {
		_, _ = sv.r.Write(b) // a failure ends the subscription anyway
	}
}
