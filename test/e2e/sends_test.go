//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestFailingSends (faults 4): the system of a relay refuses to send to one of two viewers, in each way it can, and then to
// anybody. The other viewer misses nothing while only one is concerned; the relay lives, complains once a second at most,
// and serves both afterwards.
func TestFailingSends(t *testing.T) {
	l := newLab(t)
	hub, victim, other := l.host(t), l.host(t), l.host(t)
	file := filepath.Join(t.TempDir(), "relay.toml")
	text := "[listen]\ntls.generate = \"localhost\"\n[web.http]\nlisten = \"[::]:443\"\n[internal]\nlisten = \"127.0.0.1:4444\"\n[auth]\npublic = \"**\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	relay := hub.run(t, "relay", "relay", file)
	drive.WaitFor(t, 10*time.Second, "the relay to serve", func() bool { return hub.page("/health") != "" })
	hub.run(t, "pub", "pub", "moqt://127.0.0.1/", "demo", "--insecure")
	watch := func(h host, name, seconds string) *drive.Process {
		t.Helper()
		sub := h.run(t, name, "sub", "moqt://"+hub.ip+"/", "demo", "--insecure", "--max-age", "30s", "--seconds", seconds)
		sub.Expect(t, "second", 10*time.Second)
		return sub
	}
	good := func(sub *drive.Process) {
		t.Helper()
		if s := sub.Expect(t, "summary", 30*time.Second); s["ok"] != true || s.Number("longest_stall_ms") > 1500 {
			t.Errorf("%s: %v", sub.Name, s)
		}
	}
	in := func(command ...string) { ip(t, append([]string{"netns", "exec", hub.ns}, command...)...) }
	for _, fault := range []struct {
		name       string
		begin, end []string
	}{
		{"rejected by a firewall", []string{"iptables", "-w", "-A", "OUTPUT", "-d", victim.ip, "-j", "REJECT"}, []string{"iptables", "-w", "-F", "OUTPUT"}},
		{"no route", []string{"ip", "route", "add", "unreachable", victim.ip + "/32"}, []string{"ip", "route", "del", "unreachable", victim.ip + "/32"}},
		{"prohibited", []string{"ip", "route", "add", "prohibit", victim.ip + "/32"}, []string{"ip", "route", "del", "prohibit", victim.ip + "/32"}},
		{"black hole", []string{"ip", "route", "add", "blackhole", victim.ip + "/32"}, []string{"ip", "route", "del", "blackhole", victim.ip + "/32"}},
	} {
		hit, spared := watch(victim, "victim: "+fault.name, "8"), watch(other, "other: "+fault.name, "8")
		in(fault.begin...)
		time.Sleep(3 * time.Second)
		in(fault.end...)
		good(spared)
		if s := hit.Expect(t, "summary", 30*time.Second); s.Number("longest_stall_ms") < 2500 {
			t.Errorf("%s: it did not concern the victim: %v", fault.name, s)
		}
		good(watch(victim, "victim after: "+fault.name, "2"))
	}
	both := []*drive.Process{watch(victim, "victim without segmentation offload", "4"), watch(other, "other without segmentation offload", "4")}
	in("ip", "link", "set", "eth0", "gso_max_segs", "1", "gso_max_size", "1500")
	for _, sub := range both {
		good(sub)
	}
	in("ip", "link", "set", "eth0", "down")
	time.Sleep(3 * time.Second)
	in("ip", "link", "set", "eth0", "up")
	good(watch(victim, "victim at last", "2"))
	good(watch(other, "other at last", "2"))
	if n := strings.Count(relay.Stderr(), "counts as lost"); n == 0 || n > 20 {
		t.Errorf("%d complaints in 15 s of faults", n)
	}
}
