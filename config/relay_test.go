package config_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/config"
	"github.com/moqmesh/moqmesh/internal/backoff"
)

// TestRelayGetsTheSettings sets what a relay cannot do without noticing away from its default and looks where it ends up.
func TestRelayGetsTheSettings(t *testing.T) {
	file := `[listen]
bind = "127.0.0.1:0"
tls.generate = ["localhost"]
version = ["moq-lite-05"]
[quic]
idle_timeout = "7s"
[connect.backoff]
initial = "2s"
multiplier = 3
max = "7s"
timeout = "20s"
[cluster]
id = 77
max_hops = 9
hedge = "700ms"
tier = "mesh"
connect = ["https://peer.example/?cost=3"]
[internal]
listen = "127.0.0.1:9"
[limits]
announcements = 5
announce_rate = 6
[cache]
capacity = "1MiB"
duration = "12s"
[auth]
public = "**"
`
	c, err := config.Load(config.Input{Args: []string{"relay.toml"}, ReadFile: func(string) ([]byte, error) { return []byte(file), nil }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Relay(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	pauses := backoff.Policy{Initial: 2 * time.Second, Multiplier: 3, Max: 30 * time.Second, Early: 7 * time.Second, For: 20 * time.Second}
	for what, ok := range map[string]bool{
		"id":            r.Hop == 77,
		"max_hops":      r.MaxHops == 9,
		"hedge":         r.Hedge == 700*time.Millisecond,
		"tier":          r.PeerTier == "mesh",
		"connect":       len(r.Peers) == 1,
		"internal":      r.Internal == "127.0.0.1:9",
		"capacity":      r.Cache.Capacity == 1<<20,
		"duration":      r.Cache.Idle == 12*time.Second,
		"versions":      len(r.Versions) == 1,
		"idle (accept)": r.Listen.QUIC.IdleTimeout == 7*time.Second,
		"idle (dial)":   r.Dial.QUIC.IdleTimeout == 7*time.Second,
		"backoff":       r.Cluster.Backoff == pauses,
		"auth":          r.Auth != nil,
		"announcements": r.Limits.Announcements == 5,
		"announce_rate": r.AnnounceRate == 6,
	} {
		if !ok {
			t.Errorf("%s does not reach the relay", what)
		}
	}
}
