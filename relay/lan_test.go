package relay

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lan"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// refuseAll admits nobody.
type refuseAll struct{}

func (refuseAll) Authorize(context.Context, auth.Request) (auth.Grant, error) {
	return auth.Grant{}, &auth.Error{Status: 403, Reason: "nobody"}
}

// lanRelay runs a relay on loopback that lets in nobody but peers, which it looks for in a group of the test's own.
func lanRelay(t *testing.T, log *logBuffer, app string, change func(*Config)) *Relay {
	t.Helper()
	secret, err := lan.ParseSecret(strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(c *Config) {
		c.Auth = refuseAll{}
		c.LAN = LAN{Enabled: true, App: app, Secret: secret}
		c.Internal, c.Web.HTTP = "127.0.0.1:0", "127.0.0.1:0"
		c.Dial.TLS = tlsconf.ClientConfig{} // a pin, and not this, makes the peer trusted
		c.PeerTier = "mesh"
		c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if change != nil {
			change(c)
		}
	})
}

// linkedByLAN reports whether two relays have the one session that they need.
func linkedByLAN(a, b *Relay) bool {
	sessions := func(r *Relay) (n int) {
		for _, l := range r.sessions.list() {
			if l.peer && (l.lan || l.dialed) {
				n++
			}
		}
		return n
	}
	return sessions(a) == 1 && sessions(b) == 1
}

// TestLANPeers: two relays with multicast on loopback find each other; one dials, the other lets it in without asking
// anybody; it is a peer, and neither a session on pages nor a credential anywhere.
func TestLANPeers(t *testing.T) {
	log := new(logBuffer)
	a, b := lanRelay(t, log, "relay-test-peers", nil), lanRelay(t, log, "relay-test-peers", nil)
	for _, r := range []*Relay{a, b} {
		select {
		case <-r.Ready():
		case <-time.After(10 * time.Second):
			t.Fatal("not ready")
		}
	}
	waitFor(t, 10*time.Second, "a session", func() bool { return linkedByLAN(a, b) })
	dialer, other := a, b
	if len(a.Peers()) == 0 {
		dialer, other = b, a
	}
	if len(other.Peers()) != 0 {
		t.Errorf("both dial: %v", other.Peers())
	}
	s := dialer.Peers()[0]
	if s.Source != cluster.SourceLAN || s.Key != "moqt://"+other.Addr()+"/" {
		t.Errorf("peer %+v", s)
	}
	for _, l := range other.sessions.list() {
		if !l.peer || l.tier != "mesh" || l.path != "" || l.version != message.Lite06 {
			t.Errorf("accepted session %+v", l)
		}
	}
	// The credential opens it to whoever has it; a wrong one does not, and the authorizer is not asked.
	e := lanEntry(t, dialer, other)
	if got := knock(t, other, "quic", e.URL().Path); got.code != 0 {
		t.Errorf("the right credential: %v", got)
	}
	for _, carrier := range sessionCarriers {
		for _, path := range []string{"/.cluster", "/.cluster/", "/.cluster/" + strings.Repeat("0", 64), e.URL().Path + "/x"} {
			want := outcome{2, "unauthorized"}
			if byStatus(carrier) {
				want = outcome{code: 403}
			}
			if got := knock(t, other, carrier, path); got != want {
				t.Errorf("%s %s: %v", carrier, path, got)
			}
		}
	}
	if got := knock(t, other, "http", e.URL().Path); got.code != 401 && got.code != 403 {
		t.Errorf("over HTTP: %v", got)
	}
	credential := strings.TrimPrefix(e.URL().Path, lan.Prefix)
	for _, r := range []*Relay{a, b} {
		for _, p := range []string{"/nodes", "/sessions", "/cluster", "/metrics", "/"} {
			if text, _ := page(t, r, p); strings.Contains(text, credential) {
				t.Errorf("%s shows the credential", p)
			}
		}
		if text, _ := page(t, r, "/sessions"); strings.Contains(text, `"remote"`) {
			t.Errorf("sessions: %s", text)
		}
	}
	if strings.Contains(log.String(), credential) {
		t.Error("the credential is logged")
	}
	_ = other.Close()
	waitFor(t, 5*time.Second, "the goodbye", func() bool { return len(dialer.Peers()) == 0 })
}

