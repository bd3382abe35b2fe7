package endpoint_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/webtransport"
)

// Raw QUIC takes the first protocol of our list, WebTransport the first of the client's.
func TestProtocolChoice(t *testing.T) {
	for _, test := range []struct {
		name      string
		offer     []string
		quic, web string
	}{
		{"same order", []string{"moq-lite-06", "moq-lite-05", "moql"}, "moq-lite-06", "moq-lite-06"},
		{"other order", []string{"moql", "moqt-17", "moq-lite-05"}, "moq-lite-05", "moql"},
		{"last only", []string{"moql"}, "moql", "moql"},
		{"none in common", []string{"moqt-17", "moq-lite-04"}, "", "-"},
		{"none offered", nil, "", "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			loopback(t, func(t *testing.T, w *world) {
				s := certificates(t)
				l := w.listen(t, s, nil)
				d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.Protocols = test.offer })
				want := test.quic
				if w.scheme == "https" {
					want = strings.TrimPrefix(test.web, "-")
				} else if want == "" {
					_, err := d.Dial(timeout(t), w.target(t, l))
					var refused *quicgo.TransportError
					if !errors.As(err, &refused) || refused.ErrorCode != 0x178 {
						t.Fatalf("dialed without a common protocol: %v", err)
					}
					return
				}
				client, server := connect(t, d, l, w.target(t, l))
				if c, s := client.Info().Protocol, server.Info().Protocol; c != want || s != want {
					t.Errorf("client has %q, server %q, want %q", c, s, want)
				}
			})
		})
	}
}

// On one socket, at once: sessions of both carriers and plain requests, each with its own protocol.
func TestManyDials(t *testing.T) {
	s := certificates(t)
	w := &world{}
	l := w.listen(t, s, nil)
	ctx := timeout(t)
	var served sync.WaitGroup
	served.Go(func() {
		for range 100 {
			c, err := l.Accept(ctx)
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			served.Go(func() { echo(ctx, c) })
		}
	})
	dialers := make(map[string]*endpoint.Dialer)
	for _, token := range tokens {
		dialers[token] = w.dialer(t, s, func(c *endpoint.DialConfig) { c.Protocols = []string{token} })
	}
	var dials sync.WaitGroup
	for i := range 100 {
		dials.Go(func() {
			token := tokens[i%len(tokens)]
			d := dialers[token]
			to := target(t, []string{"moqt", "https"}[i%2]+"://"+l.Addr().String()+"/")
			c, err := d.Dial(ctx, to)
			if err != nil {
				t.Errorf("dial: %v", err)
				return
			}
			defer c.Close(0, "")
			if got := c.Info().Protocol; got != token {
				t.Errorf("got %q, want %q", got, token)
			}
			text := fmt.Sprintf("dial %d", i)
			if err := ask(ctx, c, text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
	dials.Wait()
	served.Wait()
}

// echo answers one stream with what it says.
func echo(ctx context.Context, c transport.Conn) {
	str, err := c.AcceptStream(ctx)
	if err != nil {
		return
	}
	_, _ = io.Copy(str, str)
	_ = str.Close()
	<-c.Context().Done()
}

func ask(ctx context.Context, c transport.Conn, text string) error {
	str, err := c.OpenStream(ctx)
	if err != nil {
		return err
	}
	if _, err := str.Write([]byte(text)); err != nil {
		return err
	}
	if err := str.Close(); err != nil {
		return err
	}
	answer, err := io.ReadAll(str)
	if err == nil && string(answer) != text {
		err = fmt.Errorf("got %q", answer)
	}
	return err
}

// rawDial opens a bare QUIC connection.
func (w *world) rawDial(tb testing.TB, l *endpoint.Listener, alpn string) *quicgo.Conn {
	tb.Helper()
	pc := w.clientSocket(tb)
	tr := &quicgo.Transport{Conn: pc}
	q, err := tr.Dial(timeout(tb), l.Addr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}},
		&quicgo.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true, KeepAlivePeriod: time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _, _ = q.CloseWithError(0, ""), tr.Close(), pc.Close() })
	return q
}

// A connection that negotiates h3 and never asks for a session is closed when its time is up, and does
// not keep others waiting until then.
func TestNoConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := certificates(t)
		w := simulated(t, "https")
		l := w.listen(t, s, nil)
		start := time.Now()
		silent := make([]*quicgo.Conn, 40)
		for i := range silent {
			silent[i] = w.rawDial(t, l, "h3")
		}
		client, _ := connect(t, w.dialer(t, s, nil), l, w.target(t, l))
		if took := time.Since(start); took > time.Second {
			t.Errorf("others waited, %v in all", took)
		}
		for _, q := range silent {
			<-q.Context().Done()
			var app *quicgo.ApplicationError
			if err := context.Cause(q.Context()); !errors.As(err, &app) || !app.Remote ||
				app.ErrorCode != quicgo.ApplicationErrorCode(http3.ErrCodeNoError) {
				t.Fatalf("closed with %v", err)
			}
		}
		if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("closed after %v", took)
		}
		if err := client.Context().Err(); err != nil {
			t.Errorf("session ended too: %v", context.Cause(client.Context()))
		}
	})
}

