//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sync/errgroup"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/wire"
)

// bombs are lengths that nothing follows. The last is the longest that the wire allows.
var bombs = []uint64{wire.MaxVarint, 1 << 32, 64<<20 + 1, 64 << 20}

func bomb(before ...uint64) (b []byte) {
	for _, n := range before {
		b = wire.AppendVarint(b, n)
	}
	return b
}

// TestLengthBombs announces lengths that never come, wherever a peer can: refused from the length, or waited for without
// memory.
func TestLengthBombs(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	for _, c := range carriers {
		for v := message.Lite01; v <= message.Lite06; v++ {
			t.Run(string(c)+"/"+v.String(), func(t *testing.T) { g.bombard(t, c, v) })
		}
	}
	t.Run("patient", func(t *testing.T) {
		for range 20 {
			g.hold(t)
		}
		if now := loadOf(t, r); now.memory > before.memory+maxGrowth {
			t.Errorf("%+v, before %+v", now, before)
		}
	})
	wantLoad(t, r, before, 2*patience)
	check()
}

// bombard sends too long lengths in all messages that a client may begin with.
func (g *garbage) bombard(t *testing.T, c carrier, v message.Version) {
	s := g.meet(t, c, v).greet()
	for _, n := range bombs {
		for _, typ := range []message.StreamType{message.StreamAnnounce, message.StreamSubscribe, message.StreamFetch, message.StreamGoaway, message.StreamTrack} {
			if typ == message.StreamGoaway && (n != wire.MaxVarint || v < message.Lite04) {
				continue // a second one is a fault of its own
			}
			s.wantReset(s.open(typ, bomb(n)), lite.StreamCancelled)
		}
		s.wantStop(s.openUni(message.UniGroup, bomb(n)), lite.StreamMalformed)
	}
	s.wantAlive()
	for _, n := range bombs[:3] { // answers to the relay's own request
		s := g.meet(t, c, v).greet()
		s.send(s.request(message.StreamAnnounce, new(message.AnnounceRequest)), bomb(n))
		s.wantClose(lite.SessionViolation)
	}
	if v.HasSetup() {
		for _, n := range bombs {
			s := g.meet(t, c, v)
			s.openUni(message.UniSetup, bomb(n))
			s.wantClose(lite.SessionViolation)
		}
	}
	if v.HasInbandSetup() {
		s := g.meet(t, c, v)
		s.open([]byte{0x20, 0, 8}, bomb(wire.MaxVarint)) // so many versions
		s.wantClose(lite.SessionViolation)
	}
}

// hold begins what is not too long, and never goes on: an announcement of 64 MiB, frames of 16 and 32 MiB.
func (g *garbage) hold(t *testing.T) {
	t.Helper()
	s := g.meet(t, quicCarrier, message.Lite06).greet()
	seen := g.lure(t, s, func(ctx context.Context, path string) error {
		track, err := g.viewer.Subscribe(ctx, path, "video", client.Subscription{MaxAge: time.Minute})
		if err != nil {
			return err
		}
		t.Cleanup(track.Close)
		return nil
	})
	_, id := s.subscribed()
	for i, size := range []uint64{wire.MaxVarint, 1 << 32, 32<<20 + 1} {
		st := s.openUni(message.UniGroup, message.Group{Subscribe: id, Sequence: uint64(i)}, bomb(0, size))
		s.wantStop(st, lite.StreamFrameTooLarge)
	}
	for i, size := range []uint64{16 << 20, 32 << 20, 32 << 20, 16 << 20} {
		s.openUni(message.UniGroup, message.Group{Subscribe: id, Sequence: uint64(10 + i)}, bomb(0, size, 1))
	}
	if err := <-seen; err != nil {
		t.Errorf("the viewer sees %v", err)
	}
	// The stream of announcements has begun; the next one is endless.
	s.send(s.feed, bomb(0, 64<<20, 1))
	s.wantAlive()
}

