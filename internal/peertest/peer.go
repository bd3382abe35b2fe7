package peertest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

// Patience is how long a Peer waits for what it wants. In a bubble that costs nothing.
const Patience = 10 * time.Second

// Peer plays one end of a connection from a script. Everything the session at the other end does has to be wanted: WantIdle
// fails if anything was not. Whatever goes wrong ends the test. Only the goroutine of the test may use a Peer, and Want
// methods other than WantIdle and WantAlive also work outside of a bubble.
//
// What a Peer sends and wants is given in parts: a string is hexadecimal bytes, in which blanks and bars do not count;
// []byte is taken as it is; stream types, and messages of the session's version, are encoded.
type Peer struct {
	Conn    *Conn
	Version message.Version

	tb      testing.TB
	streams []*PeerStream
}

// NewPeer returns a Peer that plays conn.
func NewPeer(tb testing.TB, conn *Conn, v message.Version) *Peer {
	tb.Helper()
	return &Peer{Conn: conn, Version: v, tb: tb}
}

// PeerStream is one end of a stream in the hands of a Peer. What it does not want it never reads.
type PeerStream struct {
	p       *Peer
	s       *Stream
	stopped bool // the test has seen STOP_SENDING
}

// Open opens a bidirectional stream and sends parts on it.
func (p *Peer) Open(parts ...any) *PeerStream {
	p.tb.Helper()
	s, err := p.Conn.openStream(p.context(), bidi)
	return p.opened(s, err, parts)
}

// OpenUni opens a unidirectional stream and sends parts on it.
func (p *Peer) OpenUni(parts ...any) *PeerStream {
	p.tb.Helper()
	s, err := p.Conn.openStream(p.context(), uni)
	return p.opened(s, err, parts)
}

func (p *Peer) opened(s *Stream, err error, parts []any) *PeerStream {
	p.tb.Helper()
	if err != nil {
		p.tb.Fatalf("open a stream: %v", err)
	}
	return p.track(s).Send(parts...)
}

// WantStream waits for the next bidirectional stream of the session, which has to start with parts.
func (p *Peer) WantStream(parts ...any) *PeerStream {
	p.tb.Helper()
	return p.accepted(bidi, parts)
}

// WantUniStream waits for the next unidirectional stream of the session, which has to start with parts.
func (p *Peer) WantUniStream(parts ...any) *PeerStream {
	p.tb.Helper()
	return p.accepted(uni, parts)
}

func (p *Peer) accepted(k kind, parts []any) *PeerStream {
	p.tb.Helper()
	s, err := p.Conn.acceptStream(p.context(), k)
	if err != nil {
		p.tb.Fatalf("want a stream: %v", err)
	}
	return p.track(s).Want(parts...)
}

func (p *Peer) track(s *Stream) *PeerStream {
	ps := &PeerStream{p: p, s: s}
	p.streams = append(p.streams, ps)
	return ps
}

// context gives up after Patience.
func (p *Peer) context() context.Context {
	ctx, cancel := context.WithTimeout(p.tb.Context(), Patience)
	p.tb.Cleanup(cancel)
	return ctx
}

// SendDatagram sends parts as one datagram.
func (p *Peer) SendDatagram(parts ...any) {
	p.tb.Helper()
	if err := p.Conn.SendDatagram(p.encode(parts)); err != nil {
		p.tb.Fatalf("send a datagram: %v", err)
	}
}

// WantDatagram waits for a datagram that consists of parts.
func (p *Peer) WantDatagram(parts ...any) {
	p.tb.Helper()
	got, err := p.Conn.ReceiveDatagram(p.context())
	if err != nil {
		p.tb.Fatalf("want a datagram: %v", err)
	}
	if want := p.encode(parts); string(got) != string(want) {
		p.tb.Fatalf("datagram is\n%x, want\n%x", got, want)
	}
}

// WantClose waits for the session to close with code.
func (p *Peer) WantClose(code uint32) {
	p.tb.Helper()
	select {
	case <-p.Conn.Context().Done():
	case <-time.After(Patience):
		p.tb.Fatalf("the session is open, want it to close with 0x%x", code)
	}
	var se *transport.SessionError
	err := context.Cause(p.Conn.Context())
	if !errors.As(err, &se) || se.Transport != nil || !se.Remote || se.Code != code {
		p.tb.Fatalf("%v; want a close with 0x%x", err, code)
	}
}

