package netsim_test

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/netsim"
)

var (
	hostA = netip.MustParseAddr("10.0.0.1")
	hostB = netip.MustParseAddr("10.0.0.2")
	hostC = netip.MustParseAddr("10.0.0.3")
)

// run gives a test two sockets on a network in a bubble.
func run(t *testing.T, cfg netsim.Config, test func(t *testing.T, n *netsim.Network, a, b net.PacketConn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := netsim.New(cfg)
		defer n.Close()
		test(t, n, socket(t, n, "10.0.0.1:1000"), socket(t, n, "10.0.0.2:2000"))
	})
}

func socket(t *testing.T, n *netsim.Network, addr string) net.PacketConn {
	t.Helper()
	pc, err := n.Listen(addr)
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

// send sends packets of a size, numbered from 0.
func send(t *testing.T, from, to net.PacketConn, count, size int) {
	t.Helper()
	for i := range count {
		p := make([]byte, size)
		p[0] = byte(i)
		if _, err := from.WriteTo(p, to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
}

type arrival struct {
	Number byte
	After  time.Duration
}

// arrivals returns what a socket receives within d, and when.
func arrivals(t *testing.T, pc net.PacketConn, d time.Duration) (all []arrival) {
	t.Helper()
	start := time.Now()
	_ = pc.SetReadDeadline(start.Add(d))
	b := make([]byte, 2000)
	for {
		if _, _, err := pc.ReadFrom(b); err != nil {
			return all
		}
		all = append(all, arrival{b[0], time.Since(start)})
	}
}

func TestDelay(t *testing.T) {
	run(t, netsim.Config{Link: netsim.Link{Delay: 25 * time.Millisecond}}, func(t *testing.T, n *netsim.Network, a, b net.PacketConn) {
		send(t, a, b, 3, 100)
		want := []arrival{{0, 25 * time.Millisecond}, {1, 25 * time.Millisecond}, {2, 25 * time.Millisecond}}
		if diff := cmp.Diff(want, arrivals(t, b, time.Second)); diff != "" {
			t.Error(diff)
		}
		n.SetOneWay(hostB, hostA, netsim.Link{Delay: time.Second})
		send(t, b, a, 1, 100)
		if diff := cmp.Diff([]arrival{{0, time.Second}}, arrivals(t, a, 2*time.Second)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBandwidth(t *testing.T) {
	link := netsim.Link{Bandwidth: 8_000_000, Delay: 10 * time.Millisecond, Queue: 3000} // a byte per microsecond
	run(t, netsim.Config{Link: link}, func(t *testing.T, n *netsim.Network, a, b net.PacketConn) {
		send(t, a, b, 10, 1000)
		// One goes at once, and as long as no more than 3000 bytes wait, the next may join them.
		want := []arrival{{0, 11 * time.Millisecond}, {1, 12 * time.Millisecond}, {2, 13 * time.Millisecond}, {3, 14 * time.Millisecond}}
		if diff := cmp.Diff(want, arrivals(t, b, time.Second)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(netsim.Stats{Sent: 10, Overflown: 6}, n.Stats(hostA, hostB)); diff != "" {
			t.Error(diff)
		}
		send(t, a, b, 1, 1000)
		if diff := cmp.Diff([]arrival{{0, 11 * time.Millisecond}}, arrivals(t, b, time.Second)); diff != "" {
			t.Errorf("after the queue was empty: %s", diff)
		}
	})
}

// The seed decides what is lost, and a cut in between does not change it.
func TestLoss(t *testing.T) {
	lost := func(seed uint64, cut bool) (got []arrival) {
		run(t, netsim.Config{Seed: seed, Link: netsim.Link{Loss: 0.2}}, func(t *testing.T, n *netsim.Network, a, b net.PacketConn) {
			if cut {
				n.Cut(hostA, hostB)
			}
			send(t, a, b, 100, 10)
			first := arrivals(t, b, time.Second)
			if cut && len(first) > 0 {
				t.Errorf("%d packets passed a cut", len(first))
			}
			n.Mend(hostA, hostB)
			for range 4 { // less than the socket's buffer at a time
				send(t, a, b, 25, 10)
				got = append(got, arrivals(t, b, time.Second)...)
			}
		})
		return got
	}
	one := lost(1, false)
	if len(one) < 60 || len(one) > 95 {
		t.Errorf("%d of 100 packets arrived at a loss of 20 %%", len(one))
	}
	if diff := cmp.Diff(one, lost(1, true)); diff != "" {
		t.Errorf("same seed: %s", diff)
	}
	if cmp.Equal(one, lost(2, false)) {
		t.Error("another seed lost the same packets")
	}
}

func TestJitterReorders(t *testing.T) {
	link := netsim.Link{Delay: time.Millisecond, Jitter: 50 * time.Millisecond}
	run(t, netsim.Config{Seed: 1, Link: link}, func(t *testing.T, _ *netsim.Network, a, b net.PacketConn) {
		send(t, a, b, 20, 10)
		got, sorted := arrivals(t, b, time.Second), true
		for i, p := range got {
			sorted = sorted && p.Number == byte(i)
			if p.After < time.Millisecond || p.After > 51*time.Millisecond {
				t.Errorf("packet %d after %v", p.Number, p.After)
			}
		}
		if len(got) != 20 || sorted {
			t.Errorf("%d packets, in order %v", len(got), sorted)
		}
	})
}

func TestCuts(t *testing.T) {
	run(t, netsim.Config{}, func(t *testing.T, n *netsim.Network, a, b net.PacketConn) {
		c := socket(t, n, "10.0.0.3:0")
		passes := func(from, to net.PacketConn) bool {
			send(t, from, to, 1, 10)
			return len(arrivals(t, to, time.Second)) == 1
		}
		n.CutOneWay(hostA, hostB)
		if passes(a, b) || !passes(b, a) {
			t.Error("cut one way")
		}
		n.Mend(hostA, hostB)
		n.Isolate(hostC)
		if !passes(a, b) || passes(a, c) || passes(c, a) {
			t.Error("isolated host")
		}
		n.Rejoin(hostC)
		if !passes(a, c) || !passes(c, a) {
			t.Error("rejoined host")
		}
	})
}

func TestSockets(t *testing.T) {
	run(t, netsim.Config{}, func(t *testing.T, n *netsim.Network, a, b net.PacketConn) {
		if _, err := n.Listen("10.0.0.1:1000"); err == nil {
			t.Error("an address was given twice")
		}
		first, second := socket(t, n, "10.0.0.1:0"), socket(t, n, "10.0.0.1:0")
		if first.LocalAddr().String() == second.LocalAddr().String() {
			t.Errorf("both got %v", first.LocalAddr())
		}
		to := b.LocalAddr()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := a.WriteTo([]byte("x"), to); err != nil {
			t.Errorf("packet to nobody: %v", err)
		}
		again := socket(t, n, "10.0.0.2:2000")
		send(t, a, again, 1, 10)
		if len(arrivals(t, again, time.Second)) != 1 {
			t.Error("reopened address does not work")
		}
	})
}

func TestNames(t *testing.T) {
	v6 := netip.MustParseAddr("fd00::1")
	n := netsim.New(netsim.Config{})
	n.SetHost("relay", hostA, v6)
	for network, want := range map[string][]netip.Addr{"ip": {hostA, v6}, "ip4": {hostA}, "ip6": {v6}} {
		got, err := n.LookupNetIP(t.Context(), network, "relay")
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", network, err, diff)
		}
	}
	var dns *net.DNSError
	if _, err := n.LookupNetIP(t.Context(), "ip", "nobody"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("unknown name: %v", err)
	}
}
