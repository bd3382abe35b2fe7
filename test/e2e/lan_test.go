//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// links counts the sessions that the relays of some hosts have dialed.
func links(hosts ...host) (n int) {
	for _, h := range hosts {
		var page struct {
			Nodes []struct{ Connections []struct{} }
		}
		if json.Unmarshal([]byte(h.page("/nodes")), &page) != nil {
			return -1
		}
		for _, node := range page.Nodes {
			n += len(node.Connections)
		}
	}
	return n
}

func meshed(t *testing.T, limit time.Duration, want int, hosts ...host) {
	t.Helper()
	drive.WaitFor(t, limit, fmt.Sprintf("%d links", want), func() bool { return links(hosts...) == want })
}

// stays demands that a number of links holds for a while.
func stays(t *testing.T, span time.Duration, want int, hosts ...host) {
	t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if n := links(hosts...); n != want {
			t.Fatalf("%d links, want %d", n, want)
		}
	}
}

// TestLANPair: two relays without any list serve clients across, and one that ends is dropped at its goodbye.
func TestLANPair(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
	l := newLab(t)
	a, b := l.host(t), l.host(t)
	first := a.relay(t, "a", "")
	begin := time.Now()
	second := b.relay(t, "b", "")
	meshed(t, 5*time.Second, 1, a, b)
	t.Logf("meshed after %v", time.Since(begin))
	if n := strings.Count(a.page("/sessions")+b.page("/sessions"), `"remote"`); n != 0 {
		t.Errorf("%d sessions are listed beside the peers", n)
	}
	a.run(t, "pub", "pub", "http://127.0.0.1:443/", "demo")
	sub := b.run(t, "sub", "sub", "http://127.0.0.1:443/", "demo", "--seconds", "3")
	if summary := sub.Expect(t, "summary", 20*time.Second); summary["ok"] != true || summary.Number("frames") < 60 {
		t.Errorf("summary %v", summary)
	}
	for _, p := range []*drive.Process{first, second} {
		if strings.Contains(p.Stderr(), "/.cluster/") {
			t.Error("a credential is logged")
		}
	}
	second.Signal(t, syscall.SIGTERM)
	if code := second.Wait(t, 5*time.Second); code != 0 {
		t.Errorf("exit status %d", code)
	}
	drive.WaitFor(t, 3*time.Second, "the peer to be gone", func() bool {
		return strings.Contains(a.page("/cluster"), `"peers":[]`)
	})
}

// TestLANFive: a full mesh of five, of which one is killed and started anew, and one loses its interface for a while.
func TestLANFive(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
	l := newLab(t)
	var hosts []host
	var relays []*drive.Process
	for i := range 5 {
		hosts = append(hosts, l.host(t))
		relays = append(relays, hosts[i].relay(t, fmt.Sprintf("relay%d", i), ""))
	}
	meshed(t, 10*time.Second, 10, hosts...)
	stays(t, 2*time.Second, 10, hosts...)

	relays[2].Kill() // its records stay in the caches, and nobody answers there
	drive.WaitFor(t, 15*time.Second, "six links", func() bool {
		return links(hosts[0], hosts[1], hosts[3], hosts[4]) == 6
	})
	relays[2] = hosts[2].relay(t, "relay2", "")
	meshed(t, 10*time.Second, 10, hosts...)

	ip(t, "-n", hosts[4].ns, "link", "set", "eth0", "down")
	meshed(t, 20*time.Second, 0, hosts[4]) // first: the others have six at once if it dialed them all
	meshed(t, 20*time.Second, 6, hosts[:4]...)
	ip(t, "-n", hosts[4].ns, "link", "set", "eth0", "up")
	ip(t, "-n", hosts[4].ns, "-6", "addr", "replace", "fd77::5/64", "dev", "eth0", "nodad") // lost with the link
	meshed(t, 30*time.Second, 10, hosts...)
}

