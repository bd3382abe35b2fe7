//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// processorTime is what a process has used.
func processorTime(t *testing.T, p *drive.Process) time.Duration {
	t.Helper()
	_, fields, _ := strings.Cut(read(t, fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid)), ") ")
	f := strings.Fields(fields)
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		t.Fatalf("stat: %q", fields)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// TestLANManyInterfaces (faults 9): hosts with more interfaces than they share, one address in common on another, and on one
// of them 64. They mesh, idle quietly, and mesh again when the interface that they share was deleted and made anew.
func TestLANManyInterfaces(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
	l := newLab(t)
	a, b := l.host(t), l.host(t)
	for _, h := range []host{a, b} {
		ip(t, "-n", h.ns, "link", "add", "docker0", "type", "bridge")
		ip(t, "-n", h.ns, "addr", "add", "172.17.0.1/16", "dev", "docker0")
		ip(t, "-n", h.ns, "link", "set", "docker0", "up")
	}
	for i := range 32 { // both ends of 32 cables
		ends := [2]string{fmt.Sprintf("many%d", 2*i), fmt.Sprintf("many%d", 2*i+1)}
		ip(t, "-n", a.ns, "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
		for j, end := range ends {
			ip(t, "-n", a.ns, "addr", "add", fmt.Sprintf("10.99.%d.1/24", 2*i+j), "dev", end)
			ip(t, "-n", a.ns, "link", "set", end, "up")
		}
	}
	many := a.relay(t, "many", "")
	b.relay(t, "few", "")
	meshed(t, 15*time.Second, 1, a, b)
	time.Sleep(5 * time.Second) // for announcements and first questions
	begin, used := time.Now(), processorTime(t, many)
	time.Sleep(10 * time.Second)
	if share := float64(processorTime(t, many)-used) / float64(time.Since(begin)); share > 0.05 {
		t.Errorf("%.1f %% of a core while nothing happens", 100*share)
	} else {
		t.Logf("%.1f %% of a core with 66 interfaces", 100*share)
	}

	ip(t, "-n", b.ns, "link", "del", "eth0")
	meshed(t, 20*time.Second, 0, a, b)
	l.cable(t, &b)
	meshed(t, 30*time.Second, 1, a, b)
}

// TestLANWithoutNetwork (faults 9): a host without any interface that could announce. The relay is not ready, and yet serves,
// as far as somebody can reach it, until it ends in order. With a loopback interface it is ready, and serves clients; with a network
// it meshes; when its address changes it is found at the new one.
func TestLANWithoutNetwork(t *testing.T) {
	l := newLab(t)
	a, b := l.host(t), l.host(t)
	ip(t, "-n", a.ns, "link", "set", "eth0", "down")
	ip(t, "-n", a.ns, "link", "set", "lo", "down")
	socket := filepath.Join(t.TempDir(), "notify")
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = notify.Close() }()
	t.Setenv("NOTIFY_SOCKET", socket)
	ready := func(limit time.Duration) bool { return told(notify, limit) == "READY=1" }
	relay := a.relay(t, "a", "")
	if ready(5 * time.Second) {
		t.Fatal("ready although nobody can be told")
	}
	relay.Signal(t, syscall.SIGTERM)
	if code := relay.Wait(t, 4*time.Second); code != 0 {
		t.Errorf("exit status %d without a network", code)
	}
	if got := told(notify, time.Second); got != "STOPPING=1" {
		t.Errorf("told %q at the end", got)
	}

	relay = a.relay(t, "a again", "")
	if ready(2 * time.Second) {
		t.Fatal("ready although nobody can be told")
	}
	ip(t, "-n", a.ns, "link", "set", "lo", "up")
	if !ready(15 * time.Second) {
		t.Fatal("not ready with a loopback interface")
	}
	t.Setenv("NOTIFY_SOCKET", "") // of those who start from here on
	pub := a.run(t, "pub", "pub", "http://127.0.0.1:443/", "demo")
	sub := a.run(t, "sub", "sub", "http://127.0.0.1:443/", "demo", "--seconds", "2")
	if s := sub.Expect(t, "summary", 20*time.Second); s["ok"] != true {
		t.Errorf("a client on the host itself: %v", s)
	}
	pub.Stop()
	if got := a.page("/health"); got != "ok\n" {
		t.Errorf("health: %q", got)
	}

	b.relay(t, "b", "")
	ip(t, "-n", a.ns, "link", "set", "eth0", "up")
	meshed(t, 10*time.Second, 1, a, b)
	ip(t, "-n", a.ns, "addr", "del", a.ip+"/24", "dev", "eth0")
	ip(t, "-n", a.ns, "addr", "add", "10.77.0.77/24", "dev", "eth0")
	// Where a has dialed, the session moves to the new address; else b finds it and dials.
	time.Sleep(12 * time.Second) // whatever went over the old address is dead by now
	meshed(t, 30*time.Second, 1, a, b)
	stays(t, 3*time.Second, 1, a, b)
	a.run(t, "pub again", "pub", "http://127.0.0.1:443/", "demo")
	across := b.run(t, "sub across", "sub", "http://127.0.0.1:443/", "demo", "--seconds", "2")
	if s := across.Expect(t, "summary", 20*time.Second); s["ok"] != true {
		t.Errorf("a client across: %v", s)
	}
	relay.Signal(t, syscall.SIGTERM)
	if code := relay.Wait(t, 4*time.Second); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// told returns the next message to the service manager, empty if none comes in time.
func told(notify *net.UnixConn, limit time.Duration) string {
	_ = notify.SetReadDeadline(time.Now().Add(limit)) // else the read fails
	var buf [64]byte
	n, _ := notify.Read(buf[:])
	return string(buf[:n])
}