// TestStreamFlood opens ten thousand streams that say one byte, and some of types that nobody knows.
func TestStreamFlood(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	for _, c := range carriers {
		s := g.meet(t, c, message.Lite06).greet()
		for _, typ := range []uint64{7, 63, 64, 1 << 14, 1 << 30, wire.MaxVarint} {
			st := s.open(bomb(typ))
			s.wantReset(st, lite.StreamCancelled)
			s.wantStop(st, lite.StreamCancelled)
			s.wantStop(s.openUni(bomb(typ)), lite.StreamCancelled)
		}
		s.wantAlive()
		for range 2500 {
			s.open(message.StreamSubscribe)
			s.openUni(message.UniGroup)
		}
		if now := loadOf(t, r); now.memory > before.memory+2*maxGrowth { // QUIC itself keeps a kilobyte or two for each
			t.Errorf("%+v, before %+v", now, before)
		}
		newcomer(t, g)
		s.conn.Close(0, "")
	}
	wantLoad(t, r, before, patience)
	check()
}

// newcomer wants the relay to have time for somebody else.
func newcomer(t *testing.T, g *garbage) {
	t.Helper()
	begin := time.Now()
	s := g.meet(t, quicCarrier, message.Lite06).greet()
	s.wantAlive()
	s.conn.Close(0, "")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("a new session waits %v", took)
	}
}

// TestHalfOpen opens connections and stops before the session is there. All are gone after listen.timeout.
func TestHalfOpen(t *testing.T) {
	const limit = 2 * time.Second
	t.Setenv("MOQ_LISTEN_TIMEOUT", limit.String())
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	begin := time.Now()
	var ends []context.Context
	for range 200 {
		ends = append(ends,
			g.meet(t, quicCarrier, message.Lite06).conn.Context(),
			g.meet(t, wtCarrier, message.Lite06).conn.Context(),
			g.meet(t, quicCarrier, message.Lite02).conn.Context(), // no in-band SETUP
			noSession(t, r))
	}
	slow := []net.Conn{halfHeader(t, r.Web), halfHeader(t, r.Internal)}
	opened := time.Since(begin)
	newcomer(t, g)
	for i, ctx := range ends {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(begin.Add(opened + limit + patience))):
			t.Fatalf("connection %d is open after %v", i, time.Since(begin))
		}
	}
	for _, conn := range slow {
		_ = conn.SetReadDeadline(begin.Add(opened + limit + 5*time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("half a header on %v: %v", conn.RemoteAddr(), err)
		}
	}
	if took := time.Since(begin); took > opened+limit+5*time.Second {
		t.Errorf("the last connection is gone after %v, of which it took %v to open them", took, opened)
	}
	wantLoad(t, r, before, patience)
	check()
}

// TestRefusedSessions has hundreds ask for what they may not have, and stay: they are shown the door at once.
func TestRefusedSessions(t *testing.T) {
	t.Setenv("MOQ_AUTH_PUBLIC", "healthy/**")
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	var refused []*stranger
	for range 200 {
		s := g.meet(t, quicCarrier, message.Lite06)
		s.openUni(message.UniSetup, message.Setup{Path: "/other", HasPath: true})
		to := target(t, r, wtCarrier)
		to.URL.Path = "/other"
		w := meet(t, g.dialers[message.Lite06], to, message.Lite06)
		w.openUni(message.UniSetup, message.Setup{})
		refused = append(refused, s, w)
	}
	asked := time.Now()
	for _, s := range refused {
		s.wantClose(lite.SessionUnauthorized)
	}
	if took := time.Since(asked); took > 5*time.Second {
		t.Errorf("the last is gone after %v", took)
	}
	newcomer(t, g)
	wantLoad(t, r, before, patience)
	check()
}

