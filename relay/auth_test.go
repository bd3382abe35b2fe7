package relay

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/paths"
)

// The tests T1 to T15 of the design of authentication, over every way into a relay.

func TestT1PublicRules(t *testing.T) {
	r := start(t, func(c *Config) {
		p, err := auth.NewPublic(auth.PublicRules{Both: []string{"anon/**"}})
		if err != nil {
			t.Fatal(err)
		}
		c.Auth, c.Web.HTTP, c.Internal = p, "127.0.0.1:0", "127.0.0.1:0"
	})
	for i, carrier := range sessionCarriers {
		cam := fmt.Sprint("cam", i)
		publish(t, dial(t, r, carrier, "/anon/x"), cam)
		waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "anon/x/"+cam) })
	}
	if _, body := get(t, where(r, "http", "/anon")); body != "x/cam0\nx/cam1\nx/cam2" {
		t.Errorf("announced %q", body)
	}
	expect(t, r, "/other", auth.ErrRefused)         // T2
	expect(t, r, "/anon?jwt=x", auth.ErrRefused)    // T3
	expect(t, r, "/anon?jwt=&x=1", nil)             // T3
	expect(t, r, "/anon//x/", nil)                  // faults 8
	expect(t, r, "/anonymous", auth.ErrRefused)     // faults 8
	expect(t, r, "/Anon", auth.ErrRefused)          // faults 8
	expect(t, r, "/anon/../other", nil)             // a name like any other, below anon
	expect(t, r, "/other/../anon", auth.ErrRefused) // and this one is not
	expect(t, r, "/.cluster/x", auth.ErrRefused)    // T14
}

// TestT4Outage: no answer admits nobody, whatever it looks like, and is told apart from a refusal.
func TestT4Outage(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	for name, answer := range map[string]http.HandlerFunc{
		"500": status(500, ""), "garbage": status(200, "<html>"), "half a body": status(200, `{"subscribe":["**"`), "redirect": status(302, ""),
		"404": status(404, ""), "429": status(429, ""),
		"cut": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s.set(answer)
			expect(t, r, "/a", auth.ErrUnavailable)
		})
	}
	s.set(status(403, "no"))
	expect(t, r, "/a", auth.ErrRefused)
	s.set(status(401, "no"))
	expect(t, r, "/b", auth.ErrRefused)
	s.set(status(200, `{}`))
	expect(t, r, "/c", auth.ErrRefused)
	s.set(status(200, `{"subscribe":"**"}`))
	expect(t, r, "/d", auth.ErrInvalid)
	if n := r.sessions.len(); n != 0 {
		t.Errorf("%d sessions", n)
	}
	metrics, _ := page(t, r, "/metrics")
	for _, line := range []string{
		`moqmesh_auth_answers_total{event="connect",outcome="unavailable"} 28`, `moqmesh_auth_answers_total{event="connect",outcome="refused"} 12`,
		`moqmesh_auth_answers_total{event="connect",outcome="invalid"} 4`, `moqmesh_auth_answers_total{event="connect",outcome="granted"} 0`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
}

// TestT4aRecovery: exactly what was granted a moment ago comes in during an outage and is asked about again; what was
// refused stays refused. (The 30 s are tested in virtual time, in package lease.)
func TestT4aRecovery(t *testing.T) {
	for _, carrier := range carriers {
		t.Run(carrier, func(t *testing.T) {
			s := newAuthServer(t)
			r := s.start(t, nil)
			s.set(granting(time.Minute, ""))
			if got := knock(t, r, carrier, "/a?jwt=1"); got.code != 0 {
				t.Fatal(got)
			}
			s.set(status(500, ""))
			if carrier == "http" {
				if got := knock(t, r, carrier, "/a?jwt=1"); got.code != 0 {
					t.Fatal(got)
				}
				s.set(status(403, ""))
			} else {
				c := dial(t, r, carrier, "/a?jwt=1")
				if got := settled(t, c); got.code != 0 {
					t.Fatal(got)
				}
				for path, what := range map[string]string{"/a?jwt=2": "another token", "/b?jwt=1": "another path", "/a": "no token"} {
					want := uint32(lite.CodeApplication + 502)
					if byStatus(carrier) {
						want = 502
					}
					if got := knock(t, r, carrier, path); got.code != want {
						t.Errorf("%s: %v", what, got)
					}
				}
				s.set(status(403, ""))
				if got, took := ended(t, c); got.code != lite.SessionUnauthorized || got.reason != "refused" || took > time.Second+busy {
					t.Errorf("%v after %v", got, took)
				}
			}
			if got := knock(t, r, carrier, "/a?jwt=1"); got.code != 2 && got.code != 403 {
				t.Errorf("refused: %v", got)
			}
			s.set(status(500, ""))
			if got := knock(t, r, carrier, "/a?jwt=1"); got.code != 2 && got.code != 401 {
				t.Errorf("refused a moment ago: %v", got)
			}
		})
	}
}

