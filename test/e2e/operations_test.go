//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestOutOfDescriptors (faults 10): with TCP clients that take every descriptor, QUIC goes on, there is one log line and a
// metric, and TCP is accepted again at once when they leave. A peer list and a certificate that change meanwhile
// are read: TCP clients do not get the last descriptors.
func TestOutOfDescriptors(t *testing.T) {
	port, web, internal := drive.FreePort(t), drive.FreePort(t), drive.FreePort(t)
	dir := t.TempDir()
	cert, key, list := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "peers.json")
	ca := drive.NewAuthority(t, dir)
	ca.Issue(t, "localhost", cert, key)
	put := func(peers string) {
		t.Helper()
		if err := os.WriteFile(list, []byte(peers), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(`["https://127.0.0.1:1/"]`)
	file := write(t, fmt.Sprintf("drain_timeout = \"0s\"\n[listen]\nbind = \"127.0.0.1:%d\"\ntls.cert = %q\ntls.key = %q\n[web]\nhttp.listen = \"127.0.0.1:%d\"\n[internal]\nlisten = \"127.0.0.1:%d\"\n[auth]\npublic = \"**\"\n[cluster]\nconnect_api = %q\n", port, cert, key, web, internal, list))
	relay := drive.Start(t, "relay", "sh", "-c", `ulimit -n 64; exec "$0" relay "$1"`, binary(t), file)
	hash := drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", web))
	url := fmt.Sprintf("moqt://127.0.0.1:%d/", port)
	drive.Start(t, "pub", binary(t), "pub", url, "demo", "--hash", hash)
	sub := drive.Start(t, "sub", binary(t), "sub", url, "demo", "--hash", hash, "--seconds", "6")
	sub.Expect(t, "second", 10*time.Second)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range 80 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", web), time.Second)
		if err != nil {
			break
		}
		open = append(open, c)
	}
	drive.WaitFor(t, 5*time.Second, "a log line", func() bool {
		return strings.Contains(relay.Stderr(), "no TCP connection can be accepted")
	})
	ca.Issue(t, "localhost", cert, key)
	put(`["https://127.0.0.1:2/"]`)
	drive.WaitFor(t, 10*time.Second, "the new list and the new certificate", func() bool {
		return strings.Count(relay.Stderr(), "peer list accepted") == 2 && strings.Contains(relay.Stderr(), "certificates changed")
	})
	// A session that comes now needs no descriptor.
	late := drive.Start(t, "late", binary(t), "sub", url, "demo", "--insecure", "--seconds", "1")
	if summary := late.Expect(t, "summary", 10*time.Second); summary["ok"] != true {
		t.Errorf("a viewer who comes now: %v", summary)
	}
	for _, c := range open {
		_ = c.Close()
	}
	open = nil
	begin := time.Now()
	drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/health", web))
	if took := time.Since(begin); took > 1500*time.Millisecond {
		t.Errorf("accepting again took %v", took)
	}
	if drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", web)) == hash {
		t.Error("the old certificate is shown")
	}
	metrics := drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", internal))
	if !strings.Contains(metrics, `moq_relay_accept_failures_total{class="exhausted",listener="web"}`) {
		t.Errorf("no metric: %s", metrics)
	}
	if n := strings.Count(relay.Stderr(), "no TCP connection can be accepted"); n != 1 {
		t.Errorf("%d log lines: %s", n, relay.Stderr())
	}
	if summary := sub.Expect(t, "summary", 10*time.Second); summary["ok"] != true {
		t.Errorf("the viewer missed something: %v", summary)
	}
}

// TestSignalDuringStart (faults 10): SIGTERM at any moment of the start ends the relay in order.
func TestSignalDuringStart(t *testing.T) {
	for delay := range 12 {
		port := drive.FreePort(t)
		file := write(t, fmt.Sprintf("[listen]\nbind = \"127.0.0.1:%d\"\ntls.generate = \"localhost\"\n[auth]\npublic = \"**\"\n", port))
		relay := drive.Start(t, "relay", binary(t), "relay", file)
		time.Sleep(time.Duration(delay) * 10 * time.Millisecond)
		relay.Signal(t, syscall.SIGTERM)
		// Before the program has begun, the signal does what it does to any program.
		if code := relay.Wait(t, 3*time.Second); code != 0 && code != -1 {
			t.Errorf("after %d0 ms: exit status %d: %s", delay, code, relay.Stderr())
		}
	}
}

// TestControlPlaneDown (faults 10): with list and token endpoints gone the relay is healthy and serves.
func TestControlPlaneDown(t *testing.T) {
	hub := drive.StartRelay(t, "hub")
	r := drive.StartRelayWith(t, "relay", func(drive.Relay) string {
		return fmt.Sprintf("[connect.tls]\nfingerprint = %q\n[cluster]\nconnect = %q\nconnect_api = \"http://127.0.0.1:1/\"\n", hub.Hash, hub.HTTPS())
	})
	drive.WaitFor(t, 5*time.Second, "linked", func() bool { return connected(t, r) == 1 })
	drive.Start(t, "pub", binary(t), "pub", hub.MOQT(), "demo", "--hash", hub.Hash)
	sub := drive.Start(t, "sub", binary(t), "sub", r.MOQT(), "demo", "--hash", r.Hash, "--seconds", "4")
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got := drive.Get(t, r.InternalURL("/health")); got != "ok\n" {
			t.Fatalf("health is %q", got)
		}
	}
	if summary := sub.Expect(t, "summary", 10*time.Second); summary["ok"] != true {
		t.Errorf("summary %v", summary)
	}
	if n := strings.Count(r.Stderr(), "peer list cannot be used"); n != 1 {
		t.Errorf("%d warnings about the list: %s", n, r.Stderr())
	}
}
