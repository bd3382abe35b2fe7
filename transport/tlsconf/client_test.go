package tlsconf_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// handshake connects a client to a server. The error is of the end that refuses.
func handshake(t *testing.T, server, client *tls.Config) (atServer, atClient tls.ConnectionState, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	accepted := make(chan *tls.Conn, 1)
	done := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			accepted <- nil
			return
		}
		srv := tls.Server(conn, server)
		accepted <- srv
		done <- srv.Handshake()
	}()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(conn, client)
	err = c.Handshake()
	srv := <-accepted
	serverErr := <-done
	_, _ = c.Close(), srv.Close()
	if err == nil {
		err = serverErr
	}
	return srv.ConnectionState(), c.ConnectionState(), err
}

func TestClientTrust(t *testing.T) {
	cert := selfSigned(t, "relay.example", "192.0.2.1")
	server := open(t, tlsconf.Config{Pairs: []tlsconf.Pair{save(t, t.TempDir(), cert)}}).Server(nil)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	pin := tlsconf.FingerprintOf(cert.Leaf)
	wrong := tlsconf.FingerprintOf(selfSigned(t, "relay.example").Leaf)
	for _, test := range []struct {
		name   string
		cfg    tlsconf.ClientConfig
		host   string
		want   error // nil: connects; otherwise one like it
		wantOK bool
		sni    string
	}{
		{name: "roots", cfg: tlsconf.ClientConfig{Roots: roots}, host: "relay.example", wantOK: true, sni: "relay.example"},
		{name: "roots, other host", cfg: tlsconf.ClientConfig{Roots: roots}, host: "other.example", want: x509.HostnameError{}},
		{name: "roots, other host, name given", cfg: tlsconf.ClientConfig{Roots: roots, ServerName: "relay.example"}, host: "other.example", wantOK: true, sni: "relay.example"},
		{name: "roots, address", cfg: tlsconf.ClientConfig{Roots: roots}, host: "192.0.2.1", wantOK: true},
		{name: "roots, other address", cfg: tlsconf.ClientConfig{Roots: roots}, host: "192.0.2.2", want: x509.HostnameError{}},
		{name: "no roots", cfg: tlsconf.ClientConfig{Roots: x509.NewCertPool()}, host: "relay.example", want: x509.UnknownAuthorityError{}},
		{name: "pin", cfg: tlsconf.ClientConfig{Fingerprints: []tlsconf.Fingerprint{wrong, pin}}, host: "other.example", wantOK: true, sni: "other.example"},
		{name: "wrong pin", cfg: tlsconf.ClientConfig{Fingerprints: []tlsconf.Fingerprint{wrong}, Roots: roots}, host: "relay.example", want: tlsconf.ErrFingerprint},
		{name: "insecure", cfg: tlsconf.ClientConfig{Insecure: true, Roots: x509.NewCertPool(), Fingerprints: []tlsconf.Fingerprint{wrong}}, host: "any", wantOK: true, sni: "any"},
	} {
		t.Run(test.name, func(t *testing.T) {
			state, _, err := handshake(t, server, test.cfg.TLS(test.host, nil))
			switch {
			case test.wantOK && err != nil:
				t.Error(err)
			case test.wantOK && state.ServerName != test.sni:
				t.Errorf("SNI %q, want %q", state.ServerName, test.sni)
			case !test.wantOK && !like(err, test.want):
				t.Errorf("got %v (%T)", err, err)
			}
		})
	}
}

// like compares errors of crypto/x509 by type, others as errors.Is does.
func like(err, want error) bool {
	if _, ok := errors.AsType[x509.HostnameError](want); ok {
		_, ok = errors.AsType[x509.HostnameError](err)
		return ok
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](want); ok {
		_, ok = errors.AsType[x509.UnknownAuthorityError](err)
		return ok
	}
	return errors.Is(err, want)
}

func TestClientCertificate(t *testing.T) {
	peer := clientCertificate(t)
	roots := x509.NewCertPool()
	roots.AddCert(peer.Leaf)
	server := open(t, tlsconf.Config{Generate: []string{"relay"}}).Server(tlsconf.FixedRoots(roots))
	for name, test := range map[string]struct {
		cert    *tls.Certificate
		ok      bool
		present int
	}{
		"none":     {nil, true, 0},
		"trusted":  {peer, true, 1},
		"stranger": {clientCertificate(t), false, 0},
	} {
		cfg := tlsconf.ClientConfig{Insecure: true, Certificate: test.cert}
		state, _, err := handshake(t, server, cfg.TLS("relay", nil))
		if (err == nil) != test.ok || len(state.VerifiedChains) != test.present {
			t.Errorf("%s: %v, %d chains", name, err, len(state.VerifiedChains))
		}
	}
}

func clientCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