// Nor can one hold its place that sends its headers bit by bit.
func TestSlowHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simulated(t, "https")
		l := w.listen(t, certificates(t), nil)
		start := time.Now()
		q := w.rawDial(t, l, "h3")
		str := must(q.OpenStreamSync(timeout(t)))(t)
		write(t, str, "\x01\x7f\xff") // a HEADERS frame, large
		for {
			time.Sleep(5 * time.Second)
			if _, err := str.Write([]byte{0}); err != nil {
				break
			}
		}
		select { // streams end a little before their connection
		case <-q.Context().Done():
		case <-time.After(time.Second):
			t.Error("only the stream was ended")
		}
		if took := time.Since(start); took > 16*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestHugeHeaders(t *testing.T) {
	s := certificates(t)
	w := &world{}
	l := w.listen(t, s, nil)
	d := w.dialer(t, s, nil)
	_, err := d.Dial(timeout(t), target(t, "https://"+l.Addr().String()+"/?jwt="+strings.Repeat("secret", 10_000)))
	var status *webtransport.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error text has the query: %.100s", err)
	}
	// What a large token takes is fine.
	connect(t, d, l, target(t, "https://"+l.Addr().String()+"/?jwt="+strings.Repeat("secret", 2000)))
}

// get makes a plain HTTP/3 request.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer func() { _ = tr.Close() }()
	res, err := (&http.Client{Transport: tr}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode, string(must(io.ReadAll(res.Body))(t))
}

func TestPlainRequests(t *testing.T) {
	s := certificates(t)
	l := (&world{}).listen(t, s, nil)
	if status, _ := get(t, "https://"+l.Addr().String()+"/room"); status != http.StatusNotFound {
		t.Errorf("status %d without a handler", status)
	}
	l = (&world{}).listen(t, s, func(c *endpoint.Config) {
		c.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "this is %s", r.URL.Path) })
	})
	if status, body := get(t, "https://"+l.Addr().String()+"/room"); status != 200 || body != "this is /room" {
		t.Errorf("status %d, %q with a handler", status, body)
	}
}

func TestConnectionLimit(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l := w.listen(t, s, func(c *endpoint.Config) {
			c.MaxPerAddr = 2
			c.Exempt = func(netip.Addr) bool { return false }
		})
		d := w.dialer(t, s, nil)
		first, _ := connect(t, d, l, w.target(t, l))
		connect(t, d, l, w.target(t, l))
		_, err := d.Dial(timeout(t), w.target(t, l))
		var refused *quicgo.TransportError
		if !errors.As(err, &refused) || refused.ErrorCode != quicgo.ConnectionRefused || l.Refused() == 0 {
			t.Fatalf("got %v, %d refused", err, l.Refused())
		}
		if w.Network != nil { // another address still may
			other := w.dialer(t, s, func(c *endpoint.DialConfig) { c.PacketConn = w.socket(t, "10.0.0.3:0") })
			connect(t, other, l, w.target(t, l))
		}
		first.Close(0, "")
		// The server forgets a connection when it has seen the end of it, which is soon. A handshake starts
		// with two packets: if the place becomes free between them, the second one of a client that was
		// refused takes it, and keeps it for the time that a handshake may take.
		for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if _, err = d.Dial(timeout(t), w.target(t, l)); err == nil {
				return
			}
			if time.Since(start) > 15*time.Second {
				t.Fatalf("place not free again: %v", err)
			}
		}
	})
}

// The limit of handshakes under way holds for everyone.
func TestPendingLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := certificates(t)
		w := simulated(t, "moqt")
		l := w.listen(t, s, func(c *endpoint.Config) { c.MaxPending = 3 })
		for range 3 {
			w.rawDial(t, l, "h3") // without CONNECT it stays pending
		}
		d := w.dialer(t, s, nil)
		_, err := d.Dial(timeout(t), w.target(t, l))
		var refused *quicgo.TransportError
		if !errors.As(err, &refused) || refused.ErrorCode != quicgo.ConnectionRefused {
			t.Fatalf("got %v", err)
		}
		time.Sleep(11 * time.Second) // their time is up
		for range 5 {
			connect(t, d, l, w.target(t, l))
		}
	})
}

