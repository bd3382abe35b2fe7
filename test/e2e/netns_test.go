//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/internal/linklab"
)

// lab is a network of namespaces: hosts with one cable each to a switch.
type lab struct {
	name  string // prefix of the names of namespaces
	hosts int
	// cables counts those that were ever plugged in.
	cables int
}

// host is one machine of a lab.
type host struct {
	ns string
	ip string // IPv4 address of its eth0
}

// newLab builds a switch. Namespaces need root; what they are needed for cannot be tested without.
func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	l := &lab{name: fmt.Sprintf("mq%d", time.Now().UnixNano()%1e6)}
	l.namespace(t, l.name+"sw")
	ip(t, "-n", l.name+"sw", "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
	ip(t, "-n", l.name+"sw", "link", "set", "br0", "up")
	return l
}

func (l *lab) namespace(t *testing.T, name string) {
	t.Helper()
	ip(t, "netns", "add", name)
	t.Cleanup(func() { ip(t, "netns", "del", name) })
	ip(t, "-n", name, "link", "set", "lo", "up")
}

// host adds a machine, with IPv4 and IPv6.
func (l *lab) host(t *testing.T) host {
	t.Helper()
	l.hosts++
	h := host{ns: fmt.Sprintf("%sh%d", l.name, l.hosts), ip: fmt.Sprintf("10.77.0.%d", l.hosts)}
	l.namespace(t, h.ns)
	l.cable(t, &h)
	return h
}

// cable joins a host to the switch, by an interface eth0 with an IPv4 and an IPv6 address.
func (l *lab) cable(t *testing.T, h *host) {
	t.Helper()
	n := strings.TrimPrefix(h.ip, "10.77.0.")
	l.cables++
	port := fmt.Sprintf("p%d", l.cables)
	ip(t, "-n", l.name+"sw", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", h.ns)
	ip(t, "-n", l.name+"sw", "link", "set", port, "master", "br0", "up")
	ip(t, "-n", h.ns, "addr", "add", h.ip+"/24", "dev", "eth0")
	ip(t, "-n", h.ns, "-6", "addr", "add", "fd77::"+n+"/64", "dev", "eth0", "nodad")
	ip(t, "-n", h.ns, "link", "set", "eth0", "up")
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// run starts the binary on a host.
func (h host) run(t *testing.T, name string, args ...string) *drive.Process {
	t.Helper()
	return drive.Start(t, name, "ip", append([]string{"netns", "exec", h.ns, binary(t)}, args...)...)
}

// relay starts a relay on a host with LAN discovery; lines go below [cluster.lan].
func (h host) relay(t *testing.T, name, lines string) *drive.Process {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".toml")
	text := `drain_timeout = "1s"
[listen]
tls.generate = ["localhost"]
[web.http]
listen = "[::]:443"
[internal]
listen = "127.0.0.1:4444"
[auth]
public = "**"
[log]
level = "debug"
[cluster.lan]
enabled = true
` + lines
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h.run(t, name, "relay", file)
}

// inside runs f on a thread in the host's namespace. Sockets that f opens stay there.
func (h host) inside(f func() error) error { return linklab.Inside(h.ns, f) }

// page fetches a page of the internal listener of the relay on a host; empty if it does not answer.
func (h host) page(path string) string {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = h.inside(func() (err error) {
			conn, err = new(net.Dialer).DialContext(ctx, network, addr)
			return err
		})
		return conn, err
	}}
	client := http.Client{Transport: transport, Timeout: 3 * time.Second}
	res, err := client.Get("http://127.0.0.1:4444" + path)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}