// lanEntry works out anew what one relay dials of the other.
func lanEntry(t *testing.T, dialer, other *Relay) cluster.Entry {
	t.Helper()
	peers, err := dialer.lan.Load().Next(t.Context(), nil)
	if err != nil || len(peers) != 1 {
		t.Fatalf("%v, %v", peers, err)
	}
	p := peers[0]
	e, err := cluster.NewFound(cluster.Found{Address: p.Address, Path: p.Path, Cost: p.Cost, Addrs: p.Addrs, Fingerprint: p.Fingerprint})
	if err != nil {
		t.Fatal(err)
	}
	if p.Fingerprint != other.certs.Fingerprint() || len(e.Addrs()) != 1 {
		t.Errorf("entry %+v", p)
	}
	return e
}

// TestLANCertificate: another certificate is advertised, and the peers link anew by it.
func TestLANCertificate(t *testing.T) {
	log := new(logBuffer)
	a, b := lanRelay(t, log, "relay-test-cert", nil), lanRelay(t, log, "relay-test-cert", nil)
	waitFor(t, 10*time.Second, "a session", func() bool { return linkedByLAN(a, b) })
	dialer, other := a, b
	if len(a.Peers()) == 0 {
		dialer, other = b, a
	}
	before, err := dialer.lan.Load().Next(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other.lan.Load().SetFingerprint(strings.Repeat("0", 64)) // which it does not have
	after, err := dialer.lan.Load().Next(t.Context(), before)
	if err != nil || len(after) != 1 || after[0].Path == before[0].Path {
		t.Fatalf("%v, %v", after, err)
	}
	waitFor(t, 5*time.Second, "a refused certificate", func() bool {
		p := dialer.Peers()
		return len(p) == 1 && strings.Contains(p[0].LastError, "pinned fingerprints")
	})
	other.lanCertificate() // as after a renewal
	waitFor(t, 15*time.Second, "a session", func() bool { return linkedByLAN(a, b) })
}

// certificateFiles writes a self-signed certificate.
func certificateFiles(t *testing.T) tlsconf.Pair {
	t.Helper()
	cert, err := tlsconf.SelfSigned([]string{"relay.example"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pair := tlsconf.Pair{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{
		pair.Cert: {Type: "CERTIFICATE", Bytes: cert.Certificate[0]}, pair.Key: {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pair
}

// TestLANRefuses: a relay that nobody could trust does not start.
func TestLANRefuses(t *testing.T) {
	cfg := Config{
		Listen: endpoint.Config{Addr: "127.0.0.1:0"}, Certificates: tlsconf.Config{Pairs: []tlsconf.Pair{certificateFiles(t)}},
		Dial: endpoint.DialConfig{Addr: "127.0.0.1:0"}, Auth: refuseAll{}, LAN: LAN{Enabled: true, App: "relay-test-none"},
	}
	r, err := New(cfg)
	if err == nil {
		_ = r.Close()
		t.Fatal("started")
	}
	if !strings.Contains(err.Error(), "fingerprint or a node") {
		t.Error(err)
	}
	cfg.LAN.Node = "https://relay.example/"
	if r, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if got := r.lanFingerprint(); got != "" {
		t.Errorf("a certificate from files is advertised: %s", got)
	}
	_ = r.Close()
}

func TestPathVersions(t *testing.T) {
	for _, test := range []struct{ in, want []message.Version }{
		{nil, []message.Version{message.Lite05, message.Lite06}},
		{[]message.Version{message.Lite06, message.Lite03, message.Lite05}, []message.Version{message.Lite06, message.Lite05}},
		{[]message.Version{message.Lite04}, nil},
	} {
		got := pathVersions(test.in)
		if len(got) != len(test.want) {
			t.Errorf("%v: %v", test.in, got)
		}
		for i := range test.want {
			if got[i] != test.want[i] {
				t.Errorf("%v: %v", test.in, got)
			}
		}
	}
}
