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

// TestFailingSends (faults 4): the system of a relay refuses to send to one of two viewers, in two ways, and then to
// anybody. The other viewer misses nothing while only one is concerned; the relay lives, complains once a second at most,
// and serves both afterwards.
func TestFailingSends(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
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
	for _, target := range []string{"REJECT", "DROP"} { // routes would not do: answers name their interface, and need none
		rule := []string{"OUTPUT", "-d", victim.ip, "-j", target}
		hit, spared := watch(victim, "victim: "+target, "8"), watch(other, "other: "+target, "8")
		in(append([]string{"iptables", "-w", "-A"}, rule...)...)
		time.Sleep(3 * time.Second)
		in(append([]string{"iptables", "-w", "-D"}, rule...)...)
		good(spared)
		if s := hit.Expect(t, "summary", 30*time.Second); s.Number("longest_stall_ms") < 2500 {
			t.Errorf("%s: it did not concern the victim: %v", target, s)
		}
		good(watch(victim, "victim after: "+target, "2"))
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
