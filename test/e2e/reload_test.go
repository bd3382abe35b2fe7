//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestReload: certificates and certificate authorities are read again while the relays run. A viewer across the link
// notices nothing of a new certificate; a link that must be made anew follows the file of authorities.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("second"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, second := drive.NewAuthority(t, dir), drive.NewAuthority(t, at("second"))
	trusted := at("trusted.pem")
	trust := func(a *drive.Authority) {
		t.Helper()
		text, err := os.ReadFile(a.File)
		if err == nil {
			err = os.WriteFile(trusted+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(trusted+".new", trusted)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trust(first)
	first.Issue(t, "hub", at("cert.pem"), at("key.pem"))
	t.Setenv("MOQ_LISTEN_TLS_CERT", at("cert.pem"))
	t.Setenv("MOQ_LISTEN_TLS_KEY", at("key.pem"))
	hub := drive.StartRelay(t, "hub")
	spoke := drive.StartRelayWith(t, "spoke", func(drive.Relay) string {
		return fmt.Sprintf("[connect.tls]\nroot = %q\n[cluster]\nconnect = %q\n", trusted, hub.HTTPS())
	})
	drive.WaitFor(t, 10*time.Second, "linked", func() bool { return connected(t, spoke) == 1 })
	drive.Start(t, "pub", binary(t), "pub", hub.MOQT(), "demo", "--hash", hub.Hash)
	sub := drive.Start(t, "sub", binary(t), "sub", spoke.MOQT(), "demo", "--hash", spoke.Hash, "--seconds", "8")
	sub.Expect(t, "second", 10*time.Second)

	hash := second.Issue(t, "hub", at("cert.pem"), at("key.pem"))
	drive.WaitFor(t, 5*time.Second, "the new certificate is served", func() bool {
		return strings.TrimSpace(drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", hub.Web))) == hash
	})
	other := drive.Start(t, "other", binary(t), "sub", hub.MOQT(), "demo", "--hash", hash, "--seconds", "2")
	if summary := other.Expect(t, "summary", 15*time.Second); summary["ok"] != true {
		t.Errorf("a viewer who trusts the new certificate: %v", summary)
	}
	if summary := sub.Expect(t, "summary", 20*time.Second); summary["ok"] != true {
		t.Errorf("the viewer across the link missed something: %v", summary)
	}

	hub.Kill()
	hub.Restart(t)
	drive.WaitFor(t, 20*time.Second, "the new certificate is not trusted", func() bool {
		return strings.Contains(cluster(t, spoke).Peers[0].LastError, "certificate signed by unknown authority")
	})
	trust(second)
	drive.WaitFor(t, 15*time.Second, "linked again", func() bool { return connected(t, spoke) == 1 })
	if strings.Count(spoke.Stderr(), "connect.tls.root read again") != 1 {
		t.Errorf("not said once that the authorities were read again: %s", spoke.Stderr())
	}
}
