//go:build interop

package interop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// asking runs a relay that asks an auth server.
func asking(t *testing.T, answer http.HandlerFunc) drive.Relay {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	r := drive.Relay{Host: "127.0.0.1", Port: drive.FreePort(t), Web: drive.FreePort(t), Internal: drive.FreePort(t)}
	file := filepath.Join(t.TempDir(), "relay.toml")
	text := fmt.Sprintf(`listen.bind = "127.0.0.1:%d"
listen.tls.generate = ["localhost", "127.0.0.1"]
web.http.listen = "127.0.0.1:%d"
internal.listen = "127.0.0.1:%d"
auth.url = %q
`, r.Port, r.Web, r.Internal, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Process = drive.Start(t, "relay", drive.Env(t, "MOQMESH_BIN"), "relay", file)
	r.Hash = strings.TrimSpace(drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", r.Web)))
	return r
}

// TestMount plays what one client publishes at a mount's target to clients that know it by the name of the mount. The answer
// is as the Rust auth library writes it.
func TestMount(t *testing.T) {
	r := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"publish":["**"],"subscribe":["**"],"mounts":{"svc":"fleet/p1"}}`)
	})
	pub := rustQUIC.run(t, r, "pub", "fleet/p1/cam", "video")
	pub.Expect(t, "published", 15*time.Second)
	for _, v := range everybody {
		t.Run(v.String(), func(t *testing.T) {
			checkSummary(t, v.run(t, r, "sub", "svc/cam", "video", "--seconds", "3"), 60)
		})
	}
	watch := js05.run(t, r, "announced", "svc", "--seconds", "20")
	watch.Expect(t, "announced", 10*time.Second)
	pub.Stop()
	watch.Expect(t, "withdrawn", 10*time.Second)
}
