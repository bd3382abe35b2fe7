package endpoint_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var tokens = []string{"moq-lite-06", "moq-lite-05", "moql"}

// world is where a test runs: on loopback sockets, or on a simulated network in a bubble. The listener is
// at "relay", the dialer elsewhere.
type world struct {
	*netsim.Network // nil: loopback
	scheme          string
	web             map[*endpoint.Listener]*webServer // of WebSocket
}

// webServer is what hands WebSockets to a listener.
type webServer struct {
	addr     string
	upgraded chan transport.Conn
}

func (w *world) overTCP() bool { return w.scheme == "ws" || w.scheme == "wss" }

// serveWeb starts the HTTP server of a listener.
func (w *world) serveWeb(tb testing.TB, l *endpoint.Listener, s *tlsconf.Store) {
	tb.Helper()
	web := &webServer{upgraded: make(chan transport.Conn, 100)}
	srv := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		c, err := l.Upgrade(rw, r, func(context.Context, transport.Info) int { return 0 })
		if err == nil {
			web.upgraded <- c
		}
	})}
	ln := must(net.Listen("tcp", "127.0.0.1:0"))(tb)
	if w.scheme == "wss" {
		ln = tls.NewListener(ln, s.Server(nil))
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(ln) })
	tb.Cleanup(func() { _ = srv.Close(); wg.Wait() })
	web.addr = ln.Addr().String()
	if w.web == nil {
		w.web = make(map[*endpoint.Listener]*webServer)
	}
	w.web[l] = web
}

// accept takes the next connection, whichever way it comes.
func (w *world) accept(ctx context.Context, l *endpoint.Listener) (transport.Conn, error) {
	if !w.overTCP() {
		return l.Accept(ctx)
	}
	select {
	case c := <-w.web[l].upgraded:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var (
	relayHost  = netip.MustParseAddr("10.0.0.1")
	clientHost = netip.MustParseAddr("10.0.0.2")
)

// carriers runs a test for every carrier on real sockets, and for those on UDP simulated, too. The test must not start
// subtests.
func carriers(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	worlds(t, test)
	for _, scheme := range []string{"ws", "wss"} {
		t.Run(scheme, func(t *testing.T) { test(t, &world{scheme: scheme}) })
	}
}

// worlds runs a test for both carriers on UDP, really and simulated. The test must not start subtests.
func worlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme+"/loopback", func(t *testing.T) { test(t, &world{scheme: scheme}) })
		t.Run(scheme+"/simulated", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, simulated(t, scheme)) })
		})
	}
}

// loopback runs a test for both carriers on real sockets only.
func loopback(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) { test(t, &world{scheme: scheme}) })
	}
}

// simulated makes a network in the bubble that the test runs in.
func simulated(tb testing.TB, scheme string) *world {
	n := netsim.New(netsim.Config{Link: netsim.Link{Delay: 5 * time.Millisecond}})
	n.SetHost("localhost", relayHost)
	tb.Cleanup(n.Close)
	return &world{Network: n, scheme: scheme}
}

