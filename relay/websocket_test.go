package relay

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Two relays are peers over WebSocket, with TLS and without: what one has, viewers of the other get, both ways.
func TestWebSocketPeers(t *testing.T) {
	for _, scheme := range []string{"ws", "wss"} {
		t.Run(scheme, func(t *testing.T) {
			a := start(t, func(c *Config) {
				c.Web.HTTPS, c.Web.Certificates = "127.0.0.1:0", tlsconf.Config{Generate: []string{"localhost"}}
				c.Congestion = "reno"
			})
			at := map[string]string{"ws": a.web.servers[0].ln.Addr().String(), "wss": a.web.servers[1].ln.Addr().String()}[scheme]
			b := start(t, func(c *Config) {
				c.Peers, c.Congestion, c.Hedge = peers(t, scheme+"://"+at+"/?cost=3"), "reno", 500*time.Millisecond
			})
			for _, pair := range [][2]*Relay{{a, b}, {b, a}} {
				from, to := pair[0], pair[1]
				name := map[*Relay]string{a: "of-a", b: "of-b"}[from]
				track := publish(t, dial(t, from, "quic", "/"), name)
				g, err := track.Group(0)
				if err != nil {
					t.Fatal(err)
				}
				payload := bytes.Repeat([]byte(name), 100_000)
				if err := g.WriteFrame(0, payload); err != nil {
					t.Fatal(err)
				}
				g.Finish()
				waitFor(t, 10*time.Second, "the route", func() bool { return strings.Contains(names(to), name) })
				if got := firstFrame(t, dial(t, to, "websocket", "/"), name); !bytes.Equal(got, payload) {
					t.Errorf("%d bytes of %d, or others", len(got), len(payload))
				}
			}
			for _, l := range b.sessions.list() {
				if l.dialed && (l.kind != "websocket" || l.alpn != "moq-lite-06") {
					t.Errorf("dialed over %s as %s", l.kind, l.alpn)
				}
			}
		})
	}
}

// firstFrame reads a frame of the newest group of a broadcast's video.
func firstFrame(t *testing.T, c *client.Client, name string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := c.Subscribe(ctx, name, "video", client.Subscription{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g, err := r.NextGroup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f, err := g.ReadFrame(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return f.Payload
}

// An accepted peer gets the congestion control of those that are dialed; if the system does not have it, that is said once.
func TestCongestionOfAcceptedPeers(t *testing.T) {
	ca := newAuthority(t)
	log := new(logBuffer)
	r := deciding(t, serve.Config{MTLSPublish: []string{"**"}, MTLSSubscribe: []string{"**"}, MTLSPeer: true}, func(c *Config) {
		c.ClientRoots, c.Congestion = ca.roots, "no-such-thing"
		secureWeb(c, ca)
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	for range 2 {
		c := dialWith(t, r, "websocket", "/", with(ca.client(t, "relay.example", time.Now().Add(time.Hour))))
		if got := settled(t, c); got.code != 0 {
			t.Fatal(got)
		}
	}
	if n := strings.Count(log.String(), `wanted=no-such-thing`); n != 1 {
		t.Errorf("said %d times\n%s", n, log)
	}
}