// WantAlive waits until the session has nothing more to do, and fails if it has closed.
func (p *Peer) WantAlive() {
	p.tb.Helper()
	synctest.Wait()
	if p.Conn.Context().Err() != nil {
		p.tb.Fatalf("want an open session: %v", context.Cause(p.Conn.Context()))
	}
}

// WantIdle waits until the session has nothing more to do, and fails if it has closed or done anything that was not wanted:
// opened a stream, sent bytes, FIN, reset or STOP_SENDING on one, or a datagram. STOP_SENDING after the peer's own FIN has no
// effect and does not count.
func (p *Peer) WantIdle() {
	p.tb.Helper()
	p.WantAlive()
	p.Conn.link.mu.Lock()
	defer p.Conn.link.mu.Unlock()
	for k, name := range [...]string{bidi: "bidirectional", uni: "unidirectional"} {
		if n := len(p.Conn.accept[k]); n > 0 {
			p.tb.Fatalf("%d unwanted %s streams, the first with %x", n, name, p.Conn.accept[k][0].in.buf)
		}
	}
	if n := len(p.Conn.datagrams); n > 0 {
		p.tb.Fatalf("%d unwanted datagrams, the first is %x", n, p.Conn.datagrams[0])
	}
	for i, s := range p.streams {
		if what := s.unwanted(); what != "" {
			p.tb.Fatalf("stream %d of the test: unwanted %s", i, what)
		}
	}
}

// unwanted describes what the test has not asked for; the caller holds the lock.
func (s *PeerStream) unwanted() string {
	if out := s.s.out; out != nil && out.stopped != nil && !s.stopped && !out.fin {
		return fmt.Sprintf("STOP_SENDING with 0x%x", out.stopped.Code)
	}
	switch in := s.s.in; {
	case in == nil || in.read || in.stopped != nil:
		return ""
	case in.reset != nil:
		return fmt.Sprintf("reset with 0x%x", in.reset.Code)
	case len(in.buf) > 0:
		return fmt.Sprintf("bytes %x", in.buf)
	case in.fin:
		return "FIN"
	}
	return ""
}

// encode is what parts are on the wire.
func (p *Peer) encode(parts []any) (b []byte) {
	p.tb.Helper()
	for _, part := range parts {
		var err error
		switch part := part.(type) {
		case string:
			var raw []byte
			raw, err = hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(part))
			b = append(b, raw...)
		case []byte:
			b = append(b, part...)
		case message.StreamType:
			b = part.Append(b)
		case message.UniType:
			b = part.Append(b)
		case message.Encoder:
			b, err = part.Append(b, p.Version)
		default:
			err = fmt.Errorf("a %T cannot be sent", part)
		}
		if err != nil {
			p.tb.Fatalf("part %v: %v", part, err)
		}
	}
	return b
}

// Send sends parts. It fails if the session has stopped the stream: use TrySend where it may.
func (s *PeerStream) Send(parts ...any) *PeerStream {
	s.p.tb.Helper()
	if err := s.TrySend(parts...); err != nil {
		s.p.tb.Fatalf("send: %v", err)
	}
	return s
}

// TrySend sends parts and returns the error of the stream.
func (s *PeerStream) TrySend(parts ...any) error {
	s.p.tb.Helper()
	b := s.p.encode(parts)
	if len(b) == 0 {
		return nil
	}
	if err := s.s.SetWriteDeadline(time.Now().Add(Patience)); err != nil {
		return err
	}
	_, err := s.s.Write(b)
	return err
}

// FIN ends what the peer sends. If the session has stopped the stream or has closed, it does nothing.
func (s *PeerStream) FIN() *PeerStream {
	_ = s.s.Close()
	return s
}

// Reset resets what the peer sends.
func (s *PeerStream) Reset(code uint64) *PeerStream { s.s.Reset(code); return s }

// Stop sends STOP_SENDING.
func (s *PeerStream) Stop(code uint64) *PeerStream { s.s.Stop(code); return s }

// Want reads as many bytes as parts take, and compares.
func (s *PeerStream) Want(parts ...any) *PeerStream {
	s.p.tb.Helper()
	want := s.p.encode(parts)
	got := make([]byte, len(want))
	n, err := s.readFull(got)
	if string(got[:n]) != string(want) {
		s.p.tb.Fatalf("stream has\n%x, want\n%x (%v)", got[:n], want, err)
	}
	return s
}

