package lite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// ErrNoVersion means that the ends have no version of moq-lite in common.
var ErrNoVersion = errors.New("no common version of moq-lite")

// allVersions are the versions, most preferred first.
var allVersions = []message.Version{
	message.Lite06, message.Lite05, message.Lite04, message.Lite03, message.Lite02, message.Lite01,
}

// Tokens are the ALPN or sub-protocol tokens for vs (nil = all), most preferred first. 01 and 02 share one.
func Tokens(vs []message.Version) []string {
	var tokens []string
	for _, v := range allVersions {
		if vs != nil && !slices.Contains(vs, v) || slices.Contains(tokens, v.Token()) {
			continue
		}
		tokens = append(tokens, v.Token())
	}
	return tokens
}

// Speaks reports whether token stands for a version of moq-lite. No token at all is as good as "moql": the version is
// negotiated in band.
func Speaks(token string) bool {
	return token == "" || slices.Contains(Tokens(nil), token)
}

// Peer is what the other end has said about itself.
type Peer struct {
	// Path and Query are what a client asked for, in the URL or in SETUP: split at the first "?", else as they
	// came. Both are empty where the wire carries none. The query may hold credentials: never log it.
	Path, Query string
	Role        message.Role
	// Hop is its declared id, 0 if it declared none.
	Hop route.Hop
	// Price is what the dialing side declared as the price of the link, nil if nothing.
	Price *uint64
}

// Accept does the handshake as the server. On 05 and 06 it waits for the client's SETUP: path and role are in it. If
// it fails the connection has been closed with the code that fits.
func Accept(ctx context.Context, conn transport.Conn, cfg Config) (*Session, error) {
	s := newSession(conn, cfg)
	s.peer.Path, s.peer.Query = urlPath(conn)
	return s.handshake(ctx, s.accept)
}

// Connect does the handshake as the client. On 05 and 06 it does not wait for the server's SETUP; AwaitPeer does. If it
// fails the connection has been closed with the code that fits.
func Connect(ctx context.Context, conn transport.Conn, cfg Config) (*Session, error) {
	s := newSession(conn, cfg)
	s.dialed = true
	return s.handshake(ctx, s.connect)
}

// handshake runs one side's part within the limit of time.
func (s *Session) handshake(ctx context.Context, do func(context.Context) error) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.HandshakeTimeout)
	defer cancel()
	if err := do(ctx); err != nil {
		return nil, fmt.Errorf("moq-lite handshake: %w", s.giveUp(ctx, err))
	}
	return s, nil
}

// giveUp closes the session because of err, or of the end of ctx. It returns the cause.
func (s *Session) giveUp(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		code := SessionNoError
		if errors.Is(cause, context.DeadlineExceeded) {
			code = SessionControlTimeout
		}
		err = &violation{code, cause}
	}
	return s.closeFor(err)
}

func (s *Session) accept(ctx context.Context) error {
	inband, err := s.versionByToken()
	switch {
	case err != nil:
		return err
	case inband:
		return s.acceptInband(ctx)
	case !s.version.HasSetup():
		return nil
	}
	if err := s.sendSetup(ctx, message.Setup{}); err != nil {
		return err
	}
	return s.readSetup(ctx)
}

func (s *Session) connect(ctx context.Context) error {
	inband, err := s.versionByToken()
	switch {
	case err != nil:
		return err
	case inband:
		return s.connectInband(ctx)
	case !s.version.HasSetup():
		return nil
	}
	m := message.Setup{Role: s.cfg.Role}
	if s.conn.Info().URL == nil && s.cfg.Path != "" {
		m.Path, m.HasPath = s.cfg.Path, true
	}
	if s.cfg.Price != nil {
		m.Cost, m.HasCost = *s.cfg.Price, true
	}
	return s.sendSetup(ctx, m)
}

// versionByToken sets the version that the negotiated token stands for. It reports true if the version is to be
// negotiated in band.
func (s *Session) versionByToken() (inband bool, err error) {
	token := s.conn.Info().Protocol
	if token == "" || token == message.Lite02.Token() {
		return true, nil
	}
	for _, v := range allVersions {
		if v.Token() == token && s.cfg.allows(v) {
			s.setVersion(v)
			return false, nil
		}
	}
	return false, &violation{SessionNoVersion, fmt.Errorf("%w: token %q", ErrNoVersion, token)}
}

// setVersion fixes the version. On versions without SETUP there is nothing to wait for.
func (s *Session) setVersion(v message.Version) {
	s.version = v
	if !v.HasSetup() {
		close(s.setup)
	}
}

