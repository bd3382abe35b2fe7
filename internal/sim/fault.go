package sim

import (
	"net/netip"

	"github.com/moqmesh/moqmesh/internal/netsim"
)

// fault does something to the network, and lets those look who record what is so.
func (c *Cluster) fault(do func()) {
	if c.faulty != nil {
		c.faulty()
		defer c.faulty()
	}
	do()
}

func pair(a, b netip.Addr) [2]netip.Addr {
	if b.Less(a) {
		a, b = b, a
	}
	return [2]netip.Addr{a, b}
}

// Cut loses every packet between two relays from now on.
func (c *Cluster) Cut(i, j int) {
	a, b := c.Relays[i].host, c.Relays[j].host
	c.fault(func() {
		c.cuts[pair(a, b)] = true
		c.Net.Cut(a, b)
	})
}

// CutOneWay loses every packet from one relay to another from now on.
func (c *Cluster) CutOneWay(from, to int) {
	a, b := c.Relays[from].host, c.Relays[to].host
	c.fault(func() {
		c.cuts[pair(a, b)] = true
		c.Net.CutOneWay(a, b)
	})
}

// Mend ends a cut.
func (c *Cluster) Mend(i, j int) {
	a, b := c.Relays[i].host, c.Relays[j].host
	c.fault(func() {
		delete(c.cuts, pair(a, b))
		c.Net.Mend(a, b)
	})
}

// SetLink changes what lies between two relays.
func (c *Cluster) SetLink(i, j int, l netsim.Link) {
	c.Net.SetLink(c.Relays[i].host, c.Relays[j].host, l)
}

func (c *Cluster) isCut(a, b netip.Addr) bool { return c.cuts[pair(a, b)] }

func (c *Cluster) isolate(host netip.Addr) {
	c.fault(func() {
		c.isolated[host] = true
		c.Net.Isolate(host)
	})
}

func (c *Cluster) rejoin(host netip.Addr) {
	c.fault(func() {
		delete(c.isolated, host)
		c.Net.Rejoin(host)
	})
}

// Isolate loses every packet from and to the relay, which runs on.
func (r *Relay) Isolate() { r.of.isolate(r.host) }

// Rejoin ends that.
func (r *Relay) Rejoin() { r.of.rejoin(r.host) }

// Isolate loses every packet from and to the client, which runs on.
func (m *machine) Isolate() { m.of.isolate(m.host) }

// Rejoin ends that.
func (m *machine) Rejoin() { m.of.rejoin(m.host) }
