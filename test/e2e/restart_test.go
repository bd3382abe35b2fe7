//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestKilledRelayIsNoticed: the keys for stateless resets come from the key of the certificate, so the peers of a relay
// that was killed and started again need not wait for their idle timeout (20 s here). A relay with a generated certificate
// is the control: its peers have to wait.
func TestKilledRelayIsNoticed(t *testing.T) {
	for name, files := range map[string]bool{"certificate from files": true, "generated": false} {
		t.Run(name, func(t *testing.T) {
			if files {
				dir := t.TempDir()
				cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
				drive.NewAuthority(t, dir).Issue(t, "hub", cert, key)
				t.Setenv("MOQ_LISTEN_TLS_CERT", cert)
				t.Setenv("MOQ_LISTEN_TLS_KEY", key)
			}
			t.Setenv("MOQ_QUIC_IDLE_TIMEOUT", "20s")
			hub := drive.StartRelay(t, "hub")
			spoke := drive.StartRelayWith(t, "spoke", func(drive.Relay) string {
				return "[connect.tls]\ninsecure = true\n[cluster]\nconnect = \"" + hub.MOQT() + "\"\n"
			})
			drive.WaitFor(t, 10*time.Second, "linked", func() bool { return connected(t, spoke) == 1 })
			first := cluster(t, spoke).Peers[0].Sessions[0]
			time.Sleep(time.Second) // the link is idle: nothing but pings
			hub.Kill()
			killed := time.Now()
			hub.Restart(t)
			drive.WaitFor(t, 45*time.Second, "linked again", func() bool {
				p := cluster(t, spoke).Peers[0]
				return p.State == "connected" && p.Sessions[0] != first
			})
			// The spoke knocks every second, which the new hub answers with a reset; then comes the pause.
			if took := time.Since(killed); files != (took < 12*time.Second) {
				t.Errorf("linked again after %v", took)
			}
		})
	}
}
