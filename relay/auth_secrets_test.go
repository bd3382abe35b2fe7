package relay

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth/remote"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/paths"
)

// TestNoSecretShows plants markers in every credential, and looks at logs of the loudest level, pages and metrics after
// success, refusal, outage and nonsense (faults 6, "Secrets on show").
func TestNoSecretShows(t *testing.T) {
	log := new(logBuffer)
	loud := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}))
	k, keys := newKey(t, "k")
	good := sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All})
	const bad = "MARKtokenMARK"
	s := newAuthServer(t)
	local := deciding(t, serve.Config{Keys: keys, Logger: loud}, func(c *Config) { c.Logger = loud })
	asking := start(t, func(c *Config) {
		address := strings.Replace(s.url, "http://", "http://MARKuser:MARKpass@", 1) + "/?key=MARKkeyMARK"
		client, err := remote.New(remote.Config{URL: address, Logger: loud})
		if err != nil {
			t.Fatal(err)
		}
		c.Auth, c.Web.HTTP, c.Internal, c.Logger = client, "127.0.0.1:0", "127.0.0.1:0", loud
	})
	down := start(t, func(c *Config) {
		client, err := remote.New(remote.Config{URL: "http://127.0.0.1:1/?key=MARKkeyMARK", Logger: loud})
		if err != nil {
			t.Fatal(err)
		}
		c.Auth, c.Web.HTTP, c.Internal, c.Logger = client, "127.0.0.1:0", "127.0.0.1:0", loud
	})
	linked := start(t, func(c *Config) {
		c.Peers = peers(t, "moqt://"+local.Addr()+"/?jwt="+good, "moqt://"+local.Addr()+"/x?jwt="+bad, "moqt://127.0.0.1:1/?jwt="+bad)
		c.Internal, c.Logger = "127.0.0.1:0", loud
	})
	var seen strings.Builder
	visit := func(r *Relay, path string) {
		for _, carrier := range carriers {
			if carrier == "http" {
				_, body := get(t, where(r, carrier, path))
				_, more := get(t, strings.Replace(where(r, carrier, path), "/announced/", "/fetch/x/", 1)+"&group=bad")
				seen.WriteString(body + more)
				continue
			}
			c, err := client.Dial(t.Context(), where(r, carrier, path), trusting)
			if err != nil {
				seen.WriteString(err.Error())
				continue
			}
			out := settled(t, c)
			seen.WriteString(out.reason)
			if out.code == 0 && r != asking {
				publish(t, c, "cam")
				waitFor(t, 5*time.Second, "the route", func() bool { return names(r) != "" })
			}
			c.Close()
		}
	}
	visit(local, "/a?jwt="+good)
	visit(local, "/a?jwt="+bad)
	visit(local, "/a?jwt="+good+"x")
	visit(local, "/.cluster/MARKlanMARK?jwt="+bad)
	for _, answer := range []http.HandlerFunc{
		granting(time.Minute, `,"revalidate":0.2`), status(403, "not "+bad+" nor "+good), status(500, bad), status(200, bad), status(200, `{"publish":"`+bad+`"}`),
	} {
		s.set(answer)
		visit(asking, "/a/b?jwt="+bad)
		visit(asking, "/a/b?x="+good)
	}
	visit(down, "/a/b?jwt="+bad)
	waitFor(t, 5*time.Second, "the link", func() bool { return strings.Contains(log.String(), "dial") })
	for _, r := range []*Relay{local, asking, down, linked} {
		for _, path := range []string{"/nodes", "/sessions", "/metrics", "/cluster", "/routes", "/tracks", "/overview", "/"} {
			body, _ := page(t, r, path)
			seen.WriteString(body)
		}
	}
	for what, text := range map[string]string{"the logs": log.String(), "pages and answers": seen.String()} {
		for _, secret := range []string{"MARK", good[:60], good[len(good)-40:]} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a secret in %s: …%s…", what, text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
	if len(log.String()) < 1000 || len(seen.String()) < 1000 {
		t.Error("nothing was looked at")
	}
}
