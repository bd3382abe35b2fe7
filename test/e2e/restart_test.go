//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestKilledRelayIsNoticed: the keys for stateless resets come from the key of the certificate, so the peers of a relay
// that was killed and started again need not wait for their idle timeout. It is a minute here, so that the slowest machine
// has started the relay long before. A relay with a generated certificate is the control: its peers have to wait.
func TestKilledRelayIsNoticed(t *testing.T) {
	const early = 40 * time.Second
	for _, tt := range []struct {
		name  string
		files bool
		idle  time.Duration
		// least and most is how long it may take from the kill until the link is there again.
		least, most time.Duration
	}{
		{"certificate from files", true, time.Minute, 0, early},
		{"generated", false, 10 * time.Second, 9 * time.Second, early},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.files {
				dir := t.TempDir()
				cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
				drive.NewAuthority(t, dir).Issue(t, "hub", cert, key)
				t.Setenv("MOQ_LISTEN_TLS_CERT", cert)
				t.Setenv("MOQ_LISTEN_TLS_KEY", key)
			}
			t.Setenv("MOQ_QUIC_IDLE_TIMEOUT", tt.idle.String())
			hub := drive.StartRelay(t, "hub")
			spoke := drive.StartRelayWith(t, "spoke", func(drive.Relay) string {
				return "[connect.tls]\ninsecure = true\n[cluster]\nconnect = \"" + hub.MOQT() + "\"\n"
			})
			drive.WaitFor(t, patience, "linked", func() bool { return connected(t, spoke) == 1 })
			first := cluster(t, spoke).Peers[0].Sessions
			time.Sleep(time.Second) // the link is idle: nothing but pings
			killed := time.Now()
			hub.Kill()
			hub.Restart(t)
			// The spoke knocks every second, which the new hub answers with a reset; then comes the pause.
			drive.WaitFor(t, 2*early, "linked again", func() bool {
				p := cluster(t, spoke).Peers[0]
				return p.State == "connected" && !slices.Equal(p.Sessions, first)
			})
			if took := time.Since(killed); took < tt.least || took > tt.most {
				t.Errorf("linked again after %v, not within %v to %v", took, tt.least, tt.most)
			}
		})
	}
}