// sendSetup opens our SETUP stream and ends it at once. Both ends can be asked for reports: every carrier knows its
// round-trip time.
func (s *Session) sendSetup(ctx context.Context, m message.Setup) error {
	m.Probe = message.ProbeReport
	m.Hop = message.Hop(s.cfg.Hop)
	b, err := m.Append(message.UniSetup.Append(nil), s.version)
	if err != nil {
		return err
	}
	st, err := s.conn.OpenUniStream(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { st.Reset(StreamCancelled) })
	defer stop()
	if _, err := st.Write(b); err != nil {
		return err
	}
	s.counters.ControlSent[session.ControlSession].Add(uint64(len(b)))
	var stopped *transport.StreamError
	if err := st.Close(); err != nil && !errors.As(err, &stopped) {
		return err
	}
	return nil // the peer may stop the stream once it has read SETUP, before our FIN
}

// AwaitPeer waits until the peer's SETUP has arrived and returns what Peer then returns. A client calls it before Run
// if its host needs to know the server's hop before it is told of announcements; it must not be called at the same time
// as, or after, Run. If it fails the connection has been closed.
func (s *Session) AwaitPeer(ctx context.Context) (Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.HandshakeTimeout)
	defer cancel()
	if err := s.readSetup(ctx); err != nil {
		return Peer{}, s.giveUp(ctx, fmt.Errorf("awaiting SETUP: %w", err))
	}
	return s.Peer(), nil
}

// readSetup accepts unidirectional streams until the peer's SETUP has come. Others are stopped and skipped (moq-lite 2):
// nothing can have been asked for yet.
func (s *Session) readSetup(ctx context.Context) error {
	for !s.setupArrived() {
		st, err := s.conn.AcceptUniStream(ctx)
		if err != nil {
			return err
		}
		if err := s.readEarly(ctx, st); err != nil {
			return err
		}
	}
	return nil
}

// readEarly handles one stream that arrived before SETUP.
func (s *Session) readEarly(ctx context.Context, st transport.ReceiveStream) error {
	stop := context.AfterFunc(ctx, func() { st.Stop(StreamCancelled) })
	defer stop()
	in := newInput(st, controlBuffer)
	typ, err := message.ReadUniType(in, s.version)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && typ != message.UniSetup:
		st.Stop(StreamInternal)
		return nil
	case malformed(err): // an unknown type too, at this stage
		return violationf("first bytes of a stream: %w", err)
	case err != nil: // reset, or ended, without a word
		st.Stop(StreamInternal)
		return nil
	}
	return s.receiveSetup(st, in)
}

// receiveSetup reads SETUP from its stream, whose type has been read. Every error ends the session.
func (s *Session) receiveSetup(st transport.ReceiveStream, in *input) error {
	if !s.claimSetup() {
		return violationf("second SETUP stream")
	}
	var m message.Setup
	if err := in.message(s.version, &m, message.MaxSetupBody); err != nil {
		return violationf("SETUP: %w", err)
	}
	if b, err := m.Append(message.UniSetup.Append(nil), s.version); err == nil {
		s.counters.ControlReceived[session.ControlSession].Add(uint64(len(b))) // but for what we do not know
	}
	s.applySetup(m)
	s.spawn(func() { // nothing waits for the FIN, but stopping the stream before it might fail the peer's handshake
		_ = st.SetReadDeadline(time.Now().Add(grace))
		_, _ = st.Read(make([]byte, 1))
		st.Stop(StreamInternal)
	})
	return nil
}

// claimSetup reports true to the first stream that is the peer's SETUP.
func (s *Session) claimSetup() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.setupClaimed
	s.setupClaimed = true
	return first
}

// applySetup takes over what the peer declared. What only clients send is ignored in a server's.
func (s *Session) applySetup(m message.Setup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peer.Hop = route.Hop(m.Hop)
	s.probe = m.Probe
	if !s.dialed {
		s.peer.Role = m.Role
		if m.HasCost {
			s.peer.Price = &m.Cost
		}
		if m.Path != "" { // wins over the URL, as the reference has it (moq-lite 1.5)
			s.peer.Path, s.peer.Query, _ = strings.Cut(m.Path, "?")
		}
	}
	close(s.setup)
}

// setupArrived reports whether what the peer declares is known.
func (s *Session) setupArrived() bool {
	select {
	case <-s.setup:
		return true
	default:
		return false
	}
}

// awaitSetup waits for the peer's SETUP on behalf of a request that needs it.
func (s *Session) awaitSetup(ctx context.Context) error {
	if s.setupArrived() {
		return nil
	}
	timer := time.NewTimer(s.cfg.HandshakeTimeout)
	defer timer.Stop()
	select {
	case <-s.setup:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return context.DeadlineExceeded
	}
}

// urlPath is the path and query of the URL that the client asked for, where the carrier has one. Neither is decoded, as
// neither is in SETUP.
func urlPath(conn transport.Conn) (path, query string) {
	if u := conn.Info().URL; u != nil {
		return u.EscapedPath(), u.RawQuery
	}
	return "", ""
}
