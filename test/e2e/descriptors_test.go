//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite/message"
)

// TestOutOfDescriptors has clients take every descriptor that the relay may open (faults 10): QUIC goes on, the log has a
// line, and TCP is served again as soon as they leave.
func TestOutOfDescriptors(t *testing.T) {
	r := drive.Relay{Port: drive.FreePort(t), Web: drive.FreePort(t), Internal: drive.FreePort(t)}
	file := write(t, fmt.Sprintf(`[listen]
bind = "127.0.0.1:%d"
tls.generate = "127.0.0.1"
[web.http]
listen = "127.0.0.1:%d"
[internal]
listen = "127.0.0.1:%d"
[auth]
public = "**"
`, r.Port, r.Web, r.Internal))
	r.Process = drive.Start(t, "relay", "sh", "-c", `ulimit -n 64; exec "$0" relay "$1"`, binary(t), file)
	r.Hash = strings.TrimSpace(drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", r.Web)))
	check := bystanders(t, r)
	var greedy []net.Conn
	for range 100 {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", r.Web), time.Second)
		if err != nil {
			t.Fatal(err) // the kernel answers
		}
		greedy = append(greedy, conn)
	}
	complaint := "no TCP connection can be accepted"
	drive.WaitFor(t, patience, complaint, func() bool { return strings.Contains(r.Stderr(), complaint) })
	d := dialerTo(t, r, message.Lite06)
	for _, c := range carriers {
		meet(t, d, target(t, r, c), message.Lite06).greet().wantAlive()
	}
	time.Sleep(2 * time.Second) // in which it tries again and again
	if n := strings.Count(r.Stderr(), complaint); n != 1 {
		t.Errorf("the log says %d times that %s", n, complaint)
	}
	for _, conn := range greedy {
		_ = conn.Close()
	}
	released := time.Now()
	drive.Get(t, r.InternalURL("/health"))
	if took := time.Since(released); took > 2*time.Second {
		t.Errorf("served again after %v", took)
	}
	if n := r.Metric(t, "moq_relay_accept_failures_total", `class="exhausted"`); n < 1 || n > 100 {
		t.Errorf("%v failures to accept", n)
	}
	check()
}