// certificates returns a store for the names and addresses of both worlds.
func certificates(tb testing.TB) *tlsconf.Store {
	tb.Helper()
	s, err := tlsconf.Open(tlsconf.Config{Generate: []string{"localhost", "127.0.0.1", "10.0.0.1"}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// trust returns a dialer configuration for what a store serves.
func trust(tb testing.TB, s *tlsconf.Store) tlsconf.ClientConfig {
	tb.Helper()
	cert, err := s.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		tb.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	return tlsconf.ClientConfig{Roots: pool}
}

// listen starts a listener; change may adapt its configuration.
func (w *world) listen(tb testing.TB, s *tlsconf.Store, change func(*endpoint.Config)) *endpoint.Listener {
	tb.Helper()
	cfg := endpoint.Config{Addr: "127.0.0.1:0", TLS: s.Server(nil), Protocols: tokens}
	if change != nil {
		change(&cfg)
	}
	if w.Network != nil && cfg.PacketConn == nil {
		cfg.PacketConn = w.socket(tb, "10.0.0.1:443")
	}
	l, err := endpoint.Listen(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Errorf("close listener: %v", err)
		}
	})
	if w.overTCP() {
		w.serveWeb(tb, l, s)
	}
	return l
}

func (w *world) socket(tb testing.TB, addr string) net.PacketConn {
	tb.Helper()
	return must(w.Listen(addr))(tb)
}

// clientSocket opens a socket where clients are.
func (w *world) clientSocket(tb testing.TB) net.PacketConn {
	tb.Helper()
	if w.Network == nil {
		return must(net.ListenPacket("udp", "127.0.0.1:0"))(tb)
	}
	return w.socket(tb, "10.0.0.2:0")
}

func (w *world) dialer(tb testing.TB, s *tlsconf.Store, change func(*endpoint.DialConfig)) *endpoint.Dialer {
	tb.Helper()
	cfg := endpoint.DialConfig{Addr: "127.0.0.1:0", TLS: trust(tb, s), Protocols: tokens}
	if w.Network != nil {
		cfg.Resolver = w.Network
	}
	if change != nil {
		change(&cfg)
	}
	if w.Network != nil && cfg.PacketConn == nil {
		cfg.PacketConn = w.clientSocket(tb)
	}
	d, err := endpoint.NewDialer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("close dialer: %v", err)
		}
	})
	return d
}

// target is an URL of a listener with a path and a secret.
func (w *world) target(tb testing.TB, l *endpoint.Listener) endpoint.Target {
	return target(tb, w.scheme+"://"+w.at(l)+"/room?jwt=secret")
}

// at is the address of a listener.
func (w *world) at(l *endpoint.Listener) string {
	if w.overTCP() {
		return w.web[l].addr
	}
	return l.Addr().String()
}

func target(tb testing.TB, rawURL string) endpoint.Target {
	tb.Helper()
	return endpoint.Target{URL: must(url.Parse(rawURL))(tb)}
}

// pair connects a dialer to a listener.
func (w *world) pair(tb testing.TB) (client, server transport.Conn) {
	tb.Helper()
	s := certificates(tb)
	l, d := w.listen(tb, s, nil), w.dialer(tb, s, nil)
	return w.connect(tb, d, l, w.target(tb, l))
}

func connect(tb testing.TB, d *endpoint.Dialer, l *endpoint.Listener, to endpoint.Target) (client, server transport.Conn) {
	tb.Helper()
	return (&world{}).connect(tb, d, l, to)
}

func (w *world) connect(tb testing.TB, d *endpoint.Dialer, l *endpoint.Listener, to endpoint.Target) (client, server transport.Conn) {
	tb.Helper()
	client, err := d.Dial(timeout(tb), to)
	if err != nil {
		tb.Fatalf("dial: %v", err)
	}
	server, err = w.accept(timeout(tb), l)
	if err != nil {
		tb.Fatalf("accept: %v", err)
	}
	return client, server
}

// timeout bounds what a test waits for.
func timeout(tb testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	tb.Cleanup(cancel)
	return ctx
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

// write sends p and fails the test if that is not possible.
func write(tb testing.TB, w io.Writer, p string) {
	tb.Helper()
	if _, err := w.Write([]byte(p)); err != nil {
		tb.Fatalf("write: %v", err)
	}
}

// read reads exactly what is expected.
func read(tb testing.TB, r io.Reader, want string) {
	tb.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(r, b); err != nil {
		tb.Fatalf("read: %v", err)
	}
	if string(b) != want {
		tb.Fatalf("read %q, want %q", b, want)
	}
}

// clientCertificate returns a certificate for a client, and roots that trust it.
func clientCertificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	leaf := must(x509.ParseCertificate(der))(t)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}
