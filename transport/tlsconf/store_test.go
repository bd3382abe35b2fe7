package tlsconf_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg tlsconf.Config) *tlsconf.Store {
	t.Helper()
	s, err := tlsconf.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// selfSigned returns a certificate for hosts.
func selfSigned(t *testing.T, hosts ...string) *tls.Certificate {
	t.Helper()
	cert, err := tlsconf.SelfSigned(hosts, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// save writes a certificate and its key to dir.
func save(t *testing.T, dir string, cert *tls.Certificate) tlsconf.Pair {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	p := tlsconf.Pair{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	writeFile(t, p.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}))
	writeFile(t, p.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	return p
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// served returns the fingerprint of what a client gets that asks for name.
func served(t *testing.T, s *tlsconf.Store, name string) string {
	t.Helper()
	_, state, err := handshake(t, s.Server(nil), &tls.Config{InsecureSkipVerify: true, ServerName: name})
	if err != nil {
		t.Fatal(err)
	}
	return fingerprint(state.PeerCertificates[0])
}

func fingerprint(cert *x509.Certificate) string { return tlsconf.FingerprintOf(cert).String() }

// What browsers demand of a certificate that a page pins.
func TestGenerated(t *testing.T) {
	leaf := selfSigned(t, "relay.example", "192.0.2.1", "::1").Leaf
	key, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		t.Errorf("key is %T", leaf.PublicKey)
	}
	if valid := leaf.NotAfter.Sub(leaf.NotBefore); valid > 14*24*time.Hour || valid < 13*24*time.Hour {
		t.Errorf("valid for %v", valid)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	for _, host := range []string{"relay.example", "192.0.2.1", "::1"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := leaf.VerifyHostname("other.example"); err == nil {
		t.Error("valid for any name")
	}
	if other := selfSigned(t, "relay.example").Leaf; fingerprint(other) == fingerprint(leaf) || other.SerialNumber.Cmp(leaf.SerialNumber) == 0 {
		t.Error("two certificates are alike")
	}
}

// A generated certificate is renewed while those who pinned the old one can still use theirs.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := 0
		s := open(t, tlsconf.Config{Generate: []string{"relay.example"}, OnChange: func() { changes++ }})
		seen := map[string]time.Duration{s.Fingerprint(): 0}
		start := time.Now()
		for time.Since(start) < 40*24*time.Hour {
			time.Sleep(time.Hour)
			synctest.Wait()
			cert, err := s.GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(cert.Leaf.NotAfter); left < 3*24*time.Hour {
				t.Fatalf("only %v left", left)
			}
			if now := s.Fingerprint(); seen[now] == 0 {
				seen[now] = time.Since(start)
			}
		}
		if len(seen) != 5 || changes != len(seen)-1 {
			t.Errorf("%d certificates in 40 days, %d changes told", len(seen), changes)
		}
	})
}

func TestSelection(t *testing.T) {
	one, two := selfSigned(t, "one.example"), selfSigned(t, "two.example", "*.two.example")
	s := open(t, tlsconf.Config{
		Pairs:    []tlsconf.Pair{save(t, t.TempDir(), one), save(t, t.TempDir(), two)},
		Generate: []string{"three.example"},
	})
	for name, want := range map[string]string{
		"":                fingerprint(one.Leaf), // no SNI
		"192.0.2.1":       fingerprint(one.Leaf), // no SNI either
		"unknown.example": fingerprint(one.Leaf),
		"one.example":     fingerprint(one.Leaf),
		"two.example":     fingerprint(two.Leaf),
		"a.two.example":   fingerprint(two.Leaf),
	} {
		if got := served(t, s, name); got != want {
			t.Errorf("%q got another certificate", name)
		}
	}
	if got := served(t, s, "three.example"); got == fingerprint(one.Leaf) || got == fingerprint(two.Leaf) {
		t.Error("generated certificate is not served")
	}
	if s.Fingerprint() != fingerprint(one.Leaf) {
		t.Error("fingerprint is not the first certificate's")
	}
}

// changed is told of changes; await fails the test if there is none.
type changed chan struct{}

func (c changed) await(t *testing.T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("no change noticed")
	}
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	pair := save(t, dir, selfSigned(t, "relay.example"))
	onChange := make(changed, 10)
	s := open(t, tlsconf.Config{Pairs: []tlsconf.Pair{pair}, OnChange: func() { onChange <- struct{}{} }})

	next := selfSigned(t, "relay.example")
	save(t, dir, next)
	onChange.await(t)
	if got := served(t, s, "relay.example"); got != fingerprint(next.Leaf) {
		t.Error("files written in place: not served")
	}

	next = selfSigned(t, "relay.example")
	elsewhere := save(t, t.TempDir(), next)
	for from, to := range map[string]string{elsewhere.Cert: pair.Cert, elsewhere.Key: pair.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	onChange.await(t)
	if got := served(t, s, "relay.example"); got != fingerprint(next.Leaf) {
		t.Error("files replaced: not served")
	}
	writeFile(t, filepath.Join(dir, "unrelated"), nil)
	time.Sleep(300 * time.Millisecond)
	if len(onChange) != 0 {
		t.Error("told of a change that is none")
	}
}

// Secrets that are mounted as volumes change by a link to their directory.
func TestReloadBehindLink(t *testing.T) {
	dir := t.TempDir()
	link := func(version string, cert *tls.Certificate) {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		save(t, filepath.Join(dir, version), cert)
		if err := os.Symlink(version, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", selfSigned(t, "relay.example"))
	pair := tlsconf.Pair{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	onChange := make(changed, 10)
	s := open(t, tlsconf.Config{Pairs: []tlsconf.Pair{pair}, OnChange: func() { onChange <- struct{}{} }})
	next := selfSigned(t, "relay.example")
	link("..2", next)
	onChange.await(t)
	if s.Fingerprint() != fingerprint(next.Leaf) {
		t.Error("new certificate is not served")
	}
}

// lines is a log that tests can read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), what)
}

// Bad files keep the last good certificate, are complained about once, and do not hold up others.
func TestBadReload(t *testing.T) {
	first, second := selfSigned(t, "one.example"), selfSigned(t, "two.example")
	dirs := []string{t.TempDir(), t.TempDir()}
	pairs := []tlsconf.Pair{save(t, dirs[0], first), save(t, dirs[1], second)}
	onChange := make(changed, 10)
	var log lines
	s := open(t, tlsconf.Config{
		Pairs: pairs, OnChange: func() { onChange <- struct{}{} },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	writeFile(t, pairs[0].Cert, []byte("not a certificate"))
	for start := time.Now(); log.count("not reloaded") == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("no complaint")
		}
	}
	writeFile(t, filepath.Join(dirs[0], "touch"), nil) // makes it look again
	third := selfSigned(t, "two.example")
	save(t, dirs[1], third)
	onChange.await(t)
	if got := served(t, s, "two.example"); got != fingerprint(third.Leaf) {
		t.Error("a good certificate waits for a bad one")
	}
	if got := served(t, s, "one.example"); got != fingerprint(first.Leaf) {
		t.Error("last good certificate is gone")
	}
	if n := log.count("cert=" + pairs[0].Cert); n != 1 {
		t.Errorf("%d complaints", n)
	}
	if err := os.Remove(pairs[0].Cert); err != nil {
		t.Fatal(err)
	}
	fourth := selfSigned(t, "one.example")
	save(t, dirs[0], fourth)
	onChange.await(t)
	if s.Fingerprint() != fingerprint(fourth.Leaf) {
		t.Error("does not recover")
	}
}

func TestOpenErrors(t *testing.T) {
	if _, err := tlsconf.Open(tlsconf.Config{}); !errors.Is(err, tlsconf.ErrNoCertificate) {
		t.Errorf("nothing configured: %v", err)
	}
	missing := tlsconf.Pair{Cert: filepath.Join(t.TempDir(), "none"), Key: "none"}
	if _, err := tlsconf.Open(tlsconf.Config{Pairs: []tlsconf.Pair{missing}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	one, two := save(t, t.TempDir(), selfSigned(t, "a")), save(t, t.TempDir(), selfSigned(t, "a"))
	mixed := tlsconf.Pair{Cert: one.Cert, Key: two.Key}
	if _, err := tlsconf.Open(tlsconf.Config{Pairs: []tlsconf.Pair{mixed}}); err == nil || !strings.Contains(err.Error(), one.Cert) {
		t.Errorf("key of another certificate: %v", err)
	}
}

// A certificate whose time is over, or has not come, is served with a warning.
func TestValidity(t *testing.T) {
	for name, at := range map[string]time.Duration{"expired": -20 * 24 * time.Hour, "good": 0, "not yet": 24 * time.Hour} {
		cert, err := tlsconf.SelfSigned([]string{"a"}, time.Now().Add(at))
		if err != nil {
			t.Fatal(err)
		}
		var log lines
		pair := save(t, t.TempDir(), cert)
		s := open(t, tlsconf.Config{Pairs: []tlsconf.Pair{pair}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if s.Fingerprint() != fingerprint(cert.Leaf) {
			t.Errorf("%s: not served", name)
		}
		if n := log.count("not valid now"); (n == 1) != (at != 0) || n > 1 {
			t.Errorf("%s: %d warnings", name, n)
		}
	}
}

func TestSecret(t *testing.T) {
	pair := save(t, t.TempDir(), selfSigned(t, "a"))
	one, two := open(t, tlsconf.Config{Pairs: []tlsconf.Pair{pair}}), open(t, tlsconf.Config{Pairs: []tlsconf.Pair{pair}})
	if len(one.Secret()) == 0 || !bytes.Equal(one.Secret(), two.Secret()) {
		t.Error("secret of a file is not stable")
	}
	if s := open(t, tlsconf.Config{Generate: []string{"a"}}).Secret(); s != nil {
		t.Error("generated certificate has a lasting secret")
	}
}

func TestParseFingerprint(t *testing.T) {
	cert := selfSigned(t, "a").Leaf
	want := tlsconf.FingerprintOf(cert)
	for _, text := range []string{want.String(), strings.ToUpper(want.String())} {
		got, err := tlsconf.ParseFingerprint(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", text, err, diff)
		}
	}
	for _, text := range []string{"", "00", want.String() + "00", strings.Repeat("g", 64)} {
		if _, err := tlsconf.ParseFingerprint(text); err == nil {
			t.Errorf("%q is a fingerprint", text)
		}
	}
}