// noSession opens an HTTP/3 connection without a request.
func noSession(t *testing.T, r drive.Relay) context.Context {
	t.Helper()
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}
	conn, err := quic.DialAddr(t.Context(), fmt.Sprintf("127.0.0.1:%d", r.Port), conf, &quic.Config{KeepAlivePeriod: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	return conn.Context()
}

// halfHeader begins an HTTP request over TCP.
func halfHeader(t *testing.T, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestHugeHeaders asks for sessions with headers beyond all limits.
func TestHugeHeaders(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	for _, size := range []int{20_000, 40_000, 1 << 20} {
		for range 20 {
			to := target(t, r, wtCarrier)
			to.URL.RawQuery = "jwt=" + strings.Repeat("x", size)
			conn, err := g.dialers[message.Lite06].Dial(t.Context(), to)
			if (err == nil) != (size < 32<<10) {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if err == nil {
				conn.Close(0, "")
			}
		}
	}
	wantLoad(t, r, before, patience)
	check()
}

// TestSubscribeStorm subscribes and gives up at once, and asks for what nobody has.
func TestSubscribeStorm(t *testing.T) {
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	for _, c := range carriers {
		s := g.meet(t, c, message.Lite06).greet()
		for id := range uint64(5000) {
			st := s.open(message.StreamSubscribe, message.Subscribe{ID: id, Broadcast: "healthy", Track: fmt.Sprint("t", id%50)})
			st.Reset(lite.StreamCancelled)
			st.Stop(lite.StreamCancelled)
		}
		s.wantAlive()
		s.conn.Close(0, "")
	}
	upstream := func() float64 { return r.Metric(t, "moqmesh_upstream_subscriptions") }
	drive.WaitFor(t, patience, "only the viewer's subscription", func() bool { return upstream() == 1 })
	for _, c := range carriers {
		s := g.meet(t, c, message.Lite06).greet()
		begin := time.Now()
		for id := range uint64(2500) {
			s.wantReset(s.open(message.StreamSubscribe, message.Subscribe{ID: id, Broadcast: "missing", Track: "video"}), lite.StreamUnroutable)
		}
		if took := time.Since(begin); took > patience {
			t.Errorf("%s: 2500 refusals take %v", c, took)
		}
		s.wantAlive()
		s.conn.Close(0, "")
	}
	wantLoad(t, r, before, patience)
	check()
}

// TestConnectCycles connects and closes 5000 times.
func TestConnectCycles(t *testing.T) {
	t.Setenv("MOQ_LOG_LEVEL", "warn")
	r := start(t)
	check := bystanders(t, r)
	g := newGarbage(t, r)
	before := loadOf(t, r)
	for c, n := range map[carrier]int{quicCarrier: 4000, wtCarrier: 1000} {
		begin := time.Now()
		var cycles errgroup.Group
		cycles.SetLimit(16)
		to := target(t, r, c)
		for range n {
			cycles.Go(func() error {
				conn, err := g.dialers[message.Lite06].Dial(t.Context(), to)
				if err == nil {
					conn.Close(0, "")
				}
				return err
			})
		}
		if err := cycles.Wait(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s: %d cycles take %v", c, n, took)
		}
	}
	wantLoad(t, r, before, patience)
	check()
}

// TestVanishingPeers cuts the wire of established sessions: the relay is rid of them after the idle timeout.
func TestVanishingPeers(t *testing.T) {
	const idle = 5 * time.Second
	t.Setenv("MOQ_QUIC_IDLE_TIMEOUT", idle.String())
	r := start(t)
	check := bystanders(t, r)
	before := loadOf(t, r)
	g := newGarbage(t, r)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cut := &wireCutter{PacketConn: udp}
	d := dialerOn(t, r, message.Lite06, cut)
	for range 50 {
		for _, c := range carriers {
			meet(t, d, target(t, r, c), message.Lite06).greet()
		}
	}
	g.viewer.Close()
	cut.done.Store(true)
	wantLoad(t, r, before, idle+10*time.Second)
	check()
	_ = d.Close() // all at once, before they are closed one by one
}

// wireCutter sends nothing any more once done is set.
type wireCutter struct {
	net.PacketConn
	done atomic.Bool
}

func (w *wireCutter) WriteTo(b []byte, to net.Addr) (int, error) {
	if w.done.Load() {
		return len(b), nil
	}
	return w.PacketConn.WriteTo(b, to)
}
