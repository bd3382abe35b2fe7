package serve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/paths"
)

func key(tb testing.TB, id string) *token.Key {
	tb.Helper()
	k, err := token.Generate("ES256", id)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func keys(tb testing.TB, list ...*token.Key) token.Keys {
	tb.Helper()
	s, err := token.NewSet(list...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func rules(tb testing.TB, cfg serve.Config) *serve.Rules {
	tb.Helper()
	r, err := serve.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func set(tb testing.TB, texts ...string) paths.Set {
	tb.Helper()
	s, err := paths.ParseSet(texts...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// badKeys cannot tell.
type badKeys struct{}

func (badKeys) Key(context.Context, string) (*token.Key, error) {
	return nil, fmt.Errorf("%w: gone", token.ErrUnavailable)
}

// TestDecisions is the order of auth 6.4: token, certificate, public; a bad credential never falls through.
func TestDecisions(t *testing.T) {
	k := key(t, "a")
	sign := func(c token.Claims) string {
		text, err := k.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	demo := token.Claims{Root: "demo", Publish: set(t, "alice/**"), Subscribe: paths.All}
	good := sign(demo)
	stranger, err := key(t, "a").Sign(demo)
	if err != nil {
		t.Fatal(err)
	}
	cert := &auth.Identity{Name: "peer", Fingerprint: "ff", Expires: time.Now().Add(time.Hour)}
	all := serve.Config{
		Keys: keys(t, k), PublicSubscribe: []string{"anon/**"}, MTLSPublish: []string{"**"}, MTLSSubscribe: []string{"**"}, Tier: "t",
	}
	only := func(change func(*serve.Config)) serve.Config {
		cfg := all
		change(&cfg)
		return cfg
	}
	setup := func(kind uint64, text string) *auth.SetupToken {
		return &auth.SetupToken{Kind: kind, Value: []byte(text)}
	}
	tests := map[string]struct {
		cfg  serve.Config
		r    auth.Request
		want string // root, publish, subscribe, peer; or how it is not granted
	}{
		"token":                        {all, auth.Request{Path: "/demo", Query: "jwt=" + good}, "demo demo/alice/** demo/** false"},
		"token at the root (T12)":      {all, auth.Request{Path: "/", Query: "jwt=" + good}, " demo/alice/** demo/** false"},
		"token elsewhere":              {all, auth.Request{Path: "/anon", Query: "jwt=" + good}, "refused: token: nothing is granted"},
		"token in SETUP":               {all, auth.Request{Path: "/demo", SetupToken: setup(0, good)}, "demo demo/alice/** demo/** false"},
		"the same token twice":         {all, auth.Request{Path: "/demo", Query: "jwt=" + good, SetupToken: setup(0, good)}, "demo demo/alice/** demo/** false"},
		"two tokens (T13)":             {all, auth.Request{Path: "/demo", Query: "jwt=" + good, SetupToken: setup(0, stranger)}, "refused: two different tokens"},
		"token of another type":        {all, auth.Request{Path: "/demo", SetupToken: setup(1, good)}, "refused: a token of type 1, which is not supported"},
		"empty token in SETUP":         {all, auth.Request{Path: "/anon", SetupToken: setup(0, "")}, "anon  anon/** false"},
		"jwt twice, the last counts":   {all, auth.Request{Path: "/demo", Query: "jwt=bad&jwt=" + good}, "demo demo/alice/** demo/** false"},
		"a bad token is not public":    {all, auth.Request{Path: "/anon", Query: "jwt=bad"}, "refused: bad token: malformed"},
		"a stranger's token":           {all, auth.Request{Path: "/anon", Query: "jwt=" + stranger}, "refused: bad token: signature"},
		"an expired token":             {all, auth.Request{Path: "/demo", Query: "jwt=" + sign(token.Claims{Publish: paths.All, Expires: time.Now().Add(-6 * time.Second)})}, "refused: bad token: expired"},
		"token and certificate":        {all, auth.Request{Path: "/demo", Query: "jwt=" + good, TLS: cert}, "refused: a token together with a certificate"},
		"token without keys":           {only(func(c *serve.Config) { c.Keys = nil }), auth.Request{Path: "/anon", Query: "jwt=" + good}, "refused: a token, but no keys are configured"},
		"keys that cannot be had":      {only(func(c *serve.Config) { c.Keys = badKeys{} }), auth.Request{Path: "/demo", Query: "jwt=" + good}, "authorization is unavailable: keys are unavailable: gone"},
		"certificate":                  {all, auth.Request{Path: "/x", TLS: cert}, "x x/** x/** false"},
		"certificate of a peer":        {only(func(c *serve.Config) { c.MTLSPeer = true }), auth.Request{Path: "/x", TLS: cert}, "x x/** x/** true"},
		"no peer without certificate":  {only(func(c *serve.Config) { c.MTLSPeer = true }), auth.Request{Path: "/demo", Query: "jwt=" + good}, "demo demo/alice/** demo/** false"},
		"certificate without a rule":   {only(func(c *serve.Config) { c.MTLSPublish, c.MTLSSubscribe = nil, nil }), auth.Request{Path: "/anon", TLS: cert}, "refused: a certificate, but no rule for certificates is configured"},
		"certificate elsewhere":        {only(func(c *serve.Config) { c.MTLSPublish, c.MTLSSubscribe = []string{"a/**"}, nil }), auth.Request{Path: "/b", TLS: cert}, "refused: nothing is granted here"},
		"public":                       {all, auth.Request{Path: "/anon/x", Query: "jwt="}, "anon/x  anon/x/** false"},
		"public elsewhere":             {all, auth.Request{Path: "/other"}, "refused: nothing is granted here"},
		"no public rules":              {only(func(c *serve.Config) { c.PublicSubscribe = nil }), auth.Request{Path: "/anon"}, "refused: no token and no certificate"},
		"publisher, subscribe (T10)":   {all, auth.Request{Path: "/anon", Role: auth.RolePublisher}, "refused: a publisher without anything to publish here"},
		"subscriber with a token":      {all, auth.Request{Path: "/demo", Query: "jwt=" + good, Role: auth.RoleSubscriber}, "demo  demo/** false"},
		"publisher at another's place": {all, auth.Request{Path: "/demo/bob", Query: "jwt=" + good, Role: auth.RolePublisher}, "refused: a publisher without anything to publish here"},
		"path too deep":                {all, auth.Request{Path: strings.Repeat("/a", 33), Query: "jwt=" + good}, "refused: token: path has more than 32 segments"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := rules(t, tt.cfg).Authorize(t.Context(), tt.r)
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("%s %s %s %v", g.Root, g.Publish, g.Subscribe, g.Peer)
				if g.Tier != "t" {
					t.Errorf("tier %q", g.Tier)
				}
			}
			if got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestEnds: a token's end, a certificate's end, or the configured one; the cadence on all (T15).
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key(t, "a")
		now := time.Now()
		end := now.Add(time.Minute)
		bounded, err := k.Sign(token.Claims{Publish: paths.All, Expires: end})
		if err != nil {
			t.Fatal(err)
		}
		open, err := k.Sign(token.Claims{Publish: paths.All})
		if err != nil {
			t.Fatal(err)
		}
		r := rules(t, serve.Config{
			Keys: keys(t, k), PublicPublish: []string{"**"}, MTLSPublish: []string{"**"}, Revalidate: 10 * time.Second, Expires: time.Hour,
		})
		for name, tt := range map[string]struct {
			r    auth.Request
			want time.Time
		}{
			"token":                {auth.Request{Query: "jwt=" + bounded}, end},
			"token without an end": {auth.Request{Query: "jwt=" + open}, now.Add(time.Hour)},
			"certificate":          {auth.Request{TLS: &auth.Identity{Expires: end}}, end},
			"public":               {auth.Request{}, now.Add(time.Hour)},
		} {
			g, err := r.Authorize(t.Context(), tt.r)
			if err != nil || !g.Expires.Equal(tt.want) || g.Revalidate != 10*time.Second {
				t.Errorf("%s: %v, %v, %v", name, g.Expires, g.Revalidate, err)
			}
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := key(t, "a")
		text, err := k.Sign(token.Claims{Publish: paths.All})
		if err != nil {
			t.Fatal(err)
		}
		r := rules(t, serve.Config{
			Keys: keys(t, k), PublicPublish: []string{"**"}, Revalidate: 10 * time.Second, Expires: time.Hour, LimitToken: 2, LimitRemote: 3,
		})
		ask := func(id string, event auth.Event, remote, text string, want string) {
			t.Helper()
			q := auth.Request{ID: id, Event: event, Remote: remote}
			if text != "" {
				q.Query = "jwt=" + text
			}
			_, err := r.Authorize(t.Context(), q)
			if got := fmt.Sprint(err); got != want {
				t.Errorf("%s: %s, want %s", id, got, want)
			}
		}
		const (
			connect, again = auth.EventConnect, auth.EventRevalidate
			ok             = "<nil>"
			manyTokens     = "refused: too many sessions with this token"
			manyRemotes    = "refused: too many sessions from this address"
		)
		ask("1", connect, "192.0.2.1:1", text, ok)
		ask("2", connect, "192.0.2.2:1", text, ok)
		ask("3", connect, "192.0.2.3:1", text, manyTokens)
		ask("1", again, "192.0.2.1:1", text, ok)
		ask("9", again, "192.0.2.9:1", text, ok) // running already when we started: never revoked
		r.End(t.Context(), auth.Request{ID: "9"}, auth.End{})
		r.End(t.Context(), auth.Request{ID: "2"}, auth.End{})
		r.End(t.Context(), auth.Request{ID: "2"}, auth.End{})
		ask("3", connect, "192.0.2.3:1", text, ok)
		for i, id := range []string{"a", "b", "c"} {
			ask(id, connect, fmt.Sprintf("[2001:db8::%d]:1", i), "", ok)
		}
		ask("d", connect, "[2001:db8::ffff:1]:1", "", manyRemotes) // the same /64
		ask("d", connect, "[2001:db8:0:1::1]:1", "", ok)
		ask("e", connect, "[::ffff:192.0.2.1]:9", "", ok)
		ask("f", connect, "192.0.2.1:9", "", ok)
		ask("g", connect, "192.0.2.1:10", "", manyRemotes) // 1, e, f
		time.Sleep(15 * time.Second)
		ask("a", again, "[2001:db8::0]:1", "", ok)
		time.Sleep(6 * time.Second) // two cadences without a word of the others
		ask("h", connect, "[2001:db8::5]:1", "", ok)
		ask("i", connect, "[2001:db8::6]:1", "", ok)
		ask("j", connect, "[2001:db8::7]:1", "", manyRemotes) // a, h, i
		ask("b", again, "[2001:db8::1]:1", "", ok)            // it was forgotten, and is not revoked
	})
}

func TestNewRefuses(t *testing.T) {
	k := keys(t, key(t, "a"))
	for name, tt := range map[string]struct {
		cfg  serve.Config
		want error
	}{
		"nothing":                    {serve.Config{}, serve.ErrNobody},
		"empty lists":                {serve.Config{PublicPublish: []string{}, MTLSPublish: []string{}}, serve.ErrNobody},
		"no wildcard":                {serve.Config{PublicPublish: []string{"a"}}, auth.ErrNoWildcard},
		"no wildcard, certificates":  {serve.Config{MTLSSubscribe: []string{"a"}}, auth.ErrNoWildcard},
		"revalidate alone":           {serve.Config{Keys: k, Revalidate: time.Second}, serve.ErrExpires},
		"limits alone":               {serve.Config{Keys: k, LimitToken: 1}, serve.ErrLimits},
		"negative":                   {serve.Config{Keys: k, Expires: -1}, serve.ErrNegative},
		"peers without certificates": {serve.Config{Keys: k, MTLSPeer: true}, serve.ErrCertificates},
	} {
		if _, err := serve.New(tt.cfg); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHandler: relays get over HTTP what they would get in the process, and logs have no secret.
func TestHandler(t *testing.T) {
	k := key(t, "a")
	text, err := k.Sign(token.Claims{Root: "demo", Publish: set(t, "a/**"), Expires: time.Unix(4102444800, 0)})
	if err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.Level(-8)}))
	srv := httptest.NewServer(&serve.Handler{Logger: log, Decide: rules(t, serve.Config{
		Keys: keys(t, k), Tier: "x", Revalidate: time.Minute, Expires: time.Hour, LimitToken: 1, Logger: log,
	})})
	t.Cleanup(srv.Close)
	c, err := remote.New(remote.Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	q := auth.Request{ID: "1", Event: auth.EventConnect, Path: "/", Query: "jwt=" + text}
	g, err := c.Authorize(t.Context(), q)
	if err != nil || g.Publish.String() != "demo/a/**" || g.Tier != "x" || g.Revalidate != time.Minute || g.Expires.Unix() != 4102444800 {
		t.Errorf("%+v, %v", g, err)
	}
	q.ID = "2"
	if _, err := c.Authorize(t.Context(), q); !errors.Is(err, auth.ErrRefused) || !strings.Contains(err.Error(), "too many sessions") {
		t.Error(err)
	}
	q.ID = "1"
	c.End(t.Context(), q, auth.End{Reason: "closed"})
	q.ID = "2"
	if _, err := c.Authorize(t.Context(), q); err != nil {
		t.Error(err)
	}
	q.Query = "jwt=" + text + "X"
	if _, err := c.Authorize(t.Context(), q); !errors.Is(err, auth.ErrRefused) {
		t.Error(err)
	}
	if strings.Contains(logs.String(), text[:40]) || !strings.Contains(logs.String(), "granted") {
		t.Errorf("%s", &logs)
	}
	for name, tt := range map[string]struct {
		method, body string
		status       int
	}{
		"GET":       {"GET", "", 405},
		"no JSON":   {"POST", "jwt=" + text, 400},
		"too large": {"POST", `{"id":"` + strings.Repeat("a", 128<<10) + `"}`, 400},
		"end":       {"POST", `{"id":"77","event":"end"}`, 204},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, srv.URL, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status || strings.Contains(string(body), text[:40]) {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, body)
		}
	}
}

// TestHandlerUnavailable: keys that cannot be had are no refusal on the wire either.
func TestHandlerUnavailable(t *testing.T) {
	srv := httptest.NewServer(&serve.Handler{Decide: rules(t, serve.Config{Keys: badKeys{}})})
	t.Cleanup(srv.Close)
	c, err := remote.New(remote.Config{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Authorize(t.Context(), auth.Request{ID: "1", Query: "jwt=" + vector}); !errors.Is(err, auth.ErrUnavailable) {
		t.Error(err)
	}
}

const vector = `eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6ImtpZDEifQ.eyJyb290IjoiZGVtbyIsInB1dCI6WyJhbGljZSJdLCJnZXQiOlsiIl0sImV4cCI6NDEwMjQ0NDgwMH0.QzjmRotTTSXJGBnkve4KFVH7HyG0zigLVSVRZhSmLMM`
