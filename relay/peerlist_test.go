package relay

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// TestPeerListOverTLS (C15): the request presents our certificate and trusts our roots; pins and the name of peers do not
// count for it.
func TestPeerListOverTLS(t *testing.T) {
	hub := start(t, nil)
	ours, err := tlsconf.SelfSigned([]string{"us"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan []*x509.Certificate, 10)
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.TLS.PeerCertificates
		_, _ = w.Write([]byte(`["` + hub.url() + `"]`))
	}))
	api.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	api.StartTLS()
	defer api.Close()
	roots := x509.NewCertPool()
	roots.AddCert(api.Certificate())
	source, err := peerlist.ParseSource(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	with := func(trusted *x509.CertPool) *Relay {
		return start(t, func(c *Config) {
			c.PeerList = source
			c.Dial.TLS = tlsconf.ClientConfig{
				Roots: trusted, Certificate: ours, ServerName: "peer.example",
				Fingerprints: []tlsconf.Fingerprint{tlsconf.FingerprintOf(hub.certificate(t))},
			}
		})
	}
	r := with(roots)
	waitFor(t, 5*time.Second, "linked by the list", func() bool { return hub.sessions.len() == 1 })
	if certs := <-asked; len(certs) != 1 || !certs[0].Equal(ours.Leaf) {
		t.Errorf("presented %d certificates", len(certs))
	}
	if s := r.overview().List; s == nil || s.Error != "" || s.Peers != 1 {
		t.Errorf("list %+v", s)
	}
	stranger := with(x509.NewCertPool())
	waitFor(t, 5*time.Second, "refusal", func() bool { return stranger.overview().List.Error != "" })
	if got := stranger.overview().List.Error; !strings.Contains(got, "unknown authority") {
		t.Errorf("failed with %q", got)
	}
}

// certificate is the one that the listener serves.
func (r *Relay) certificate(t *testing.T) *x509.Certificate {
	t.Helper()
	cert, err := r.certs.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf
}