func TestLoopbackIsExempt(t *testing.T) {
	s := certificates(t)
	w := &world{scheme: "moqt"}
	l := w.listen(t, s, func(c *endpoint.Config) { c.MaxPerAddr = 1 })
	d := w.dialer(t, s, nil)
	for range 3 {
		connect(t, d, l, w.target(t, l))
	}
}

// Connections that nobody accepts are closed, and the listener goes on.
func TestBacklog(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, scheme)
				s := certificates(t)
				l := w.listen(t, s, func(c *endpoint.Config) { c.Backlog = 1 })
				d := w.dialer(t, s, nil)
				start := time.Now()
				kept := must(d.Dial(timeout(t), w.target(t, l)))(t)
				synctest.Wait() // it is in the queue
				late := must(d.Dial(timeout(t), w.target(t, l)))(t)
				<-late.Context().Done()
				wantSessionEnd(t, context.Cause(late.Context()), transport.SessionError{Code: 1, Reason: "busy", Remote: true})
				if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
					t.Errorf("closed after %v", took)
				}
				exchange(t, kept, must(l.Accept(timeout(t)))(t))
				connect(t, d, l, w.target(t, l))
			})
		})
	}
}

// With validation of every address, which takes a Retry, connecting works as ever.
func TestAddressValidation(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l := w.listen(t, s, func(c *endpoint.Config) { c.VerifyRate = -1 })
		d := w.dialer(t, s, nil)
		start := time.Now()
		client, server := connect(t, d, l, w.target(t, l))
		if w.Network != nil {
			// The server has it after two and a half round trips; it would be one and a half without.
			if took := time.Since(start); w.scheme == "moqt" && took != 25*time.Millisecond {
				t.Errorf("handshake with Retry took %v at a round trip of 10 ms", took)
			}
		}
		exchange(t, client, server)
	})
}

func TestStopAccepting(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, scheme)
				s := certificates(t)
				l := w.listen(t, s, nil)
				d := w.dialer(t, s, nil)
				client, server := connect(t, d, l, w.target(t, l))
				waiting := must(d.Dial(timeout(t), w.target(t, l)))(t)
				pending := w.rawDial(t, l, "h3")
				time.Sleep(time.Second)
				l.StopAccepting()
				<-waiting.Context().Done()
				<-pending.Context().Done()
				if _, err := l.Accept(timeout(t)); !errors.Is(err, endpoint.ErrListenerClosed) || !errors.Is(err, net.ErrClosed) {
					t.Errorf("accept: %v", err)
				}
				if _, err := d.Dial(timeout(t), w.target(t, l)); err == nil {
					t.Error("dialed a listener that stopped")
				}
				exchange(t, client, server)
			})
		})
	}
}

// Closing a listener tells every peer, on both carriers and on dialed connections alike.
func TestListenerClose(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l := w.listen(t, s, nil)
		d := w.dialer(t, s, nil)
		client, server := connect(t, d, l, w.target(t, l))
		queued := must(d.Dial(timeout(t), w.target(t, l)))(t)

		cfg := endpoint.Config{Addr: "127.0.0.1:0", TLS: s.Server(nil), Protocols: tokens}
		if w.Network != nil {
			cfg.PacketConn = w.socket(t, "10.0.0.1:444")
		}
		other := must(endpoint.Listen(cfg))(t)
		defer func() { _ = other.Close() }()
		shared := must(endpoint.NewDialer(endpoint.DialConfig{Socket: l.Socket(), TLS: trust(t, s), Protocols: tokens}))(t)
		defer func() { _ = shared.Close() }()
		out, in := connect(t, shared, other, w.target(t, other))
		if in.Info().Remote.String() != l.Addr().String() {
			t.Errorf("dialed from %v, listening on %v", in.Info().Remote, l.Addr())
		}
		accept := make(chan error)
		go func() {
			_, _ = l.Accept(context.Background()) // the one in the queue
			_, err := l.Accept(context.Background())
			accept <- err
		}()
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); w.Network != nil && took > 400*time.Millisecond { // in real time it may be more
			t.Errorf("closing took %v", took)
		}
		if err := <-accept; !errors.Is(err, endpoint.ErrListenerClosed) {
			t.Errorf("accept: %v", err)
		}
		for _, c := range []transport.Conn{client, queued, in} {
			<-c.Context().Done()
			wantSessionEnd(t, context.Cause(c.Context()), transport.SessionError{Remote: true})
		}
		for _, c := range []transport.Conn{server, out} {
			wantSessionEnd(t, context.Cause(c.Context()), transport.SessionError{})
		}
		if _, err := shared.Dial(timeout(t), w.target(t, other)); err == nil {
			t.Error("dialed from a closed socket")
		}
	})
}

