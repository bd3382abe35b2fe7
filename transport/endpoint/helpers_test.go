package endpoint_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/netip"
	"net/url"
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
}

var (
	relayHost  = netip.MustParseAddr("10.0.0.1")
	clientHost = netip.MustParseAddr("10.0.0.2")
)

// worlds runs a test for both carriers, really and simulated. The test must not start subtests.
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
func simulated(t testing.TB, scheme string) *world {
	n := netsim.New(netsim.Config{Link: netsim.Link{Delay: 5 * time.Millisecond}})
	n.SetHost("localhost", relayHost)
	t.Cleanup(n.Close)
	return &world{Network: n, scheme: scheme}
}

// certificates returns a store for the names and addresses of both worlds.
func certificates(t testing.TB) *tlsconf.Store {
	t.Helper()
	s, err := tlsconf.Open(tlsconf.Config{Generate: []string{"localhost", "127.0.0.1", "10.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// trust returns a dialer configuration for what a store serves.
func trust(t testing.TB, s *tlsconf.Store) tlsconf.ClientConfig {
	t.Helper()
	cert, err := s.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	return tlsconf.ClientConfig{Roots: pool}
}

// listen starts a listener; change may adapt its configuration.
func (w *world) listen(t testing.TB, s *tlsconf.Store, change func(*endpoint.Config)) *endpoint.Listener {
	t.Helper()
	cfg := endpoint.Config{Addr: "127.0.0.1:0", TLS: s.Server(nil), Protocols: tokens}
	if change != nil {
		change(&cfg)
	}
	if w.Network != nil && cfg.PacketConn == nil {
		cfg.PacketConn = w.socket(t, "10.0.0.1:443")
	}
	l, err := endpoint.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close listener: %v", err)
		}
	})
	return l
}

func (w *world) socket(t testing.TB, addr string) net.PacketConn {
	t.Helper()
	return must(w.Listen(addr))(t)
}

// clientSocket opens a socket where clients are.
func (w *world) clientSocket(t testing.TB) net.PacketConn {
	t.Helper()
	if w.Network == nil {
		return must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	}
	return w.socket(t, "10.0.0.2:0")
}

func (w *world) dialer(t testing.TB, s *tlsconf.Store, change func(*endpoint.DialConfig)) *endpoint.Dialer {
	t.Helper()
	cfg := endpoint.DialConfig{Addr: "127.0.0.1:0", TLS: trust(t, s), Protocols: tokens}
	if w.Network != nil {
		cfg.Resolver = w.Network
	}
	if change != nil {
		change(&cfg)
	}
	if w.Network != nil && cfg.PacketConn == nil {
		cfg.PacketConn = w.clientSocket(t)
	}
	d, err := endpoint.NewDialer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close dialer: %v", err)
		}
	})
	return d
}

// target is an URL of a listener with a path and a secret.
func (w *world) target(t testing.TB, l *endpoint.Listener) endpoint.Target {
	return target(t, w.scheme+"://"+l.Addr().String()+"/room?jwt=secret")
}

func target(t testing.TB, rawURL string) endpoint.Target {
	t.Helper()
	return endpoint.Target{URL: must(url.Parse(rawURL))(t)}
}

// pair connects a dialer to a listener.
func (w *world) pair(t testing.TB) (client, server transport.Conn) {
	t.Helper()
	s := certificates(t)
	l, d := w.listen(t, s, nil), w.dialer(t, s, nil)
	return connect(t, d, l, w.target(t, l))
}

func connect(t testing.TB, d *endpoint.Dialer, l *endpoint.Listener, to endpoint.Target) (client, server transport.Conn) {
	t.Helper()
	client, err := d.Dial(timeout(t), to)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	server, err = l.Accept(timeout(t))
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	return client, server
}

// timeout bounds what a test waits for.
func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// write sends p and fails the test if that is not possible.
func write(t testing.TB, w io.Writer, p string) {
	t.Helper()
	if _, err := w.Write([]byte(p)); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// read reads exactly what is expected.
func read(t testing.TB, r io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatalf("read: %v", err)
	}
	if string(b) != want {
		t.Fatalf("read %q, want %q", b, want)
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
