package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/qmux"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// carriers are the ways into a relay.
var carriers = []string{"webtransport", "quic", "websocket", "http"}

// sessionCarriers are those that carry sessions.
var sessionCarriers = carriers[:3]

// busy is how late a machine with other work may be. That ends come to the second is tested in virtual time, in package
// lease; that they do not come early, here.
const busy = 2500 * time.Millisecond

// where is the URL of a path, which may have a query, on a carrier; for http it lists what is announced there.
func where(r *Relay, carrier, path string) string {
	switch carrier {
	case "webtransport":
		return "https://" + r.Addr() + path
	case "quic":
		return "moqt://" + r.Addr() + path
	case "websocket":
		if r.cfg.Web.HTTPS != "" {
			return "wss://" + r.web.servers[1].ln.Addr().String() + path // after that of HTTP
		}
		return "ws://" + r.web.addr("web") + path
	}
	return "http://" + r.web.addr("web") + "/announced" + path
}

// outcome is what became of an attempt to get in: a session code, or an HTTP status; 0 and 200 mean in.
type outcome struct {
	code   uint32
	reason string
}

var trusting = client.Config{TLS: tlsconf.ClientConfig{Insecure: true}, DialTimeout: 15 * time.Second}

// knock tries to get in, and leaves again.
func knock(t *testing.T, r *Relay, carrier, path string) outcome {
	t.Helper()
	if carrier == "http" {
		status, body := get(t, where(r, carrier, path))
		if status == http.StatusOK {
			return outcome{}
		}
		return outcome{code: uint32(status), reason: body}
	}
	c, err := client.Dial(t.Context(), where(r, carrier, path), trusting)
	if err != nil {
		return closing(t, err)
	}
	defer c.Close()
	return settled(t, c)
}

// settled waits until a session is let in, which shows in what is announced to it, or closed.
func settled(t *testing.T, c *client.Client) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	a, err := c.Announced(ctx, "")
	if err != nil {
		return closing(t, err)
	}
	defer a.Close()
	in := make(chan error, 1)
	go func() {
		_, err := a.Initial(ctx)
		in <- err
	}()
	if err := <-in; err != nil {
		<-c.Done()
		return closing(t, c.Err())
	}
	return outcome{}
}

// closing is how a session was closed by the relay.
func closing(t *testing.T, err error) outcome {
	t.Helper()
	if refused, ok := errors.AsType[*qmux.StatusError](err); ok { // before it was a session
		return outcome{uint32(refused.Status), ""}
	}
	var closed *transport.SessionError
	if !errors.As(err, &closed) || !closed.Remote || closed.Transport != nil {
		t.Fatalf("not closed by the relay: %v", err)
	}
	return outcome{closed.Code, closed.Reason}
}

// expect demands an outcome on every carrier: denied and unavailable are told apart on each.
func expect(t *testing.T, r *Relay, path string, want error) {
	t.Helper()
	for _, carrier := range carriers {
		got := knock(t, r, carrier, path)
		code := map[error]uint32{nil: 0, auth.ErrRefused: 2, auth.ErrUnavailable: 64 + 502, auth.ErrInvalid: 64 + 502}[want]
		if byStatus(carrier) && want != nil {
			code = map[uint32]uint32{2: 401, 64 + 502: 502}[code]
			if got.code == 403 {
				got.code = 401 // as good
			}
		}
		if got.code != code {
			t.Errorf("%s %s: code %d (%s), want %d", carrier, path, got.code, got.reason, code)
		}
	}
}

// byStatus reports whether a carrier refuses with an HTTP status.
func byStatus(carrier string) bool { return carrier == "http" || carrier == "websocket" }

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// authServer is an auth server behind HTTP that answers as it is told, and remembers what it was asked.
type authServer struct {
	url string

	mu     sync.Mutex
	answer http.HandlerFunc
	asked  []auth.Request
	ends   map[string]auth.End // by session
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{ends: make(map[string]auth.End)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		q, end, err := auth.DecodeRequest(body)
		if err != nil {
			t.Errorf("asked %s: %v", body, err)
		}
		s.mu.Lock()
		if end != nil {
			s.ends[q.ID] = *end
			s.mu.Unlock()
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.asked = append(s.asked, q)
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

func (s *authServer) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = h
}

// requests are those so far for a path.
func (s *authServer) requests(path string) (out []auth.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if q.Path == path {
			out = append(out, q)
		}
	}
	return out
}

// end waits for the end of a session.
func (s *authServer) end(t *testing.T, id string) (e auth.End) {
	t.Helper()
	waitFor(t, 5*time.Second, "the end of "+id, func() (ok bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		e, ok = s.ends[id]
		return ok
	})
	return e
}

// start runs a relay that asks the server.
func (s *authServer) start(t *testing.T, change func(*Config)) *Relay {
	t.Helper()
	return start(t, func(c *Config) {
		client, err := remote.New(remote.Config{URL: s.url})
		if err != nil {
			t.Fatal(err)
		}
		c.Auth, c.Web.HTTP, c.Internal = client, "127.0.0.1:0", "127.0.0.1:0"
		if change != nil {
			change(c)
		}
	})
}

// Answers.

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// granting answers with everything at the dialed path, and more members.
func granting(lasts time.Duration, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		end := float64(time.Now().Add(lasts).UnixMilli()) / 1000
		_, _ = fmt.Fprintf(w, `{"publish":["**"],"subscribe":["**"],"expires":%.3f%s}`, end, more)
	}
}

// deciding runs a relay that decides by itself.
func deciding(t *testing.T, cfg serve.Config, change func(*Config)) *Relay {
	t.Helper()
	rules, err := serve.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(c *Config) {
		c.Auth, c.Web.HTTP, c.Internal = rules, "127.0.0.1:0", "127.0.0.1:0"
		if change != nil {
			change(c)
		}
	})
}

func newKey(t *testing.T, id string) (*token.Key, token.Keys) {
	t.Helper()
	k, err := token.Generate("ES256", id)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := token.NewSet(k)
	if err != nil {
		t.Fatal(err)
	}
	return k, keys
}

func sign(t *testing.T, k *token.Key, c token.Claims) string {
	t.Helper()
	text, err := k.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func patternSet(t *testing.T, texts ...string) paths.Set {
	t.Helper()
	s, err := paths.ParseSet(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dial opens a session that must be let in.
func dial(t *testing.T, r *Relay, carrier, path string) *client.Client {
	t.Helper()
	return dialWith(t, r, carrier, path, trusting)
}

func dialWith(t *testing.T, r *Relay, carrier, path string, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), where(r, carrier, path), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// publish announces a broadcast with a track, and returns the track.
func publish(t *testing.T, c *client.Client, name string) *client.TrackWriter {
	t.Helper()
	b, err := c.Publish(name)
	if err != nil {
		t.Fatal(err)
	}
	track, err := b.Track("video", media.DefaultInfo())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	return track
}

// names are the prefixes that the relay has routes for.
func names(r *Relay) string {
	var out []string
	for _, info := range r.origin.Routes() {
		out = append(out, info.Prefix)
	}
	return strings.Join(out, " ")
}

// ended waits until the relay has closed a session and returns how, and how long that took.
func ended(t *testing.T, c *client.Client) (outcome, time.Duration) {
	t.Helper()
	start := time.Now()
	select {
	case <-c.Done():
	case <-time.After(15 * time.Second):
		t.Fatal("the session goes on")
	}
	return closing(t, c.Err()), time.Since(start)
}