// moq-transport wants plain stream codes on raw QUIC; either numbering is understood.
func TestPlainCodes(t *testing.T) {
	s := certificates(t)
	w := &world{scheme: "moqt"}
	l := w.listen(t, s, func(c *endpoint.Config) {
		c.Protocols = []string{"moqt-17", "moql"}
		c.PlainCodes = func(token string) bool { return strings.HasPrefix(token, "moqt-") }
	})
	for _, test := range []struct {
		alpn string
		wire quicgo.StreamErrorCode // for code 0x12
		sent quicgo.StreamErrorCode
		want transport.StreamError
	}{
		{"moql", 0x52e4a40fa8ed, 0x52e4a40fa8ed, transport.StreamError{Code: 0x12, Remote: true}},
		{"moql", 0x52e4a40fa8ed, 0x12, transport.StreamError{Code: 0x12, Remote: true, Unmapped: true}},
		{"moqt-17", 0x12, 0x12, transport.StreamError{Code: 0x12, Remote: true}},
		{"moqt-17", 0x12, 0x52e4a40fa8ed, transport.StreamError{Code: 0x12, Remote: true}},
	} {
		q := w.rawDial(t, l, test.alpn)
		server := must(l.Accept(timeout(t)))(t)
		out := must(server.OpenUniStream(timeout(t)))(t)
		out.Reset(0x12)
		in := must(q.AcceptUniStream(timeout(t)))(t)
		_, err := in.Read(make([]byte, 1))
		var reset *quicgo.StreamError
		if !errors.As(err, &reset) || reset.ErrorCode != test.wire {
			t.Errorf("%s: sent %v, want 0x%x", test.alpn, err, uint64(test.wire))
		}
		str := must(q.OpenStream())(t)
		str.CancelWrite(test.sent)
		_, err = must(server.AcceptStream(timeout(t)))(t).Read(make([]byte, 1))
		wantStreamError(t, err, test.want)
	}
}

// A crashed and restarted relay tells peers that still send that their connections are gone.
func TestStatelessReset(t *testing.T) {
	keys := must(endpoint.DeriveKeys([]byte("kept in a file")))(t)
	w := &world{scheme: "moqt"}
	s := certificates(t)
	withKeys := func(c *endpoint.Config) { c.Keys = keys }
	pc := must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	addr := pc.LocalAddr().String()
	crashing := &mute{PacketConn: pc}
	l := w.listen(t, s, func(c *endpoint.Config) { withKeys(c); c.PacketConn = crashing })
	client, _ := connect(t, w.dialer(t, s, nil), l, w.target(t, l))
	crashing.crashed.Store(true)
	_ = l.Close()

	w.listen(t, s, func(c *endpoint.Config) { withKeys(c); c.Addr = addr })
	start := time.Now()
	str := must(client.OpenStream(timeout(t)))(t)
	write(t, str, strings.Repeat("x", 100))
	<-client.Context().Done()
	var end *transport.SessionError
	var reset *quicgo.StatelessResetError
	if err := context.Cause(client.Context()); !errors.As(err, &end) || !end.Remote || !errors.As(err, &reset) {
		t.Fatalf("ended with %v", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("noticed after %v", took)
	}
}

// mute is a socket whose host can crash: nothing is heard of it then.
type mute struct {
	net.PacketConn
	crashed atomic.Bool
}

func (m *mute) WriteTo(p []byte, to net.Addr) (int, error) {
	if m.crashed.Load() {
		return len(p), nil
	}
	return m.PacketConn.WriteTo(p, to)
}

func TestDeriveKeys(t *testing.T) {
	one, again := must(endpoint.DeriveKeys([]byte("a")))(t), must(endpoint.DeriveKeys([]byte("a")))(t)
	other := must(endpoint.DeriveKeys([]byte("b")))(t)
	if *one != *again {
		t.Error("the same secret gave different keys")
	}
	all := [][32]byte{one.Token, one.StatelessReset, other.Token, other.StatelessReset, {}}
	slices.SortFunc(all, func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) })
	if len(slices.Compact(all)) != 5 {
		t.Error("keys coincide")
	}
}

func TestListenErrors(t *testing.T) {
	if _, err := endpoint.Listen(endpoint.Config{Addr: "127.0.0.1:0"}); err == nil {
		t.Error("listens without certificates")
	}
	s := certificates(t)
	l := (&world{}).listen(t, s, nil)
	if second, err := endpoint.Listen(endpoint.Config{Addr: l.Addr().String(), TLS: s.Server(nil)}); err == nil {
		_ = second.Close()
		t.Error("listens twice on one address")
	}
}
