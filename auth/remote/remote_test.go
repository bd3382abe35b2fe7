package remote_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var question = auth.Request{
	ID: "00ff", Event: auth.EventConnect, Node: "relay-1", Transport: auth.TransportQUIC, Path: "/demo/room", Query: "jwt=SECRET",
}

const asJSON = `{"id":"00ff","event":"connect","node":"relay-1","transport":"quic","path":"/demo/room","query":"jwt=SECRET"}`

func client(t *testing.T, cfg remote.Config) *remote.Client {
	t.Helper()
	c, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answering returns a client of a server that answers so.
func answering(t *testing.T, h http.HandlerFunc) *remote.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return client(t, remote.Config{URL: srv.URL + "/auth?key=MARK"})
}

func TestGrant(t *testing.T) {
	var got string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
		w.WriteHeader(http.StatusCreated) // any 2xx
		_, _ = io.WriteString(w, `{"publish":["alice/**"],"subscribe":["**"],"expires":4102444800,"revalidate":60,"tier":"gold","peer":true,"more":1}`)
	})
	g, err := c.Authorize(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	if want := "POST /auth application/json " + asJSON; got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
	if g.Root != "demo/room" || g.Publish.String() != "demo/room/alice/**" || g.Subscribe.String() != "demo/room/**" ||
		g.Expires.Unix() != 4102444800 || g.Revalidate != time.Minute || g.Tier != "gold" || !g.Peer {
		t.Errorf("%+v", g)
	}
	r := question
	r.Role = auth.RoleSubscriber
	if g, err = c.Authorize(t.Context(), r); err != nil || !g.Publish.Empty() {
		t.Errorf("a subscriber may publish %v, %v", g.Publish, err)
	}
}

