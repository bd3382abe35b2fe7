package drive

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Cable leads to a network namespace of its own: what runs in there reaches the rest of the machine through it alone, and
// it can be cut.
type Cable struct {
	// Host is the address of the far end.
	Host string

	namespace string
}

var cables atomic.Uint32

// NewCable lays one until the test ends. That takes root.
func NewCable(t *testing.T) *Cable {
	t.Helper()
	n := cables.Add(1)
	id := fmt.Sprintf("mq%d-%d", os.Getpid(), n)
	near, far := id+"a", id+"b" // at most 15 characters
	// 198.18.0.0/15 is for benchmarks (RFC 2544): nobody is routed there. Two tests at the same time differ by process.
	third := (os.Getpid()*7 + int(n)) % 256
	net := fmt.Sprintf("198.18.%d.", third)
	c := &Cable{Host: net + "2", namespace: id}
	ip(t, "netns", "add", id)
	t.Cleanup(func() { ip(t, "netns", "del", id) }) // the cable goes with it
	ip(t, "link", "add", near, "type", "veth", "peer", "name", far, "netns", id)
	ip(t, "addr", "add", net+"1/30", "dev", near)
	ip(t, "link", "set", near, "up")
	ip(t, "-n", id, "addr", "add", net+"2/30", "dev", far)
	ip(t, "-n", id, "link", "set", far, "up")
	ip(t, "-n", id, "link", "set", "lo", "up")
	return c
}

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
	return string(out)
}

// command is what runs a command at the far end.
func (c *Cable) command(command string, args []string) (string, []string) {
	return "ip", append([]string{"netns", "exec", c.namespace, command}, args...)
}

// Start is Start at the far end.
func (c *Cable) Start(t *testing.T, name, command string, args ...string) *Process {
	t.Helper()
	command, args = c.command(command, args)
	return Start(t, name, command, args...) // ip becomes the command, so signals reach it
}

// Cut drops every packet from now on, in both directions, without anybody being told.
func (c *Cable) Cut(t *testing.T) {
	t.Helper()
	c.drop(t)
}

// Lose drops a share of the packets from now on.
func (c *Cable) Lose(t *testing.T, share float64) {
	t.Helper()
	c.drop(t, "-m", "statistic", "--mode", "random", "--probability", strconv.FormatFloat(share, 'f', -1, 64))
}

func (c *Cable) drop(t *testing.T, match ...string) {
	t.Helper()
	for _, end := range [][]string{{"INPUT", "!", "-i", "lo"}, {"OUTPUT", "!", "-o", "lo"}} {
		ip(t, append(append([]string{"netns", "exec", c.namespace, "iptables", "-w", "-A"}, append(end, match...)...), "-j", "DROP")...)
	}
}

// Dropped counts the packets that Cut and Lose have dropped, towards the far end and from it.
func (c *Cable) Dropped(t *testing.T) (in, out int) {
	t.Helper()
	count := func(chain string) (sum int) {
		for line := range strings.Lines(ip(t, "netns", "exec", c.namespace, "iptables", "-w", "-nvxL", chain)) {
			if f := strings.Fields(line); len(f) > 2 && f[2] == "DROP" {
				n, err := strconv.Atoi(f[0])
				if err != nil {
					t.Fatalf("iptables: %q", line)
				}
				sum += n
			}
		}
		return sum
	}
	return count("INPUT"), count("OUTPUT")
}
