package tlsconf_test

import (
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func savePEM(t *testing.T, file string, certs ...*tls.Certificate) {
	t.Helper()
	var text []byte
	for _, c := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})...)
	}
	writeFile(t, file, text)
}

// later is when files may have been looked at again. Their times must differ from before, too.
func later() { time.Sleep(1100 * time.Millisecond) }

// TestRootsAreReadAgain: who may come in, and whom we trust, follow the files; rubbish changes nothing and is told once.
func TestRootsAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.pem")
	old, fresh := clientCertificate(t), clientCertificate(t)
	savePEM(t, file, old)
	log := new(lines)
	roots, err := tlsconf.OpenRoots("listen.tls.root", []string{file}, false, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	server := open(t, tlsconf.Config{Generate: []string{"relay"}}).Server(roots)
	check := func(when string, oldIn, freshIn bool) {
		t.Helper()
		for cert, in := range map[*tls.Certificate]bool{old: oldIn, fresh: freshIn} {
			cfg := tlsconf.ClientConfig{Insecure: true, Certificate: cert}
			state, _, err := handshake(t, server, cfg.TLS("relay", nil))
			if (err == nil) != in || in && len(state.VerifiedChains) == 0 {
				t.Errorf("%s: %v, want in %v", when, err, in)
			}
		}
	}
	check("at first", true, false)
	pool := roots.Pool()
	later()
	savePEM(t, file, old) // the same again
	check("unchanged", true, false)
	savePEM(t, file, old, fresh)
	later()
	check("one added", true, true)
	savePEM(t, file, fresh)
	later()
	check("one removed", false, true)
	writeFile(t, file, []byte("rubbish"))
	later()
	check("rubbish", false, true)
	later()
	check("still rubbish", false, true)
	if n := log.count("not read again"); n != 1 {
		t.Errorf("told %d times", n)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	later()
	check("removed", false, true)
	savePEM(t, file, old)
	later()
	check("back", true, false)
	if roots.Pool() == pool {
		t.Error("the pool is the first one")
	}
}

// TestClientFilesAreReadAgain: a dialer presents and trusts what is in the files at the time of the handshake.
func TestClientFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	first, second := clientCertificate(t), clientCertificate(t)
	pair := save(t, dir, first)
	keys, err := tlsconf.OpenKeyPair("connect.tls.cert", pair, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := open(t, tlsconf.Config{Generate: []string{"relay"}}).Server(nil)
	server.ClientAuth = tls.RequireAnyClientCert
	cfg := tlsconf.ClientConfig{Insecure: true, KeyPair: keys}
	conf := cfg.TLS("relay", nil)
	for i, want := range []*tls.Certificate{first, second} {
		if i > 0 {
			save(t, dir, second)
			later()
		}
		state, _, err := handshake(t, server, conf)
		if err != nil || string(state.PeerCertificates[0].Raw) != string(want.Certificate[0]) {
			t.Errorf("certificate %d is not presented: %v", i, err)
		}
	}
	served := filepath.Join(dir, "roots.pem")
	savePEM(t, served, first)
	roots, err := tlsconf.OpenRoots("connect.tls.root", []string{served}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := selfSigned(t, "relay")
	server = open(t, tlsconf.Config{Pairs: []tlsconf.Pair{save(t, t.TempDir(), own)}}).Server(nil)
	cfg = tlsconf.ClientConfig{RootFiles: roots}
	if _, _, err := handshake(t, server, cfg.TLS("relay", nil)); err == nil {
		t.Error("a stranger is trusted")
	}
	savePEM(t, served, own)
	later()
	if _, _, err := handshake(t, server, cfg.TLS("relay", nil)); err != nil {
		t.Errorf("not trusted although it is in the file now: %v", err)
	}
}

// TestFilesAreLookedAtSeldom: a busy listener does not read the disk for every handshake.
func TestFilesAreLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ca.pem")
		savePEM(t, file, clientCertificate(t))
		roots, err := tlsconf.OpenRoots("x", []string{file}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := roots.Pool()
		savePEM(t, file, clientCertificate(t), clientCertificate(t))
		time.Sleep(999 * time.Millisecond)
		if roots.Pool() != before {
			t.Error("looked at within a second")
		}
		time.Sleep(time.Millisecond)
		if roots.Pool() == before {
			t.Error("not looked at after a second")
		}
	})
}

func TestReloadingErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pem")
	writeFile(t, empty, nil)
	for _, file := range []string{empty, filepath.Join(dir, "missing.pem")} {
		if _, err := tlsconf.OpenRoots("listen.tls.root", []string{file}, false, nil); err == nil {
			t.Errorf("roots from %s", file)
		}
		if _, err := tlsconf.OpenKeyPair("connect.tls.cert", tlsconf.Pair{Cert: file, Key: file}, nil); err == nil {
			t.Errorf("a key pair from %s", file)
		}
	}
	if tlsconf.FixedRoots(nil) != nil {
		t.Error("roots out of nothing")
	}
}
