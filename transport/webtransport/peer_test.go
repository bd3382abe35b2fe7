package webtransport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
	"github.com/moqmesh/moqmesh/transport/webtransport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quicConfig = &quic.Config{
	EnableDatagrams: true, EnableStreamResetPartialDelivery: true,
	MaxIncomingStreams: 100, MaxIncomingUniStreams: 100,
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func timeout(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

func listen(t *testing.T, change func(*endpoint.Config)) *endpoint.Listener {
	t.Helper()
	s := must(tlsconf.Open(tlsconf.Config{Generate: []string{"localhost"}}))(t)
	t.Cleanup(func() { _ = s.Close() })
	cfg := endpoint.Config{Addr: "127.0.0.1:0", TLS: s.Server(nil), Protocols: []string{"moq-lite-06", "moql"}}
	if change != nil {
		change(&cfg)
	}
	l := must(endpoint.Listen(cfg))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// client is a client made by hand: nothing happens on its connection that the test does not do.
type client struct {
	*http3.RawClientConn
	q   *quic.Conn
	str *http3.RequestStream
}

func dialRaw(t *testing.T, l *endpoint.Listener, datagrams bool) *client {
	t.Helper()
	q := dialH3(t, l, quicConfig)
	tr := &http3.Transport{EnableDatagrams: datagrams}
	return &client{RawClientConn: tr.NewRawClientConn(q), q: q}
}

func dialH3(t *testing.T, l *endpoint.Listener, cfg *quic.Config) *quic.Conn {
	t.Helper()
	q := must(quic.DialAddr(timeout(t), l.Addr().String(),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, cfg))(t)
	t.Cleanup(func() { _ = q.CloseWithError(0, "") })
	return q
}

// request sends a CONNECT request.
func request(t *testing.T, str *http3.RequestStream) {
	t.Helper()
	u := must(url.Parse("https://localhost/"))(t)
	if err := str.SendRequestHeader(&http.Request{
		Method: http.MethodConnect, Proto: "webtransport", Host: u.Host, URL: u,
		Header: http.Header{"Wt-Available-Protocols": {`"moql"`}},
	}); err != nil {
		t.Fatal(err)
	}
}

// open opens a session.
func (c *client) open(t *testing.T, l *endpoint.Listener) transport.Conn {
	t.Helper()
	c.str = must(c.OpenRequestStream(timeout(t)))(t)
	request(t, c.str)
	res := must(c.str.ReadResponse())(t)
	if res.StatusCode != 200 || res.Header.Get("Wt-Protocol") != `"moql"` {
		t.Fatalf("status %d, %v", res.StatusCode, res.Header)
	}
	return must(l.Accept(timeout(t)))(t)
}

func wantEnd(t *testing.T, c transport.Conn, want transport.SessionError) {
	t.Helper()
	<-c.Context().Done()
	var got *transport.SessionError
	if err := context.Cause(c.Context()); !errors.As(err, &got) {
		t.Fatalf("ended with %v", err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("session error (-want +got):\n%s", diff)
	}
}

func wantReset(t *testing.T, err error, code quic.StreamErrorCode) {
	t.Helper()
	var reset *quic.StreamError
	if !errors.As(err, &reset) || !reset.Remote || reset.ErrorCode != code {
		t.Errorf("got %v, want a reset with code 0x%x", err, uint64(code))
	}
}

// uni opens a unidirectional stream that starts with what.
func (c *client) uni(t *testing.T, what string) *quic.SendStream {
	t.Helper()
	str := must(c.q.OpenUniStreamSync(timeout(t)))(t)
	must(str.Write([]byte(what)))(t)
	return str
}

// accepting accepts the session's streams, as whoever runs it does all the time, until it ends.
func accepting(t *testing.T, c transport.Conn) <-chan transport.ReceiveStream {
	t.Helper()
	uni := make(chan transport.ReceiveStream, 100)
	var wg sync.WaitGroup
	t.Cleanup(func() { c.Close(0, ""); wg.Wait() })
	wg.Go(func() {
		for {
			str, err := c.AcceptUniStream(c.Context())
			if err != nil {
				close(uni)
				return
			}
			uni <- str
		}
	})
	wg.Go(func() {
		for {
			if _, err := c.AcceptStream(c.Context()); err != nil {
				return
			}
		}
	})
	return uni
}

// Streams may overtake the request that opens their session.
func TestEarlyStreams(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	connect := must(c.OpenRequestStream(timeout(t)))(t)
	uni := c.uni(t, "\x40\x54\x00early")
	_ = uni.Close()
	bidi := must(c.q.OpenStream())(t)
	must(bidi.Write([]byte("\x40\x41\x00early")))(t)
	_ = bidi.Close()
	stranger := c.uni(t, "\x40\x54\x04of another session")
	time.Sleep(50 * time.Millisecond)

	request(t, connect)
	server := must(l.Accept(timeout(t)))(t)
	for _, r := range []io.Reader{
		must(server.AcceptUniStream(timeout(t)))(t), must(server.AcceptStream(timeout(t)))(t),
	} {
		if got := string(must(io.ReadAll(r))(t)); got != "early" {
			t.Errorf("got %q", got)
		}
	}
	<-stranger.Context().Done()
	wantReset(t, context.Cause(stranger.Context()), 0x3994bd84)
}

// Bad streams cost the peer that stream or, where HTTP/3 says so, the connection.
func TestBadStreams(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	server := c.open(t, l)
	accepting(t, server)

	unknown := c.uni(t, "\x40\x99")
	<-unknown.Context().Done()
	wantReset(t, context.Cause(unknown.Context()), quic.StreamErrorCode(http3.ErrCodeStreamCreationError))
	if server.Context().Err() != nil {
		t.Fatal("an unknown stream ended the session")
	}
	c.uni(t, "\x40\x54\x03") // no request has this id
	<-c.q.Context().Done()
	var app *quic.ApplicationError
	if err := context.Cause(c.q.Context()); !errors.As(err, &app) || app.ErrorCode != quic.ApplicationErrorCode(http3.ErrCodeIDError) {
		t.Errorf("ended with %v", err)
	}
	<-server.Context().Done()
}

// Streams that end before their header do not use up the limit.
func TestHeaderlessStreams(t *testing.T) {
	l := listen(t, func(c *endpoint.Config) { c.QUIC.MaxStreams = 10 })
	c := dialRaw(t, l, true)
	server := c.open(t, l)
	got := accepting(t, server)
	for i := range 40 {
		uni := must(c.q.OpenUniStreamSync(timeout(t)))(t)
		bidi := must(c.q.OpenStreamSync(timeout(t)))(t)
		bidi.CancelRead(0)
		if i%2 == 0 {
			must(uni.Write([]byte("\x40")))(t)
			_, _ = uni.Close(), bidi.Close()
		} else {
			uni.CancelWrite(0)
			bidi.CancelWrite(0)
		}
	}
	_ = c.uni(t, "\x40\x54\x00x").Close()
	if str, ok := <-got; !ok || string(must(io.ReadAll(str))(t)) != "x" {
		t.Error("the good stream did not arrive")
	}
}

// A header that comes late delays no other stream, and however many are late, those that are complete arrive.
func TestLateHeaders(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	got := accepting(t, c.open(t, l))
	var late []*quic.SendStream
	for range 20 {
		late = append(late, c.uni(t, "\x40"))
	}
	_ = c.uni(t, "\x40\x54\x00prompt").Close()
	if str, ok := <-got; !ok || string(must(io.ReadAll(str))(t)) != "prompt" {
		t.Fatal("the prompt stream did not arrive first")
	}
	for _, str := range late {
		must(str.Write([]byte("\x54")))(t)
		must(str.Write([]byte("\x00late")))(t)
		_ = str.Close()
	}
	for range late {
		if str, ok := <-got; !ok || string(must(io.ReadAll(str))(t)) != "late" {
			t.Fatal("a late stream did not arrive")
		}
	}
}

// Accepting ends with its context as well as with the session, and a stream that comes afterwards is not lost.
func TestAcceptEnds(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	server := c.open(t, l)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if _, err := server.AcceptUniStream(ctx); !errors.Is(err, cause) {
		t.Errorf("accept: %v", err)
	}
	if _, err := server.ReceiveDatagram(ctx); !errors.Is(err, cause) {
		t.Errorf("datagram: %v", err)
	}
	_ = c.uni(t, "\x40\x54\x00x").Close()
	if got := string(must(io.ReadAll(must(server.AcceptUniStream(timeout(t)))(t)))(t)); got != "x" {
		t.Errorf("got %q", got)
	}
	time.AfterFunc(20*time.Millisecond, func() { server.Close(7, "") })
	_, err := server.ReceiveDatagram(timeout(t))
	var end *transport.SessionError
	if !errors.As(err, &end) || end.Code != 7 {
		t.Errorf("datagram: %v", err)
	}
}

// What a client may not do with HTTP/3's own streams ends the connection with the code that RFC 9114 wants.
func TestBadHTTP(t *testing.T) {
	for name, test := range map[string]struct {
		streams []string // each on a stream of its own, and finished
		want    http3.ErrCode
	}{
		"no SETTINGS":         {[]string{"\x00\x07\x01\x00"}, http3.ErrCodeMissingSettings},
		"cut SETTINGS":        {[]string{"\x00\x04\x05\x01"}, http3.ErrCodeClosedCriticalStream},
		"half a setting":      {[]string{"\x00\x04\x01\x33"}, http3.ErrCodeFrameError},
		"setting twice":       {[]string{"\x00\x04\x04\x33\x00\x33\x00"}, http3.ErrCodeSettingsError},
		"datagrams = 2":       {[]string{"\x00\x04\x02\x33\x02"}, http3.ErrCodeSettingsError},
		"datagrams, not us":   {[]string{"\x00\x04\x02\x33\x01"}, http3.ErrCodeSettingsError},
		"huge SETTINGS":       {[]string{"\x00\x04\x80\x00\x40\x00"}, http3.ErrCodeExcessiveLoad},
		"push":                {[]string{"\x01"}, http3.ErrCodeStreamCreationError},
		"two encoders":        {[]string{"\x02", "\x02"}, http3.ErrCodeStreamCreationError},
		"two control streams": {[]string{"\x00\x04\x00", "\x00\x04\x00"}, http3.ErrCodeStreamCreationError},
	} {
		t.Run(name, func(t *testing.T) {
			q := dialH3(t, listen(t, nil), new(quic.Config))
			for _, s := range test.streams {
				str := must(q.OpenUniStream())(t)
				must(str.Write([]byte(s)))(t)
				if len(test.streams) == 1 {
					_ = str.Close()
				}
			}
			<-q.Context().Done()
			var app *quic.ApplicationError
			if err := context.Cause(q.Context()); !errors.As(err, &app) || app.ErrorCode != quic.ApplicationErrorCode(test.want) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// A connection has one session; a second request is rejected and the first goes on.
func TestSecondSession(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	server := c.open(t, l)
	got := accepting(t, server)
	second := must(c.OpenRequestStream(timeout(t)))(t)
	request(t, second)
	res, err := second.ReadResponse()
	var rejected *http3.Error
	switch { // the reset may overtake the status
	case errors.As(err, &rejected) && rejected.ErrorCode == http3.ErrCodeRequestRejected:
	case err == nil && res.StatusCode == http.StatusTooManyRequests:
	default:
		t.Errorf("second request: %v, %v", res, err)
	}
	_ = c.uni(t, "\x40\x54\x00x").Close()
	if _, ok := <-got; !ok {
		t.Error("the first session is over")
	}
}

// The ways in which a client can end a session.
func TestClientEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(c *client)
		want transport.SessionError
	}{
		"capsule": {func(c *client) {
			_, _ = c.str.Write([]byte("\x68\x43\x07\x00\x00\x10\x92bye"))
		}, transport.SessionError{Code: 4242, Reason: "bye", Remote: true}},
		"FIN": {func(c *client) { _ = c.str.Close() }, transport.SessionError{Remote: true}},
		"connection with the mapped code": {func(c *client) {
			_ = c.q.CloseWithError(0x52e4a40fa8db+5, "bye")
		}, transport.SessionError{Code: 5, Reason: "bye", Remote: true}},
		"connection without an error": {func(c *client) {
			_ = c.q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		}, transport.SessionError{Remote: true}},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, nil)
			c := dialRaw(t, l, true)
			server := c.open(t, l)
			test.end(c)
			wantEnd(t, server, test.want)
			if _, err := server.AcceptStream(timeout(t)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("accept: %v", err)
			}
			select { // the connection goes too
			case <-c.q.Context().Done():
			case <-time.After(5 * time.Second):
				t.Error("connection stays")
			}
		})
	}
}

// A capsule that comes while streams are reset for the same reason must not be lost on those who wait for
// the streams.
func TestResetBeforeCapsule(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	server := c.open(t, l)
	str := c.uni(t, "\x40\x54\x00x")
	in := must(server.AcceptUniStream(timeout(t)))(t)
	must(in.Read(make([]byte, 1)))(t)
	str.CancelWrite(0x170d7b68)
	time.AfterFunc(100*time.Millisecond, func() { _, _ = c.str.Write([]byte("\x68\x43\x04\x00\x00\x00\x2a")) })
	_, err := in.Read(make([]byte, 1))
	var end *transport.SessionError
	if !errors.As(err, &end) || end.Code != 42 {
		t.Errorf("read: %v", err)
	}
}

// Who closes a session because a stream of a lost connection has failed does not hide how it was lost.
func TestCloseAfterTheConnection(t *testing.T) {
	l := listen(t, nil)
	for range 20 {
		c := dialRaw(t, l, true)
		server := c.open(t, l)
		_ = c.uni(t, "\x40\x54\x00x")
		in := must(server.AcceptUniStream(timeout(t)))(t)
		must(in.Read(make([]byte, 1)))(t)
		time.AfterFunc(time.Millisecond, func() { _ = c.q.CloseWithError(0x52e4a40fa8db+5, "bye") })
		for {
			if _, err := in.Read(make([]byte, 1)); err != nil {
				break
			}
		}
		server.Close(1, "")
		wantEnd(t, server, transport.SessionError{Code: 5, Reason: "bye", Remote: true})
	}
}

// A close waits for a peer that does not answer, but not for long, and what it says has arrived by then.
func TestUnansweredClose(t *testing.T) {
	l := listen(t, nil)
	c := dialRaw(t, l, true)
	server := c.open(t, l)
	blocked := must(server.OpenUniStream(timeout(t)))(t)
	written := make(chan error)
	go func() {
		for {
			if _, err := blocked.Write(make([]byte, 1<<20)); err != nil {
				written <- err
				return
			}
		}
	}()
	start := time.Now()
	go server.Close(42, "reason")
	if err := <-written; !errors.Is(err, net.ErrClosed) || time.Since(start) > 300*time.Millisecond {
		t.Errorf("blocked write ended after %v with %v", time.Since(start), err)
	}
	got := string(must(io.ReadAll(c.str))(t))
	if diff := cmp.Diff("\x68\x43\x0a\x00\x00\x00\x2areason", got); diff != "" {
		t.Errorf("capsule: %s", diff)
	}
	<-c.q.Context().Done()
	if took := time.Since(start); took < 400*time.Millisecond || took > 2*time.Second {
		t.Errorf("connection closed after %v", took)
	}
	var app *quic.ApplicationError
	if err := context.Cause(c.q.Context()); !errors.As(err, &app) || app.ErrorCode != 0x52e4a40fa8db+42+1 {
		t.Errorf("connection closed with %v", err)
	}
}

func TestWithoutDatagrams(t *testing.T) {
	l := listen(t, nil)
	server := dialRaw(t, l, false).open(t, l)
	if n := server.MaxDatagramSize(); n != 0 {
		t.Errorf("largest datagram: %d bytes", n)
	}
	if err := server.SendDatagram(nil); !errors.Is(err, transport.ErrNoDatagrams) {
		t.Errorf("send: %v", err)
	}
}

// rawServer accepts one connection and gives it to serve.
func rawServer(t *testing.T, serve func(*quic.Conn)) (addr string) {
	t.Helper()
	cert := must(tlsconf.SelfSigned([]string{"localhost"}, time.Now()))(t)
	ln := must(quic.ListenAddr("127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{*cert}, NextProtos: []string{"h3"},
	}, quicConfig))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if q, err := ln.Accept(context.Background()); err == nil {
			serve(q)
			<-q.Context().Done()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-done })
	return ln.Addr().String()
}

