package lite

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// Session is one moq-lite session over one connection. Its methods may be called concurrently.
type Session struct {
	conn     transport.Conn
	cfg      Config
	log      *slog.Logger
	counters *session.Counters
	dialed   bool
	version  message.Version // fixed by the handshake
	started  time.Time

	inband   transport.Stream // session stream of 01 and 02
	inbandIn *input

	setup   chan struct{}   // closed when the peer's SETUP is known, or at once where there is none
	handler session.Handler // set by Run before anything is served

	failed  atomic.Bool // what the peer did wrong has been logged
	goaway  atomic.Bool // we sent GOAWAY
	leaving atomic.Bool // the peer did

	mu           sync.Mutex
	peer         Peer
	probe        uint64 // what the peer can report
	setupClaimed bool
	ended        bool // nothing is started any more
	wg           sync.WaitGroup
	gotGoaway    bool
	datagrams    bool // the receive loop runs

	announced atomic.Int64  // live advertisements of the peer
	names     atomic.Int64  // bytes of names that the peer makes us hold
	advertID  atomic.Uint64 // the last one given

	frames frameBudget
	viewed viewers       // by the peer
	views  viewers       // by us
	in     subscriptions // ours
	out    served        // the peer's
	opener opener
	ranks  ranker
	watch  watch
}

var _ session.Upstream = (*Session)(nil)

func newSession(conn transport.Conn, cfg Config) *Session {
	cfg = cfg.withDefaults()
	s := &Session{
		conn:     conn,
		cfg:      cfg,
		log:      cfg.Logger,
		counters: cfg.Counters,
		started:  time.Now(),
		setup:    make(chan struct{}),
	}
	s.frames.limit, s.frames.limited = cfg.Limits.FrameBytes, &cfg.Limited.Frames
	return s
}

// Version is the negotiated version.
func (s *Session) Version() message.Version { return s.version }

// Wire says what the version can carry, as far as routes are concerned.
func (s *Session) Wire() route.Wire {
	switch s.version {
	case message.Lite03:
		return route.WireLite03
	case message.Lite04:
		return route.WireLite04
	case message.Lite05:
		return route.WireLite05
	case message.Lite06:
		return route.WireLite06
	default:
		return route.WireLite01
	}
}

// Peer is what the other end has declared so far. After Accept it is final; a client may wait for the rest with
// AwaitPeer.
func (s *Session) Peer() Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

// Counters are the session's totals.
func (s *Session) Counters() *session.Counters { return s.counters }

// Conn is the connection below. It is for its Info and Stats; the session alone uses its streams.
func (s *Session) Conn() transport.Conn { return s.conn }

// Close ends the session with a code and a short reason. It returns when the carrier has done what it can to
// deliver both; Run returns after it. Later calls do nothing.
func (s *Session) Close(code uint32, reason string) { s.conn.Close(code, reason) }

// Run serves the session: it puts the peer's requests to h, and asks the peer for announcements below each of the
// interests (unless the peer said that it only subscribes). It returns when the session has ended and with it every
// goroutine that was started here, with the *transport.SessionError, or the cause of ctx if that ended the session. It
// must be called once, also to end a session on which only requests of ours were made.
func (s *Session) Run(ctx context.Context, h session.Handler, interests []string) error {
	s.handler = h
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		s.Close(SessionNoError, "")
	})
	s.spawn(s.acceptUniStreams)
	if s.inband != nil {
		s.spawn(s.watchInband)
	}
	if s.Peer().Role != message.RoleSubscriber {
		for _, prefix := range interests {
			s.spawn(func() { s.listen(prefix) })
		}
	}
	s.acceptStreams()
	<-s.conn.Context().Done()
	s.end()
	if !stop() {
		<-closed
		return context.Cause(ctx)
	}
	return context.Cause(s.conn.Context())
}

// end lets nothing start any more and waits for what runs.
func (s *Session) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.watch.stop()
	s.wg.Wait()
}

// enter registers work that Run waits for; leave ends it. It reports false if the session is over.
func (s *Session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.wg.Add(1)
	return true
}

func (s *Session) leave() { s.wg.Done() }

// spawn runs f in a goroutine that Run waits for. It reports false, and does nothing, if the session is over.
func (s *Session) spawn(f func()) bool {
	if !s.enter() {
		return false
	}
	go func() {
		defer s.leave()
		f()
	}()
	return true
}

// fail ends the session because of err, and logs what the peer did wrong, once. It returns what closeFor does.
func (s *Session) fail(err error) error {
	if v, ok := errors.AsType[*violation](err); ok && s.conn.Context().Err() == nil && !s.failed.Swap(true) {
		s.log.Warn("closing session", "code", v.code, "cause", err)
	}
	return s.closeFor(err)
}

// closeFor ends the session with the code of the violation that err wraps. It returns err, or how the session has ended if
// that happened before. An error that says that the session is over ends nothing: streams may learn of it before the
// connection has settled how, and that must not be replaced by our closing.
func (s *Session) closeFor(err error) error {
	if s.conn.Context().Err() != nil {
		return s.closedError()
	}
	if _, over := errors.AsType[*transport.SessionError](err); over {
		return err
	}
	code, reason := SessionInternal, ""
	if v, ok := errors.AsType[*violation](err); ok {
		code, reason = v.code, v.Error()
	}
	s.Close(code, reason[:min(len(reason), maxReason)])
	return err
}

// maxReason is the longest reason that is given to the peer, in bytes.
const maxReason = 200

// closedError is how the session ended, for calls that come too late.
func (s *Session) closedError() error {
	if err := context.Cause(s.conn.Context()); err != nil {
		return err
	}
	return net.ErrClosed
}

// acceptStreams serves the streams that the peer opens until the session ends. At most Limits.Pending may be
// without their first message.
func (s *Session) acceptStreams() {
	pending := newSlots(s.cfg.Limits.Pending)
	ctx := s.conn.Context()
	for pending.acquire(ctx) {
		st, err := s.conn.AcceptStream(ctx)
		if err != nil {
			_ = s.fail(err)
			return
		}
		t := s.tallyLater(st)
		r := &request{tallied: t, s: s, in: newInput(t, controlBuffer), pending: pending}
		s.spawn(r.serve)
	}
}

// acceptUniStreams does the same for unidirectional streams.
func (s *Session) acceptUniStreams() {
	pending := newSlots(s.cfg.Limits.Pending)
	ctx := s.conn.Context()
	for pending.acquire(ctx) {
		st, err := s.conn.AcceptUniStream(ctx)
		if err != nil {
			_ = s.fail(err)
			return
		}
		s.spawn(func() { s.serveUni(st, pending) })
	}
}

// serveUni reads the type of a unidirectional stream and serves it.
func (s *Session) serveUni(st transport.ReceiveStream, pending slots) {
	in := newGroupInput(st, &s.frames)
	defer in.free()
	_ = st.SetReadDeadline(time.Now().Add(s.cfg.RequestTimeout))
	typ, err := message.ReadUniType(in, s.version)
	if err == nil && typ == message.UniGroup {
		s.receiveGroup(st, in, pending)
		return
	}
	defer pending.release()
	if err == nil && typ == message.UniSetup {
		if err := s.receiveSetup(st, in); err != nil {
			_ = s.fail(err)
		}
		return
	}
	st.Stop(StreamCancelled)
}

// slots bounds how many may be inside at the same time.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, n) }

// acquire waits for a slot; it reports false if ctx ended.
func (s slots) acquire(ctx context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s slots) release() { <-s }

// Heard implements session.Heard: it counts packets.
func (s *Session) Heard() uint64 { return s.conn.Stats().PacketsReceived }