// TestT5Expiry: a grant ends on time on every carrier, with the auth server gone; names are withdrawn with it.
func TestT5Expiry(t *testing.T) {
	for _, carrier := range sessionCarriers {
		t.Run(carrier, func(t *testing.T) {
			s := newAuthServer(t)
			r := s.start(t, nil)
			s.set(granting(1500*time.Millisecond, `,"revalidate":0.5`))
			start := time.Now()
			c := dial(t, r, carrier, "/a")
			publish(t, c, "cam")
			waitFor(t, 5*time.Second, "the route", func() bool { return names(r) == "a/cam" })
			s.set(status(500, ""))
			got, _ := ended(t, c)
			if took := time.Since(start); got.code != lite.SessionUnauthorized || got.reason != "expired" || took < 1400*time.Millisecond || took > 1500*time.Millisecond+busy {
				t.Errorf("%v after %v", got, took)
			}
			waitFor(t, 5*time.Second, "the withdrawal", func() bool { return names(r) == "" })
			if e := s.end(t, s.requests("/a")[0].ID); e.Reason != "expired" || e.Duration < time.Second {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestT5ExpiryOfFetch: the body of a fetch is cut when its grant ends (A12), and the bytes are told.
func TestT5ExpiryOfFetch(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	s.set(granting(time.Minute, ""))
	track := publish(t, dial(t, r, "quic", "/a"), "cam")
	g, err := track.Group(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFrame(0, []byte("frame")); err != nil { // the group stays open
		t.Fatal(err)
	}
	waitFor(t, 5*time.Second, "the route", func() bool { return names(r) != "" }) // the publisher has its minute
	s.set(granting(1200*time.Millisecond, ""))
	start := time.Now()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.web.addr("web")+"/fetch/a/cam/video?x=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 5)
	n, err := res.Body.Read(buf)
	for err == nil {
		var more int
		more, err = res.Body.Read(make([]byte, 5))
		n += more
	}
	if took := time.Since(start); n != 5 || err.Error() == "EOF" || took < time.Second || took > 1200*time.Millisecond+busy {
		t.Errorf("%d bytes and %v after %v", n, err, took)
	}
	if e := s.end(t, s.requests("/a/cam")[0].ID); e.Reason != "expired" || e.Sent != 5 {
		t.Errorf("%+v", e)
	}
}

// TestT6T7Revalidation: asked again, the server refuses, narrows or changes, and the session ends with the reason.
func TestT6T7Revalidation(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		code   uint32
		reason string
	}{
		"refused (T6)":  {status(403, ""), lite.SessionUnauthorized, "refused"},
		"narrowed (T7)": {status(200, `{"publish":["**"],"subscribe":["b/**"],"expires":4102444800}`), lite.SessionUnauthorized, "grant narrowed"},
		"root":          {status(200, `{"publish":["**"],"subscribe":["**"],"root":"b","expires":4102444800}`), lite.SessionUnauthorized, "root changed"},
		"mounts":        {granting(time.Minute, `,"mounts":{"x":"t"}`), lite.SessionUnauthorized, "mounts changed"},
		"peer":          {granting(time.Minute, `,"peer":true`), lite.SessionUnauthorized, "peer changed"},
		"invalid":       {status(200, `{"publish":["**"],"subscribe":["**"],"revalidate":5}`), lite.CodeApplication + 502, "invalid"},
	} {
		for _, carrier := range sessionCarriers {
			t.Run(name+" "+carrier, func(t *testing.T) {
				s := newAuthServer(t)
				r := s.start(t, nil)
				s.set(granting(time.Minute, `,"revalidate":0.5`))
				c := dial(t, r, carrier, "/a")
				if got := settled(t, c); got.code != 0 {
					t.Fatal(got)
				}
				s.set(tt.answer)
				if got, took := ended(t, c); got.code != tt.code || got.reason != tt.reason || took > 500*time.Millisecond+busy {
					t.Errorf("%v after %v", got, took)
				}
				if e := s.end(t, s.requests("/a")[0].ID); e.Reason != tt.reason {
					t.Errorf("%+v", e)
				}
			})
		}
	}
}

// TestPush: an operator's push makes the relay ask at once, about the sessions that match.
func TestPush(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	s.set(granting(time.Hour, ""))
	a, b := dial(t, r, "quic", "/a"), dial(t, r, "webtransport", "/b")
	for _, c := range []*client.Client{a, b} {
		if got := settled(t, c); got.code != 0 {
			t.Fatal(got)
		}
	}
	s.set(status(403, ""))
	res, err := http.Post("http://"+r.web.addr("internal")+"/sessions/revalidate?path=b/**", "", nil) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got, took := ended(t, b); res.StatusCode != http.StatusAccepted || got.reason != "refused" || took > busy {
		t.Errorf("status %d, %v after %v", res.StatusCode, got, took)
	}
	if len(s.requests("/a")) != 1 || len(s.requests("/b")) != 2 || a.Err() != nil {
		t.Errorf("asked about %v and %v", s.requests("/a"), s.requests("/b"))
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestT8Tier: another tier is the same session under another label; totals do not fall.
func TestT8Tier(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	s.set(granting(time.Minute, `,"revalidate":0.5,"tier":"silver"`))
	c := dial(t, r, "quic", "/a")
	publish(t, c, "one")
	waitFor(t, 5*time.Second, "the route", func() bool { return names(r) == "a/one" })
	s.set(granting(time.Minute, `,"revalidate":0.5,"tier":"gold"`))
	var metrics string
	waitFor(t, 10*time.Second, "the new label", func() bool {
		metrics, _ = page(t, r, "/metrics")
		return strings.Contains(metrics, `moq_relay_sessions_opened_total{tier="gold"} 1`)
	})
	publish(t, c, "two")
	waitFor(t, 5*time.Second, "the route", func() bool { return names(r) == "a/one a/two" })
	metrics, _ = page(t, r, "/metrics")
	for _, line := range []string{
		`moq_relay_sessions_opened_total{tier="silver"} 1`, `moq_relay_sessions_closed_total{tier="silver"} 1`, `moq_relay_sessions_closed_total{tier="gold"} 0`,
		`moq_relay_announces_started_total{role="subscriber",tier="silver"} 1`, `moq_relay_announces_started_total{role="subscriber",tier="gold"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in\n%s", line, metrics)
		}
	}
	if c.Err() != nil {
		t.Error(c.Err())
	}
}

// TestT9Peer: what a session announces whose grant says peer has entered the cluster elsewhere.
func TestT9Peer(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	for more, want := range map[string]string{"": "local", `,"peer":true`: "peer"} {
		s.set(granting(time.Minute, more))
		publish(t, dial(t, r, "quic", "/"+want), "cam")
		waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), want+"/cam") })
		for _, info := range r.origin.Routes() {
			if info.Prefix == want+"/cam" && info.Source != want {
				t.Errorf("source %s, want %s", info.Source, want)
			}
		}
	}
}

// TestT10Role: a publisher without anything to publish is refused, and the other way round.
func TestT10Role(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	for _, carrier := range sessionCarriers {
		for grant, role := range map[string]client.Role{`{"subscribe":["**"]}`: client.RolePublisher, `{"publish":["**"]}`: client.RoleSubscriber} {
			s.set(status(200, grant))
			cfg := trusting
			cfg.Role = role
			if got := attempt(t, r, carrier, "/a", cfg); got.code != lite.SessionUnauthorized {
				t.Errorf("%s, %v with %s: %v", carrier, role, grant, got)
			}
		}
	}
	if r := s.requests("/a"); r[0].Role == auth.RoleBoth || r[0].Role == r[1].Role {
		t.Errorf("%+v", r)
	}
}

// TestT11Rotation: a key that is replaced in its directory counts for the next session.
func TestT11Rotation(t *testing.T) {
	dir := t.TempDir()
	keys, err := token.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := deciding(t, serve.Config{Keys: keys}, nil)
	old, _ := newKey(t, "k")
	next, _ := newKey(t, "k")
	file := filepath.Join(dir, "k.jwk")
	for _, step := range []struct {
		key  *token.Key
		want error
	}{{old, nil}, {next, auth.ErrRefused}} {
		if step.want == nil {
			if err := os.WriteFile(file, []byte(step.key.Encode()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		expect(t, r, "/a?jwt="+sign(t, step.key, token.Claims{Publish: paths.All, Subscribe: paths.All}), step.want)
	}
	if err := os.WriteFile(file, []byte(next.Encode()), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, r, "/a?jwt="+sign(t, next, token.Claims{Publish: paths.All, Subscribe: paths.All}), nil)
	expect(t, r, "/a?jwt="+sign(t, old, token.Claims{Publish: paths.All, Subscribe: paths.All}), auth.ErrRefused)
}

// TestT12Root: a token for a root that is dialed above it: names carry the root; and what it does not grant is not seen.
func TestT12Root(t *testing.T) {
	k, keys := newKey(t, "k")
	r := deciding(t, serve.Config{Keys: keys}, nil)
	all := sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All})
	publish(t, dial(t, r, "quic", "/?jwt="+all), "demo/bob")
	publish(t, dial(t, r, "quic", "/?jwt="+all), "other/eve")
	text := sign(t, k, token.Claims{Root: "demo", Publish: patternSet(t, "alice/**"), Subscribe: paths.All})
	for _, carrier := range sessionCarriers {
		c := dial(t, r, carrier, "/?jwt="+text)
		publish(t, c, "demo/alice/"+carrier)
		publish(t, c, "demo/mallory/"+carrier) // nobody asks for it
		waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "demo/alice/"+carrier) })
	}
	if _, body := get(t, where(r, "http", "/?jwt="+text)); body != "demo/alice/quic\ndemo/alice/websocket\ndemo/alice/webtransport\ndemo/bob" {
		t.Errorf("announced %q", body)
	}
	if _, body := get(t, where(r, "http", "/demo?jwt="+text)); body != "alice/quic\nalice/websocket\nalice/webtransport\nbob" {
		t.Errorf("announced %q", body)
	}
	expect(t, r, "/other?jwt="+text, auth.ErrRefused)
	for _, path := range []string{"/demo2", "/dem", "/Demo"} { // faults 8
		expect(t, r, path+"?jwt="+text, auth.ErrRefused)
	}
	expect(t, r, "/demo?jwt="+text[:len(text)-1], auth.ErrRefused)
	expect(t, r, "/demo?jwt=x&jwt="+text, nil)
	expect(t, r, "/demo?jwt="+text+"&jwt=x", auth.ErrRefused)
}

// TestT14LAN: the path of LAN peers never reaches the auth server.
func TestT14LAN(t *testing.T) {
	s := newAuthServer(t)
	s.set(granting(time.Minute, ""))
	r := s.start(t, nil)
	for _, path := range []string{"/.cluster", "/.cluster/x", "//.cluster//x/"} {
		expect(t, r, path, auth.ErrRefused)
	}
	expect(t, r, "/.clusters", nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		if q.Path != "/.clusters" {
			t.Errorf("asked about %s", q.Path)
		}
	}
}

// TestT15TokenEnds: a token that ends takes its session with it, without a server of its own (A2).
func TestT15TokenEnds(t *testing.T) {
	k, keys := newKey(t, "k")
	r := deciding(t, serve.Config{Keys: keys}, nil)
	for _, carrier := range sessionCarriers {
		end := time.Now().Add(2 * time.Second).Truncate(time.Second)
		c := dial(t, r, carrier, "/?jwt="+sign(t, k, token.Claims{Publish: paths.All, Expires: end}))
		got, _ := ended(t, c)
		if late := time.Since(end); got.code != lite.SessionUnauthorized || got.reason != "expired" || late < -100*time.Millisecond || late > busy {
			t.Errorf("%s: %v, %v after the end", carrier, got, late)
		}
	}
}
