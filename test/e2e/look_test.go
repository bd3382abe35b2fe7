//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestLook: the page, status and top of a relay that serves across a link show what goes on.
func TestLook(t *testing.T) {
	relays := drive.Chain(t, 2)
	pub := drive.Start(t, "pub", binary(t), "pub", relays[0].MOQT(), "demo", "--hash", relays[0].Hash)
	pub.Expect(t, "published", 10*time.Second)
	sub := drive.Start(t, "sub", binary(t), "sub", relays[1].MOQT(), "demo", "--hash", relays[1].Hash, "--seconds", "30")
	sub.Expect(t, "second", 10*time.Second)
	internal := relays[1].InternalURL("/")
	page := drive.Get(t, internal)
	for _, part := range []string{"demo", "connected", "moq-lite-06", relays[0].HTTPS()} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	status := drive.Start(t, "status", binary(t), "status", internal)
	if code := status.Wait(t, 5*time.Second); code != 0 {
		t.Errorf("status exits with %d: %s", code, status.Stderr())
	}
	for _, part := range []string{"demo", "connected", "BROADCAST", "PEER"} {
		if !strings.Contains(status.Stdout(), part) {
			t.Errorf("status lacks %q: %s", part, status.Stdout())
		}
	}
	top := drive.Start(t, "top", binary(t), "top", internal, "--every", "500ms")
	drive.WaitFor(t, 5*time.Second, "rates", func() bool { return strings.Contains(top.Stdout(), "KiB/s") })
	top.Signal(t, syscall.SIGINT)
	if code := top.Wait(t, 2*time.Second); code != 0 {
		t.Errorf("top exits with %d: %s", code, top.Stderr())
	}
	nobody := drive.Start(t, "status", binary(t), "status", "127.0.0.1:1")
	if code := nobody.Wait(t, 5*time.Second); code != 1 || !strings.Contains(nobody.Stderr(), "no relay answers") {
		t.Errorf("status without a relay: %d, %s", code, nobody.Stderr())
	}
}

// TestCheck: a file is checked as the relay would, nothing is bound, and a fault makes the exit status 1.
func TestCheck(t *testing.T) {
	running := drive.StartRelay(t, "relay") // holds its port
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	drive.NewAuthority(t, dir).Issue(t, "relay", cert, key)
	base := fmt.Sprintf("[auth]\npublic = \"**\"\n[listen]\nbind = \"127.0.0.1:%d\"\n", running.Port)
	files := base + fmt.Sprintf("tls.cert = %q\ntls.key = %q\n", cert, key)
	tests := map[string]struct {
		text string
		code int
		want string // on either stream
	}{
		"good":           {files + "[cluster]\nconnect = \"https://b.example/?jwt=S3CRET\"\n", 0, "ok\n"},
		"warning":        {files + "[quic]\nkeep_alive = \"20s\"\n", 0, "warning: "},
		"bad key":        {files + "[cluster]\nconect = \"x\"\n", 1, ":8: cluster.conect"},
		"other key file": {base + fmt.Sprintf("tls.cert = %q\ntls.key = %q\n", cert, cert), 1, "listen.tls.cert: "},
		"no such root":   {files + "[connect]\ntls.root = \"/nowhere.pem\"\n", 1, "/nowhere.pem"},
		"bad peer list":  {files + fmt.Sprintf("[cluster]\nconnect_api = %q\n", cert), 0, "cannot be used"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := drive.Start(t, "check", binary(t), "check", write(t, tt.text))
			code := p.Wait(t, 5*time.Second)
			out := p.Stdout() + p.Stderr()
			if code != tt.code || !strings.Contains(out, tt.want) || strings.Contains(out, "S3CRET") {
				t.Errorf("exit status %d: %s", code, out)
			}
		})
	}
}
