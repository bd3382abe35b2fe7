//go:build drill && linux

package longlink

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/internal/linklab"
)

// TestRelays links two relays over 100 ms with one packet in a thousand lost, and plays a broadcast of 85 Mbit/s across: over
// WebSocket with the settings as they are by default, it must get through but for what is too old while the link finds its
// rate. The link over QUIC is the control.
func TestRelays(t *testing.T) {
	for _, scheme := range []string{"ws", "https"} {
		t.Run(scheme, func(t *testing.T) {
			l := lab(t, link(100*time.Millisecond, 0.001))
			relay(t, l.A, "origin", "")
			relay(t, l.B, "edge", fmt.Sprintf("connect = [%q]\n", scheme+"://"+l.A.IP+"/"))
			const rate, size, seconds = 85, 125_000, 15
			inside(t, l.A, "pub", "pub", "http://127.0.0.1/", "bulk", "--rate", fmt.Sprint(rate), "--size", fmt.Sprint(size)).
				Expect(t, "published", 15*time.Second)
			sub := inside(t, l.B, "sub", "sub", "http://127.0.0.1/", "bulk", "--seconds", fmt.Sprint(seconds), "--max-age", "3s")
			s := sub.Expect(t, "summary", time.Minute)
			frames, _ := s["frames"].(float64)
			t.Logf("RESULT relays %s: %v of %d frames, %v groups cut", scheme, frames, rate*seconds, s["cut"])
			if fills := frames >= 0.9*rate*seconds; fills != (scheme == "ws") {
				t.Errorf("fills the link: %v", fills)
			}
		})
	}
}

// relay starts a relay on a host, open to everybody; lines go below [cluster].
func relay(t *testing.T, h *linklab.Host, name, lines string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".toml")
	text := `drain_timeout = "0s"
[listen]
tls.generate = ["localhost"]
[web.http]
listen = "[::]:80"
[auth]
public = "**"
[connect.tls]
insecure = true
[cluster]
` + lines
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inside(t, h, name, "relay", file)
	time.Sleep(time.Second) // the tools try again while nobody listens, peers do so too
}

// inside starts the binary on a host.
func inside(t *testing.T, h *linklab.Host, name string, args ...string) *drive.Process {
	t.Helper()
	return drive.Start(t, name, "ip", append([]string{"netns", "exec", h.Name, drive.Env(t, "MOQMESH_BIN")}, args...)...)
}
