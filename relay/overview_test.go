package relay

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/route"
)

// page fetches a page of the internal listener.
func page(t *testing.T, r *Relay, path string) (string, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.web.addr("internal")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", path, res.StatusCode, err, body)
	}
	return string(body), res
}

// TestOverview: the page and its JSON show a link with its prices, a peer that cannot be reached and a route. A name
// that means harm in HTML is escaped, and there is no secret.
func TestOverview(t *testing.T) {
	hub := start(t, func(c *Config) { c.Internal = "127.0.0.1:0" })
	spoke := start(t, func(c *Config) {
		c.Internal, c.Node = "127.0.0.1:0", "https://spoke.example/"
		c.Peers = peers(t, hub.url()+"?cost=7", "http://127.0.0.1:1/?jwt=S3CRET")
	})
	waitFor(t, 5*time.Second, "linked", func() bool { return hub.sessions.len() == 1 })
	const evil = `<script>alert(1)</script>`
	var cfg client.Config
	cfg.TLS.Insecure = true
	pub, err := client.Dial(t.Context(), hub.url(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	b, err := pub.Publish(evil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 5*time.Second, "route known, dial failed", func() bool {
		o := spoke.overview()
		return len(o.Routes) == 1 && (o.Peers[0].LastError != "" || o.Peers[1].LastError != "")
	})
	var o admin.Overview
	text, _ := page(t, spoke, "/overview")
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	var up, down admin.Peer
	for _, p := range o.Peers {
		if p.State == string(cluster.StateConnected) {
			up = p
		} else {
			down = p
		}
	}
	if len(up.Links) != 1 || up.Links[0].Cost != 7 || up.Links[0].PeerCost != 1 || up.Links[0].Version != "moq-lite-06" ||
		up.Links[0].Hop != uint64(hub.Hop()) || up.Links[0].RTT <= 0 || up.Source != "connect" {
		t.Errorf("link %+v", up)
	}
	if down.LastError == "" || down.Attempts == 0 || len(down.Links) != 0 || down.Key != "http://127.0.0.1:1/" {
		t.Errorf("peer %+v", down)
	}
	if r := o.Routes[0]; r.Prefix != evil || r.Cost != 8 || len(r.Hops) != 2 || !r.Live {
		t.Errorf("route %+v", r)
	}
	if sent := hub.overview(); len(sent.Sessions) != 2 || sent.Sessions[1].Version != "moq-lite-06" || sent.Sessions[0].Hop != uint64(spoke.Hop()) {
		t.Errorf("sessions %+v", sent.Sessions)
	}
	html, res := page(t, spoke, "/")
	for _, want := range []string{"https://spoke.example/", "moq-lite-06", "7 / 1", "http://127.0.0.1:1/", "&lt;script&gt;alert", `http-equiv="refresh"`, `name="viewport"`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	cluster, _ := page(t, spoke, "/cluster")
	for _, text := range []string{html, text, cluster} {
		if strings.Contains(text, "S3CRET") || strings.Contains(html, "<script") {
			t.Errorf("a secret, or a script: %s", text)
		}
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "script") {
		t.Errorf("policy %q", csp)
	}
	for _, path := range []string{"/routes", "/tracks", "/sessions", "/nodes"} {
		if text, _ := page(t, hub, path); !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", path, text)
		}
	}
}
