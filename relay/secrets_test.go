package relay

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/lan"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// secrets are what must show nowhere, and all that could show it.
type secrets struct {
	log     *logBuffer
	loud    *slog.Logger
	seen    strings.Builder
	planted []string
}

func newSecrets() *secrets {
	s := &secrets{log: new(logBuffer), planted: []string{"MARK"}}
	s.loud = slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}))
	return s
}

// pages visits every page of a relay.
func (s *secrets) pages(t *testing.T, relays ...*Relay) {
	t.Helper()
	for _, r := range relays {
		for _, path := range []string{"/nodes", "/sessions", "/metrics", "/cluster", "/routes", "/tracks", "/overview", "/"} {
			body, _ := page(t, r, path)
			s.seen.WriteString(body)
		}
	}
}

// check fails for every secret that shows.
func (s *secrets) check(t *testing.T) {
	t.Helper()
	for what, text := range map[string]string{"the logs": s.log.String(), "pages and answers": s.seen.String()} {
		for _, secret := range s.planted {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a secret in %s: …%s…", what, text[max(0, at-300):min(len(text), at+100)])
			}
		}
		if len(text) < 1000 {
			t.Errorf("there is hardly anything in %s", what)
		}
	}
}

// TestNoCredentialOfPeersShows plants markers in what relays show each other and are given for it: the token file, tokens
// beside and inside of addresses, in a list of peers and in its address, in files that are not as they should be.
func TestNoCredentialOfPeersShows(t *testing.T) {
	s := newSecrets()
	k, keys := newKey(t, "k")
	good := sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All})
	s.planted = append(s.planted, good[:60], good[len(good)-40:])
	hub := deciding(t, serve.Config{Keys: keys, Logger: s.loud}, func(c *Config) { c.Logger = s.loud })
	list := func(_ http.ResponseWriter, _ *http.Request) {}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { list(w, r) }))
	defer api.Close()
	file := filepath.Join(t.TempDir(), "cluster.jwt")
	if err := os.WriteFile(file, []byte("MARKfileMARK\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := cluster.OpenTokenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := peerlist.ParseSource(strings.Replace(api.URL, "http://", "http://MARKuser:MARKpass@", 1) + "/peers?key=MARKkeyMARK")
	if err != nil {
		t.Fatal(err)
	}
	list = status(200, fmt.Sprintf(`["moqt://%s/c?jwt=%s",{"url":"moqt://%s/d","token":"MARKlistMARK"},{"url":"moqt://127.0.0.1:1/?jwt=MARKdeadMARK"}]`, hub.Addr(), good, hub.Addr()))
	spoke := start(t, func(c *Config) {
		c.Internal, c.Logger, c.PeerList, c.Cluster.Token = "127.0.0.1:0", s.loud, source, tokens
		c.Peers = peers(t, "moqt://"+hub.Addr()+"/a?jwt="+good,
			map[string]any{"url": "moqt://" + hub.Addr() + "/b"}, // with the token of the file
			map[string]any{"url": "https://" + hub.Addr() + "/e", "token": "MARKentryMARK"})
	})
	linked := func() (n int) {
		for _, l := range hub.sessions.list() {
			if l.path == "/a" || l.path == "/c" {
				n++
			}
		}
		return n
	}
	waitFor(t, 20*time.Second, "the links with good tokens", func() bool { return linked() == 2 })
	waitFor(t, 20*time.Second, "refusals of the others", func() bool { return strings.Count(s.log.String(), "session refused") >= 3 })
	s.pages(t, hub, spoke)
	for _, bad := range []http.HandlerFunc{
		status(403, "MARKbodyMARK"), status(200, `["MARKnot a url"`), status(200, `[{"url":"moqt://x/?jwt=MARK","cosst":1}]`),
		status(200, `[{"url":"moqt://x/","token":"MARK","cost":-1}]`), status(200, `["ftp://MARK:MARK@h/"]`),
	} {
		list = bad
		before := len(s.log.String())
		other := start(t, func(c *Config) { c.Internal, c.Logger, c.PeerList = "127.0.0.1:0", s.loud, source })
		waitFor(t, 20*time.Second, "the bad list to be noticed", func() bool { return strings.Contains(s.log.String()[before:], "list") })
		s.pages(t, other)
	}
	s.check(t)
}

// TestNoLANSecretShows: neither the secret of a LAN nor the proofs of it that peers dial with.
func TestNoLANSecretShows(t *testing.T) {
	s := newSecrets()
	key := strings.Repeat("c3", 32)
	raw, err := hex.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	s.planted = append(s.planted, key, strings.ToUpper(key), base64.StdEncoding.EncodeToString(raw)[:40], base64.RawURLEncoding.EncodeToString(raw)[:40], string(raw))
	secret, err := lan.ParseSecret(key)
	if err != nil {
		t.Fatal(err)
	}
	run := func() *Relay {
		return start(t, func(c *Config) {
			c.LAN = LAN{Enabled: true, App: "relay-test-secret", Secret: secret}
			c.Internal, c.Web.HTTP, c.Logger = "127.0.0.1:0", "127.0.0.1:0", s.loud
			c.Dial.TLS = tlsconf.ClientConfig{}
		})
	}
	a, b := run(), run()
	waitFor(t, 20*time.Second, "a session", func() bool { return linkedByLAN(a, b) })
	for _, carrier := range carriers {
		if got := knock(t, a, carrier, "/.cluster/MARKproofMARK?jwt=MARK"); got.code == 0 {
			t.Errorf("%s: a wrong proof is let in", carrier)
		} else {
			s.seen.WriteString(got.reason)
		}
	}
	s.pages(t, a, b)
	s.check(t)
	if found := regexp.MustCompile(`\.cluster/[0-9A-Za-z_-]+`).FindString(s.log.String() + s.seen.String()); found != "" {
		t.Errorf("a proof shows: %s", found)
	}
}

// TestNoHeaderShows plants markers where browsers and proxies carry credentials, in the names of a path, and in keys.
func TestNoHeaderShows(t *testing.T) {
	s := newSecrets()
	shared, err := token.Generate("HS256", "shared")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := token.NewSet(shared)
	if err != nil {
		t.Fatal(err)
	}
	plain := shared.Encode()
	if data, err := base64.RawURLEncoding.DecodeString(plain); err == nil {
		plain = string(data)
	}
	material := regexp.MustCompile(`"k":"([^"]+)"`).FindStringSubmatch(plain)
	if material == nil {
		t.Fatalf("no secret in %q", plain)
	}
	s.planted = append(s.planted, material[1], shared.Encode()[:60])
	jwks := httptest.NewServer(status(500, "MARKkeysMARK"))
	defer jwks.Close()
	far, err := token.NewRemote(strings.Replace(jwks.URL, "http://", "http://MARKuser:MARKpass@", 1)+"/keys?key=MARKkeyMARK", nil, s.loud)
	if err != nil {
		t.Fatal(err)
	}
	var relays []*Relay
	for _, from := range []token.Keys{keys, far} {
		relays = append(relays, deciding(t, serve.Config{Keys: from, PublicSubscribe: []string{"open/**"}, Logger: s.loud}, func(c *Config) { c.Logger = s.loud }))
	}
	signed := sign(t, shared, token.Claims{Publish: paths.All, Subscribe: paths.All})
	s.planted = append(s.planted, signed[:60], signed[len(signed)-40:])
	for _, r := range relays {
		for _, target := range []string{"/announced/open", "/announced/closed", "/fetch/open/x/video?group=bad", "/announced/a?jwt=" + signed, "/announced/a?jwt=" + signed + "x", "/health", "/nothing"} {
			for _, verb := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
				s.ask(t, verb, "http://"+r.web.addr("web")+target)
			}
		}
		for _, carrier := range sessionCarriers {
			s.seen.WriteString(knock(t, r, carrier, "/a?jwt="+signed+"x&other=MARKotherMARK").reason)
		}
	}
	s.pages(t, relays...)
	s.check(t)
}

// ask sends a request with credentials in its headers.
func (s *secrets) ask(t *testing.T, verb, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, verb, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer MARKbearerMARK")
	req.Header.Set("Proxy-Authorization", "Basic MARKproxyMARK")
	req.Header.Set("Cookie", "session=MARKcookieMARK")
	req.Header.Set("Referer", "https://MARKuser:MARKpass@example.com/?jwt=MARK")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	s.seen.Write(body)
	fmt.Fprint(&s.seen, res.Header)
}
