package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// authority signs client certificates.
type authority struct {
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	roots *tlsconf.Roots
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newECKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(t, template, template, a.key)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if a.roots, err = tlsconf.OpenRoots("authorities", []string{file}, false, nil); err != nil {
		t.Fatal(err)
	}
	return a
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(t *testing.T, template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// client returns a certificate that ends at a time.
func (a *authority) client(t *testing.T, name string, end time.Time) *tls.Certificate {
	t.Helper()
	key := newECKey(t)
	cert := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "cn"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.cert, key)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
}

// attempt tries to get in, and stays until the test ends.
func attempt(t *testing.T, r *Relay, carrier, path string, cfg client.Config) outcome {
	t.Helper()
	c, err := client.Dial(t.Context(), where(r, carrier, path), cfg)
	if err != nil {
		return closing(t, err)
	}
	t.Cleanup(c.Close)
	return settled(t, c)
}

// refusedCode is how those are refused whom the rules do not admit.
func refusedCode(carrier string) uint32 {
	if byStatus(carrier) {
		return http.StatusForbidden
	}
	return lite.SessionUnauthorized
}

// secureWeb adds an HTTPS listener that asks for client certificates.
func secureWeb(c *Config, ca *authority) {
	c.Web.HTTPS, c.Web.Certificates, c.Web.ClientRoots = "127.0.0.1:0", tlsconf.Config{Generate: []string{"localhost"}}, ca.roots
}

func with(cert *tls.Certificate) client.Config {
	cfg := trusting
	cfg.TLS.Certificate = cert
	return cfg
}

// TestClientCertificates: a certificate is a fact in the request. It admits where a rule says so, on every carrier, ends
// the session with its own end (faults 6), and makes peers where that is configured.
func TestClientCertificates(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	k, keys := newKey(t, "k")
	r := deciding(t, serve.Config{
		Keys: keys, MTLSPublish: []string{"mesh/**"}, MTLSSubscribe: []string{"**"}, MTLSPeer: true,
	}, func(c *Config) {
		c.ClientRoots = ca.roots
		secureWeb(c, ca)
	})
	text := sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All})
	for _, carrier := range sessionCarriers {
		t.Run(carrier, func(t *testing.T) {
			end := time.Now().Add(3 * time.Second).Truncate(time.Second)
			c := dialWith(t, r, carrier, "/mesh", with(ca.client(t, "relay.example", end)))
			publish(t, c, carrier)
			waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "mesh/"+carrier) })
			for _, info := range r.origin.Routes() {
				if info.Prefix == "mesh/"+carrier && info.Source != "peer" {
					t.Errorf("source %s", info.Source)
				}
			}
			var shown struct{ Sessions []admin.Session }
			body, _ := page(t, r, "/sessions?tls.name=relay.example")
			if err := json.Unmarshal([]byte(body), &shown); err != nil {
				t.Fatal(err)
			}
			if len(shown.Sessions) != 1 || shown.Sessions[0].TLS.Issuer != "CN=test ca" || shown.Sessions[0].TLS.Expires != end.Unix() || len(shown.Sessions[0].ID) != 32 {
				t.Errorf("shown: %s", body)
			}
			got, _ := ended(t, c)
			if late := time.Since(end); got.code != lite.SessionUnauthorized || got.reason != "expired" || late < -100*time.Millisecond || late > busy {
				t.Errorf("%v, %v after the end", got, late)
			}
			// With a token it is refused, without either too; a token alone is good.
			long := ca.client(t, "relay.example", time.Now().Add(time.Hour))
			if got := attempt(t, r, carrier, "/?jwt="+text, with(long)); got.code != refusedCode(carrier) {
				t.Errorf("token and certificate: %v", got)
			}
			if got := attempt(t, r, carrier, "/", trusting); got.code != refusedCode(carrier) {
				t.Errorf("neither: %v", got)
			}
			if got := settled(t, dialWith(t, r, carrier, "/?jwt="+text, trusting)); got.code != 0 {
				t.Errorf("token: %v", got)
			}
			// A certificate of somebody else's authority does not get through the handshake.
			if c, err := client.Dial(t.Context(), where(r, carrier, "/"), with(stranger.client(t, "x", time.Now().Add(time.Hour)))); err == nil {
				<-c.Done()
				c.Close()
			}
			if n := r.leases.Counters().Connects.Refused; n%2 != 0 { // two refusals per carrier, and no more
				t.Errorf("%d refusals", n)
			}
		})
	}
	t.Run("http", func(t *testing.T) {
		for cert, want := range map[*tls.Certificate]int{ca.client(t, "c", time.Now().Add(time.Hour)): 200, nil: 403} {
			conf := &tls.Config{InsecureSkipVerify: true}
			if cert != nil {
				conf.Certificates = []tls.Certificate{*cert}
			}
			c := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}
			var address string
			for _, s := range r.web.servers {
				if s.server.TLSConfig != nil && s.server.TLSConfig.ClientAuth == tls.VerifyClientCertIfGiven {
					address = s.ln.Addr().String()
				}
			}
			res, err := c.Get("https://" + address + "/announced/mesh") //nolint:noctx // a test
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("status %d, want %d", res.StatusCode, want)
			}
		}
	})
}

// TestPeerLinkExpires: the token of a peer ends, the link with it, and the next dial presents what the file holds then.
func TestPeerLinkExpires(t *testing.T) {
	k, keys := newKey(t, "k")
	hub := deciding(t, serve.Config{Keys: keys}, nil)
	file := filepath.Join(t.TempDir(), "token")
	write := func(end time.Time) {
		text := sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All, Expires: end})
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(3 * time.Second).Truncate(time.Second)
	write(end)
	tokens, err := cluster.OpenTokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	start(t, func(c *Config) {
		c.Peers = peers(t, "moqt://"+hub.Addr()+"/")
		c.Cluster.Token = tokens
	})
	sessions := func() uint64 { return hub.leases.Counters().Connects.Granted }
	waitFor(t, 5*time.Second, "the link", func() bool { return sessions() == 1 && hub.sessions.len() == 1 })
	write(time.Now().Add(time.Hour))
	waitFor(t, 5*time.Second, "the end of the link", func() bool { return hub.leases.Counters().Expired == 1 })
	if late := time.Since(end); late < -100*time.Millisecond || late > busy {
		t.Errorf("ended %v after its token", late)
	}
	waitFor(t, 5*time.Second, "the next link", func() bool { return sessions() == 2 && hub.sessions.len() == 1 })
}