// Receive reads a message into m, for what a test cannot know beforehand.
func (s *PeerStream) Receive(m message.Decoder) *PeerStream {
	s.p.tb.Helper()
	if err := message.Read(s.reader(), s.p.Version, m); err != nil {
		s.p.tb.Fatalf("receive a %T: %v", m, err)
	}
	return s
}

// ReceiveAll reads all bytes up to FIN.
func (s *PeerStream) ReceiveAll() []byte {
	s.p.tb.Helper()
	b, err := io.ReadAll(s.reader())
	if err != nil {
		s.p.tb.Fatalf("read up to FIN: %v after %x", err, b)
	}
	return b
}

// WantFIN fails unless the session's FIN is next.
func (s *PeerStream) WantFIN() *PeerStream {
	s.p.tb.Helper()
	var b [64]byte
	if n, err := s.readFull(b[:]); !errors.Is(err, io.EOF) {
		s.p.tb.Fatalf("want FIN, got %x, %v", b[:n], err)
	}
	return s
}

// WantReset fails unless the session has reset the stream with code. What it had sent before is lost.
func (s *PeerStream) WantReset(code uint64) *PeerStream {
	s.p.tb.Helper()
	var se *transport.StreamError
	_, err := io.Copy(io.Discard, s.reader())
	if !errors.As(err, &se) || !se.Remote || se.Code != code {
		s.p.tb.Fatalf("%v; want a reset with 0x%x", orFIN(err), code)
	}
	return s
}

// WantEnd accepts FIN or a reset with 0x1: both end a stream normally (moq-lite 12, item 11).
func (s *PeerStream) WantEnd() *PeerStream {
	s.p.tb.Helper()
	var se *transport.StreamError
	_, err := io.Copy(io.Discard, s.reader())
	if err != nil && (!errors.As(err, &se) || !se.Remote || se.Code != 1) {
		s.p.tb.Fatalf("%v; want FIN or a reset with 0x1", err)
	}
	return s
}

// WantStop waits for STOP_SENDING with code.
func (s *PeerStream) WantStop(code uint64) *PeerStream {
	s.p.tb.Helper()
	out := s.s.out
	timer := time.AfterFunc(Patience, out.wake)
	defer timer.Stop()
	s.p.Conn.link.mu.Lock()
	defer s.p.Conn.link.mu.Unlock()
	for end := time.Now().Add(Patience); out.stopped == nil; out.writer.Wait() {
		if s.p.Conn.err != nil {
			s.p.tb.Fatalf("%v; want STOP_SENDING with 0x%x", s.p.Conn.err, code)
		}
		if !time.Now().Before(end) {
			s.p.tb.Fatalf("the stream is not stopped, want STOP_SENDING with 0x%x", code)
		}
	}
	if out.stopped.Code != code {
		s.p.tb.Fatalf("stopped with 0x%x, want 0x%x", out.stopped.Code, code)
	}
	s.stopped = true
	return s
}

// Refused waits until the session has reset its side with reset and stopped the other with stop, in any order.
func (s *PeerStream) Refused(reset, stop uint64) {
	s.p.tb.Helper()
	s.WantReset(reset)
	s.WantStop(stop)
}

// AnyStop accepts STOP_SENDING, now or later, as when a side is of no more use.
func (s *PeerStream) AnyStop() *PeerStream { s.stopped = true; return s }

// Urgency is the priority that the session has given the stream.
func (s *PeerStream) Urgency() int { return s.s.Urgency() }

// WantNothing fails if the session has done something on the stream.
func (s *PeerStream) WantNothing() *PeerStream {
	s.p.tb.Helper()
	synctest.Wait()
	s.p.Conn.link.mu.Lock()
	defer s.p.Conn.link.mu.Unlock()
	if what := s.unwanted(); what != "" {
		s.p.tb.Fatalf("unwanted %s", what)
	}
	return s
}

// readFull reads until b is full or the stream ends. The error is io.EOF if it ends before the first byte.
func (s *PeerStream) readFull(b []byte) (int, error) { return io.ReadFull(s.reader(), b) }

// reader reads without buffering, so that what is not wanted stays in the stream. It gives up after Patience.
func (s *PeerStream) reader() wire.StreamReader {
	if err := s.s.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		s.p.tb.Fatal(err)
	}
	return byteReader{s.s}
}

type byteReader struct{ io.Reader }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return b[0], err
}

func orFIN(err error) error {
	if err == nil {
		return errors.New("FIN")
	}
	return err
}