func dial(t *testing.T, addr string) (transport.Conn, error) {
	t.Helper()
	d := must(endpoint.NewDialer(endpoint.DialConfig{
		Addr: "127.0.0.1:0", Protocols: []string{"moq-lite-06", "moql"}, TLS: tlsconf.ClientConfig{Insecure: true},
	}))(t)
	t.Cleanup(func() { _ = d.Close() })
	return d.Dial(timeout(t), endpoint.Target{URL: must(url.Parse("https://" + addr + "/room"))(t)})
}

// The answers of servers that are no session.
func TestRefusals(t *testing.T) {
	answer := func(h http.HandlerFunc) func(*quic.Conn) {
		return func(q *quic.Conn) {
			s := &http3.Server{Handler: h, EnableDatagrams: true}
			_ = s.ServeQUICConn(q)
		}
	}
	for name, test := range map[string]struct {
		serve func(*quic.Conn)
		want  error
	}{
		"status": {answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }), &webtransport.StatusError{Status: 403}},
		"protocol we did not offer": {answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WT-Protocol", `"moqt-17"`)
		}), webtransport.ErrProtocol},
		"no extended CONNECT": {func(q *quic.Conn) {
			str, _ := q.OpenUniStream()
			_, _ = str.Write([]byte("\x00\x04\x00"))
		}, webtransport.ErrNotSupported},
		"end of the connection": {
			func(q *quic.Conn) { _ = q.CloseWithError(0x52e4a40fa8db+2, "go away") },
			&transport.SessionError{Code: 2, Reason: "go away", Remote: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := dial(t, rawServer(t, test.serve))
			var status *webtransport.StatusError
			var end *transport.SessionError
			var got error
			switch {
			case errors.As(err, &status):
				got = status
			case errors.As(err, &end):
				got = end
			case errors.Is(err, test.want):
				return
			default:
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A server that opens streams nobody asked for loses them, and nothing else.
func TestUnsolicitedStreams(t *testing.T) {
	refused := make(chan error, 2)
	addr := rawServer(t, func(q *quic.Conn) {
		s := &http3.Server{EnableDatagrams: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http3.HTTPStreamer).HTTPStream()
			bidi, _ := q.OpenStream()
			_, _ = bidi.Write([]byte("\x01\x00"))
			uni, _ := q.OpenUniStream()
			_, _ = uni.Write([]byte("\x21"))
			<-bidi.Context().Done()
			<-uni.Context().Done()
			refused <- context.Cause(bidi.Context())
			refused <- context.Cause(uni.Context())
			ours, _ := q.OpenUniStream()
			_, _ = ours.Write([]byte("\x40\x54\x00ours"))
			_ = ours.Close()
		})}
		_ = s.ServeQUICConn(q)
	})
	c := must(dial(t, addr))(t)
	in := <-accepting(t, c)
	if got := string(must(io.ReadAll(in))(t)); got != "ours" {
		t.Errorf("got %q", got)
	}
	wantReset(t, <-refused, quic.StreamErrorCode(http3.ErrCodeStreamCreationError))
	wantReset(t, <-refused, quic.StreamErrorCode(http3.ErrCodeStreamCreationError))
	c.Close(0, "")
}
