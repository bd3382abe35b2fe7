//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// patience is how long the relay may take for anything: under the race detector, beside other tests, it is slow.
const patience = 30 * time.Second

// carrier is how a stranger reaches the relay.
type carrier string

const (
	quicCarrier carrier = "quic"
	wtCarrier   carrier = "webtransport"
)

var carriers = []carrier{quicCarrier, wtCarrier}

// dialerTo makes a dialer that trusts the relay and offers v alone.
func dialerTo(t *testing.T, r drive.Relay, v message.Version) *endpoint.Dialer {
	t.Helper()
	return dialerOn(t, r, v, nil)
}

// dialerOn makes one on a given socket; nil opens one.
func dialerOn(t *testing.T, r drive.Relay, v message.Version, socket net.PacketConn) *endpoint.Dialer {
	t.Helper()
	pin, err := tlsconf.ParseFingerprint(r.Hash)
	if err != nil {
		t.Fatal(err)
	}
	d, err := endpoint.NewDialer(endpoint.DialConfig{
		PacketConn: socket, Protocols: []string{v.Token()}, TLS: tlsconf.ClientConfig{Fingerprints: []tlsconf.Fingerprint{pin}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// target is the relay's address for a carrier.
func target(t *testing.T, r drive.Relay, c carrier) endpoint.Target {
	t.Helper()
	text := r.MOQT()
	if c == wtCarrier {
		text = r.HTTPS()
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint.Target{URL: u}
}

// stranger is a live connection to the relay on which a test sends what it likes.
type stranger struct {
	t    *testing.T
	v    message.Version
	conn transport.Conn
	ctx  context.Context
	feed transport.Stream // of its announcements, once announce has begun it
}

// meet dials the relay; the session has said nothing yet.
func meet(t *testing.T, d *endpoint.Dialer, to endpoint.Target, v message.Version) *stranger {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	conn, err := d.Dial(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(0, "") })
	return &stranger{t: t, v: v, conn: conn, ctx: ctx}
}

// greet does the client's part of the handshake.
func (s *stranger) greet() *stranger {
	s.t.Helper()
	switch {
	case s.v.HasInbandSetup():
		st := s.open(message.ClientSetup{Versions: []uint64{s.v.Code()}})
		if _, err := message.ReadServerSetup(bytewise{st}); err != nil {
			s.t.Fatalf("SERVER_SETUP: %v", err)
		}
	case s.v.HasSetup():
		s.openUni(message.UniSetup, message.Setup{Hop: 7})
	}
	return s
}

// parts encodes stream types, messages and raw bytes, in order.
func (s *stranger) parts(parts []any) (b []byte) {
	s.t.Helper()
	for _, part := range parts {
		var err error
		switch part := part.(type) {
		case []byte:
			b = append(b, part...)
		case message.StreamType:
			b = part.Append(b)
		case message.UniType:
			b = part.Append(b)
		case message.Encoder:
			b, err = part.Append(b, s.v)
		default:
			err = fmt.Errorf("a %T cannot be sent", part)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return b
}

// open opens a bidirectional stream with parts on it.
func (s *stranger) open(parts ...any) transport.Stream {
	s.t.Helper()
	st, err := s.conn.OpenStream(s.ctx)
	if err != nil {
		s.t.Fatalf("open a stream: %v", err)
	}
	s.send(st, parts...)
	return st
}

// openUni opens a unidirectional stream with parts on it.
func (s *stranger) openUni(parts ...any) transport.SendStream {
	s.t.Helper()
	st, err := s.conn.OpenUniStream(s.ctx)
	if err != nil {
		s.t.Fatalf("open a stream: %v", err)
	}
	s.send(st, parts...)
	return st
}

// send writes parts; the relay may have ended the stream before.
func (s *stranger) send(st transport.SendStream, parts ...any) {
	s.t.Helper()
	var ended *transport.StreamError
	if _, err := st.Write(s.parts(parts)); err != nil && !errors.As(err, &ended) && !errors.Is(err, io.ErrClosedPipe) {
		s.t.Fatalf("send: %v", err)
	}
}

// request waits for the next stream of the relay that has the type, and reads the message that opens it. Other streams
// are left alone.
func (s *stranger) request(want message.StreamType, m message.Decoder) transport.Stream {
	s.t.Helper()
	for {
		st, err := s.conn.AcceptStream(s.ctx)
		if err != nil {
			s.t.Fatalf("waiting for a stream %v of the relay: %v", want, err)
		}
		_ = st.SetReadDeadline(time.Now().Add(patience))
		typ, err := message.ReadStreamType(bytewise{st}, s.v)
		if err != nil {
			s.t.Fatalf("type of a stream of the relay: %v", err)
		}
		if typ != want {
			continue
		}
		if err := message.Read(bytewise{st}, s.v, m); err != nil {
			s.t.Fatalf("%v of the relay: %v", want, err)
		}
		return st
	}
}

// wantReset wants the relay to reset its half of a stream.
func (s *stranger) wantReset(st transport.ReceiveStream, code uint64) {
	s.t.Helper()
	_ = st.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, st)
	var ended *transport.StreamError
	if !errors.As(err, &ended) || !ended.Remote || ended.Unmapped || ended.Code != code {
		s.t.Errorf("the relay's half ends with %v, want a reset with 0x%x", err, code)
	}
}

// wantStop wants the relay to stop ours.
func (s *stranger) wantStop(st transport.SendStream, code uint64) {
	s.t.Helper()
	select {
	case <-st.Context().Done():
	case <-time.After(patience):
	}
	var ended *transport.StreamError
	if err := context.Cause(st.Context()); !errors.As(err, &ended) || !ended.Remote || ended.Unmapped || ended.Code != code {
		s.t.Errorf("our half ends with %v, want it stopped with 0x%x", err, code)
	}
}

// wantClose wants the relay to close the session.
func (s *stranger) wantClose(code uint32) {
	s.t.Helper()
	select {
	case <-s.conn.Context().Done():
	case <-time.After(patience):
	}
	var ended *transport.SessionError
	err := context.Cause(s.conn.Context())
	if !errors.As(err, &ended) || !ended.Remote || ended.Transport != nil || ended.Code != code {
		s.t.Errorf("the session: %v, want it closed by the relay with 0x%x", err, code)
	}
}

// wantAlive wants the relay to answer on the session: it lists the healthy broadcast.
func (s *stranger) wantAlive() {
	s.t.Helper()
	st := s.open(message.StreamAnnounce, message.AnnounceRequest{})
	defer st.Reset(1)
	defer st.Stop(1)
	_ = st.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(st, make([]byte, 1)); err != nil {
		s.t.Errorf("the session does not answer any more: %v", err)
	}
}

// announce answers the relay's ANNOUNCE stream with one broadcast.
func (s *stranger) announce(path string) transport.Stream {
	s.t.Helper()
	st := s.request(message.StreamAnnounce, new(message.AnnounceRequest))
	switch {
	case s.v.HasAnnounceInit():
		s.send(st, message.AnnounceInit{Suffixes: []string{path}})
	case s.v.HasAnnounceOK():
		s.send(st, message.AnnounceOK{Hop: 7, Active: 1}, message.Announce{Suffix: path})
	default:
		s.send(st, message.Announce{Suffix: path})
	}
	s.feed = st
	return st
}

// bytewise reads no more than it must.
type bytewise struct{ io.Reader }

func (r bytewise) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return b[0], err
}

// start starts a relay whose collector of garbage is so eager that what it holds is what it needs.
func start(t *testing.T) drive.Relay {
	t.Helper()
	t.Setenv("GOGC", "20")
	return drive.StartRelay(t, "relay")
}

// bystanders starts a publisher and a viewer whom nothing that happens at the relay may disturb. The function that it
// returns stops the viewer and looks at what it has seen. They allow groups to be late, for the sake of slow machines.
func bystanders(t *testing.T, r drive.Relay) (check func()) {
	t.Helper()
	pub := drive.Start(t, "pub", binary(t), "pub", r.MOQT(), "healthy", "--max-age", "1m", "--hash", r.Hash)
	pub.Expect(t, "published", patience)
	sub := drive.Start(t, "sub", binary(t), "sub", r.HTTPS(), "healthy", "--hash", r.Hash)
	sub.Expect(t, "second", patience)
	return func() {
		t.Helper()
		sub.Signal(t, syscall.SIGINT)
		summary := sub.Expect(t, "summary", patience)
		if code := sub.Wait(t, patience); code != 0 || summary["ok"] != true || summary.Number("frames") < 1 {
			t.Errorf("the healthy viewer: exit status %d, %v", code, summary)
		}
	}
}

// maxGrowth bounds what strangers may add to the memory of the relay, in bytes.
const maxGrowth = 16 << 20

// load is what a relay holds. The memory, in bytes, is that of the Go runtime: other than the resident size of the
// process it leaves out what the detector of races needs, which grows with everything that ever ran.
type load struct{ goroutines, sessions, descriptors, memory float64 }

func loadOf(t *testing.T, r drive.Relay) load {
	t.Helper()
	return load{
		goroutines: r.Metric(t, "go_goroutines"), sessions: r.Metric(t, "moqmesh_sessions"), descriptors: r.Metric(t, "process_open_fds"),
		memory: r.Metric(t, "go_memstats_sys_bytes") - r.Metric(t, "go_memstats_heap_released_bytes"),
	}
}

// wantLoad wants the relay to return to an earlier load within limit. Runtime and HTTP server may keep a few goroutines
// and descriptors of their own.
func wantLoad(t *testing.T, r drive.Relay, before load, limit time.Duration) {
	t.Helper()
	const slack = 6
	var now load
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		now = loadOf(t, r)
		if now.sessions <= before.sessions && now.goroutines <= before.goroutines+slack &&
			now.descriptors <= before.descriptors+slack && now.memory <= before.memory+maxGrowth {
			return
		}
	}
	t.Errorf("the relay holds %+v after %v, %+v before", now, limit, before)
}