// TestLANGroups: relays with other secrets, without one, and with other names do not see each other.
func TestLANGroups(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
	l := newLab(t)
	key := filepath.Join(t.TempDir(), "lan.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("1f", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	groups := []string{
		fmt.Sprintf("secret = %q\n", key), fmt.Sprintf("secret = %q\n", strings.Repeat("2e", 32)), "", "app = \"rack7\"\n",
	}
	var hosts []host
	for i, lines := range groups {
		for j := range 2 {
			h := l.host(t)
			h.relay(t, fmt.Sprintf("group%d-%d", i, j), lines)
			hosts = append(hosts, h)
		}
	}
	meshed(t, 15*time.Second, 4, hosts...)
	stays(t, 3*time.Second, 4, hosts...)
	for i := range groups {
		if n := links(hosts[2*i], hosts[2*i+1]); n != 1 {
			t.Errorf("group %d has %d links", i, n)
		}
	}
}

// TestLANWithoutIPv6 turns IPv6 off under two running relays, and meshes two more that never had it.
func TestLANWithoutIPv6(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
	l := newLab(t)
	a, b := l.host(t), l.host(t)
	off := func(h host) { sysctl(t, h, "net.ipv6.conf.all.disable_ipv6=1") }
	first := a.relay(t, "a", "")
	b.relay(t, "b", "")
	meshed(t, 5*time.Second, 1, a, b)
	off(a)
	off(b)
	time.Sleep(12 * time.Second) // two looks at the interfaces
	meshed(t, 15*time.Second, 1, a, b)
	c := l.host(t)
	off(c)
	c.relay(t, "c", "")
	meshed(t, 10*time.Second, 3, a, b, c)
	if n := strings.Count(first.Stderr(), "LAN discovery cannot"); n > 4 {
		t.Errorf("%d complaints: %s", n, first.Stderr())
	}
}

func sysctl(t *testing.T, h host, setting string) {
	t.Helper()
	ip(t, "netns", "exec", h.ns, "sysctl", "-qw", setting)
}

// TestLANRogue: somebody on the network announces what is none of ours. Where there is a secret it is not dialed; the
// control shows that it is where there is none. The mesh holds.
func TestLANRogue(t *testing.T) {
	t.Parallel() // hosts of its own; most of it is waiting
	l := newLab(t)
	secret := fmt.Sprintf("secret = %q\n", strings.Repeat("3d", 32))
	a, b, open, rogue := l.host(t), l.host(t), l.host(t), l.host(t)
	first, second := a.relay(t, "a", secret), b.relay(t, "b", secret)
	control := open.relay(t, "open", "")
	meshed(t, 10*time.Second, 1, a, b)
	for range 5 {
		rogue.announce(t, "ffffffffffffffff", "") // the last id of all: everybody dials it
		rogue.announce(t, "fffffffffffffffe", strings.Repeat("0", 64))
		rogue.shout(t, []byte("this is no DNS"))
		time.Sleep(200 * time.Millisecond)
	}
	name := "moqt://" + rogue.ip
	drive.WaitFor(t, 5*time.Second, "a dial to the rogue", func() bool { return strings.Contains(control.Stderr(), name) })
	stays(t, 2*time.Second, 1, a, b)
	for _, p := range []*drive.Process{first, second} {
		if strings.Contains(p.Stderr(), rogue.ip) {
			t.Errorf("%s knows of the rogue: %s", p.Name, p.Stderr())
		}
	}
}

// announce sends the record of a relay that does not exist, as if from a responder on the host.
func (h host) announce(t *testing.T, instance, proof string) {
	t.Helper()
	const ttl, flush = 120, 0x8001
	name, target := instance+"._moq._udp.local.", instance+".local."
	header := func(name string, rtype, class uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: rtype, Class: class, Ttl: ttl}
	}
	txt := []string{"fp=" + strings.Repeat("a", 64), "n=" + strings.Repeat("0", 32)}
	if proof != "" {
		txt = append(txt, "a="+proof)
	}
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Answer: []dns.RR{
		&dns.PTR{Hdr: header("_default._sub._moq._udp.local.", dns.TypePTR, dns.ClassINET), Ptr: name},
		&dns.SRV{Hdr: header(name, dns.TypeSRV, flush), Port: 9, Target: target},
		&dns.TXT{Hdr: header(name, dns.TypeTXT, flush), Txt: txt},
		&dns.A{Hdr: header(target, dns.TypeA, flush), A: net.ParseIP(h.ip)},
	}}
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	h.shout(t, data)
}

// shout sends a packet to the group of multicast DNS.
func (h host) shout(t *testing.T, data []byte) {
	t.Helper()
	err := h.inside(func() error {
		conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(h.ip), Port: 5353}, &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353})
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