// TestOutcomes: what is a refusal, what an invalid grant, and what no answer (control plane, typed outcomes).
func TestOutcomes(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	const good = `{"subscribe":["**"]}`
	tests := map[string]struct {
		h    http.HandlerFunc
		want error
	}{
		"401":              {status(401, "expired"), auth.ErrRefused},
		"403":              {status(403, ""), auth.ErrRefused},
		"403 with a grant": {status(403, good), auth.ErrRefused},
		"says no":          {status(200, `{}`), auth.ErrRefused},
		"empty lists":      {status(200, `{"publish":[],"subscribe":[]}`), auth.ErrRefused},
		"400":              {status(400, good), auth.ErrUnavailable},
		"404":              {status(404, good), auth.ErrUnavailable},
		"407":              {status(407, good), auth.ErrUnavailable},
		"429":              {status(429, good), auth.ErrUnavailable},
		"500":              {status(500, good), auth.ErrUnavailable},
		"redirect":         {status(302, good), auth.ErrUnavailable},
		"redirect 307":     {status(307, good), auth.ErrUnavailable},
		"304":              {status(304, ""), auth.ErrUnavailable},
		"empty":            {status(200, ""), auth.ErrUnavailable},
		"204":              {status(204, ""), auth.ErrUnavailable},
		"garbage":          {status(200, "<html>"), auth.ErrUnavailable},
		"half a grant":     {status(200, good[:12]), auth.ErrUnavailable},
		"two grants":       {status(200, good+good), auth.ErrUnavailable},
		"a list":           {status(200, `["**"]`), auth.ErrUnavailable},
		"null":             {status(200, `null`), auth.ErrUnavailable},
		"too large":        {status(200, good+strings.Repeat(" ", 256<<10)), auth.ErrUnavailable},
		"half a body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, good)
		}, auth.ErrUnavailable},
		"cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, auth.ErrUnavailable},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // or the server does not see that the client leaves
			<-r.Context().Done()
		}, auth.ErrUnavailable},
		"broken pattern":      {status(200, `{"subscribe":["a*b*"]}`), auth.ErrInvalid},
		"text for a list":     {status(200, `{"subscribe":"**"}`), auth.ErrInvalid},
		"revalidate alone":    {status(200, `{"subscribe":["**"],"revalidate":5}`), auth.ErrInvalid},
		"revalidate 0":        {status(200, `{"subscribe":["**"],"revalidate":0,"expires":4102444800}`), auth.ErrInvalid},
		"text for a time":     {status(200, `{"subscribe":["**"],"expires":"soon"}`), auth.ErrInvalid},
		"secret as a pattern": {status(200, `{"subscribe":["SECRET*x*"]}`), auth.ErrInvalid},
		"secret as a mount":   {status(200, `{"subscribe":["**"],"mounts":{"SECRET":"x","SECRET/y":"z"}}`), auth.ErrRefused},
		"secret and no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "SECRET MARK\r\n")
				_ = c.Close()
			}
		}, auth.ErrUnavailable},
		"key in the answer": {status(200, `{"subscribe":["MARK*x*"]}`), auth.ErrInvalid},
		"secret as a name":  {status(200, `{"SECRET":1,"SECRET":2}`), auth.ErrUnavailable},
		"mounts in a list":  {status(200, `{"subscribe":["**"],"mounts":["a"]}`), auth.ErrInvalid},
		"mounts overlap":    {status(200, `{"subscribe":["**"],"mounts":{"a":"b","a/c":"d"}}`), auth.ErrRefused},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := answering(t, tt.h)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if name == "hangs" {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			_, err := c.Authorize(ctx, question)
			var e *auth.Error
			if !errors.As(err, &e) || !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if strings.Contains(err.Error(), "MARK") || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("secret in %v", err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	for name, target := range map[string]string{
		"refused": "http://" + address + "/?key=MARK", "TLS to nobody": "https://" + address + "/?key=MARK",
		"no such host": "https://auth.invalid/?key=MARK", "no socket": "unix://" + filepath.Join(t.TempDir(), "none"),
	} {
		if _, err := client(t, remote.Config{URL: target}).Authorize(t.Context(), question); !errors.Is(err, auth.ErrUnavailable) || strings.Contains(err.Error(), "MARK") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReason: what the server says is in the log line, unless it repeats a credential.
func TestReason(t *testing.T) {
	for body, want := range map[string]string{
		"token expired\n": "refused: by the auth server: token expired", "": "refused: by the auth server",
		"bad token SECRET": "refused: by the auth server", "a\x1b[31mb": "refused: by the auth server: a [31mb",
		strings.Repeat("x", 295) + "SECRET": "refused: by the auth server",
	} {
		c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
		})
		if _, err := c.Authorize(t.Context(), question); err == nil || err.Error() != want {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestEnd(t *testing.T) {
	var got string
	var asked atomic.Int64
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		if asked.Add(1) > 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	r := auth.Request{ID: "00ff", Event: auth.EventEnd, Node: "relay-1", Transport: "websocket", Remote: "203.0.113.9:4433", Path: "/demo/room", Query: "jwt=abc"}
	e := auth.End{Reason: "expired", Duration: 1500 * time.Millisecond, Sent: 10, Received: 20}
	c.End(t.Context(), r, e)
	want := `{"id":"00ff","event":"end","reason":"expired","duration":1.5,"bytes":{"sent":10,"received":20},"node":"relay-1","transport":"websocket","remote":"203.0.113.9:4433","path":"/demo/room","query":"jwt=abc"}`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	c.End(t.Context(), r, e)
	if n := asked.Load(); n != 2 { // one attempt each
		t.Errorf("%d attempts", n)
	}
}

// TestDeadConnection: a kept connection that the server has closed meanwhile is no outage.
func TestDeadConnection(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"subscribe":["**"]}`)
	}))
	srv.Start()
	t.Cleanup(srv.Close)
	c := client(t, remote.Config{URL: srv.URL})
	for range 5 {
		if _, err := c.Authorize(t.Context(), question); err != nil {
			t.Fatal(err)
		}
		srv.CloseClientConnections()
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "auth.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, `{"subscribe":["**"]}`)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln) // ends when the server closes
	}()
	if _, err := client(t, remote.Config{URL: "unix://" + socket}).Authorize(t.Context(), question); err != nil {
		t.Error(err)
	}
	srv.Close()
	<-done
}

// TestHTTPS: the client certificate is presented, and a server that nobody vouches for is an outage.
func TestHTTPS(t *testing.T) {
	var presented int
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		presented = len(r.TLS.PeerCertificates)
		_, _ = io.WriteString(w, `{"subscribe":["**"]}`)
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	conf := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{selfSigned(t)}}
	c := client(t, remote.Config{URL: srv.URL, TLS: func() *tls.Config { return conf }})
	if _, err := c.Authorize(t.Context(), question); err != nil || presented != 1 {
		t.Errorf("%v, %d certificates", err, presented)
	}
	conf = &tls.Config{RootCAs: x509.NewCertPool()} // trust changes: the next connection goes by it
	srv.CloseClientConnections()
	if _, err := c.Authorize(t.Context(), question); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("a server that is not trusted any more: %v", err)
	}
	conf = &tls.Config{RootCAs: roots}
	if _, err := c.Authorize(t.Context(), question); err != nil {
		t.Errorf("a server that is trusted again: %v", err)
	}
	if _, err := client(t, remote.Config{URL: srv.URL}).Authorize(t.Context(), question); !errors.Is(err, auth.ErrUnavailable) {
		t.Error(err)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestURLs(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://auth.example.com/x?y=z": true, "http://127.0.0.1:4440": true, "http://[::1]:4440/": true, "http://localhost:1/": true,
		"unix:///run/auth.sock": true, "http://auth.example.com/": false, "http://10.0.0.1/": false, "unix://run/auth.sock": false,
		"unix:run": false, "https:///x": false, "ftp://localhost/": false, "auth.example.com": false, "": false, "https://a b/": false,
		"http://localhost.example.com/": false, "%": false,
	} {
		err := remote.Check(address)
		if (err == nil) != ok || err != nil && !errors.Is(err, remote.ErrURL) {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := remote.New(remote.Config{URL: address}); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := remote.New(remote.Config{URL: "http://MARK@example.com"}); strings.Contains(fmt.Sprint(err), "MARK") {
		t.Error(err)
	}
}
