package lan

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// writeTimeout keeps an interface that takes nothing from holding up the others.
const writeTimeout = 200 * time.Millisecond

// maxPacket is the largest that is read (RFC 6762, 17).
const maxPacket = 9000

// family is an address family.
type family uint8

const (
	four family = iota
	six
	families
)

func (f family) String() string { return [...]string{"IPv4", "IPv6"}[f] }

// groups are where multicast DNS takes place.
var groups = [families]netip.Addr{four: netip.MustParseAddr("224.0.0.251"), six: netip.MustParseAddr("ff02::fb")}

// iface is a network interface that can be used.
type iface struct {
	index    int
	name     string
	loopback bool
	running  bool           // there is somebody at the other end of the wire
	addrs    []netip.Prefix // in order
}

// has reports whether the interface has an address of a family.
func (i *iface) has(f family) bool {
	return slices.ContainsFunc(i.addrs, func(p netip.Prefix) bool { return p.Addr().Is4() == (f == four) })
}

// onLink reports whether an address is in one of the interface's networks.
func (i *iface) onLink(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(i.addrs, func(p netip.Prefix) bool { return p.Contains(a) })
}

// same reports whether two looks show the same interface.
func (i *iface) same(o *iface) bool { return i.index == o.index && i.name == o.name }

// datagram is a packet that was read.
type datagram struct {
	data    []byte // valid until the next read
	from    netip.AddrPort
	unicast bool // it was sent to us alone
}

// socket sends to and receives from the group of one family on one interface.
type socket interface {
	// read blocks until a packet comes or the socket is closed.
	read() (datagram, error)
	// write sends to an address, the zero one meaning the group.
	write(data []byte, to netip.AddrPort) error
	close() error
}

// network is what the system offers.
type network interface {
	interfaces() ([]iface, error)
	open(i iface, f family) (socket, error)
}

// system is the network of the machine.
type system struct{}

// interfaces implements network: all that are up, but for point-to-point links and such as cannot do multicast (L15).
func (system) interfaces() ([]iface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []iface
	for _, ifi := range all {
		multicast := ifi.Flags&(net.FlagMulticast|net.FlagLoopback) != 0
		if ifi.Flags&net.FlagUp == 0 || ifi.Flags&net.FlagPointToPoint != 0 || !multicast {
			continue
		}
		addrs, err := ifi.Addrs()
		if err != nil {
			continue // it has just gone
		}
		i := iface{
			index: ifi.Index, name: ifi.Name, loopback: ifi.Flags&net.FlagLoopback != 0,
			running: ifi.Flags&net.FlagRunning != 0, addrs: prefixes(addrs),
		}
		if len(i.addrs) > 0 {
			out = append(out, i)
		}
	}
	return out, nil
}

func prefixes(addrs []net.Addr) (out []netip.Prefix) {
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return out
}

// open implements network. The socket has the port of multicast DNS, which all programs of a machine share: binding to
// a multicast address makes package net allow that.
func (system) open(i iface, f family) (socket, error) {
	name := [...]string{"udp4", "udp6"}[f]
	conn, err := net.ListenUDP(name, &net.UDPAddr{IP: groups[f].AsSlice(), Port: mdnsPort})
	if err != nil {
		return nil, err
	}
	s := &udp{conn: conn, index: i.index, zone: i.name, family: f}
	if err := s.join(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// udp is a socket of the system.
type udp struct {
	conn   *net.UDPConn
	p4     *ipv4.PacketConn
	p6     *ipv6.PacketConn
	index  int
	zone   string
	family family
	buf    [maxPacket]byte // of read
}

// join sets up multicast on the one interface.
func (s *udp) join() error {
	ifi, group := &net.Interface{Index: s.index, Name: s.zone}, &net.UDPAddr{IP: groups[s.family].AsSlice()}
	var steps []func() error
	if s.family == four {
		p := ipv4.NewPacketConn(s.conn)
		s.p4 = p
		// Where the system has no control messages, it delivers to the right interface by itself.
		_ = p.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true)
		steps = []func() error{
			func() error { return p.JoinGroup(ifi, group) },
			func() error { return p.SetMulticastInterface(ifi) },
			func() error { return p.SetMulticastLoopback(true) },
			func() error { return p.SetMulticastTTL(255) },
			func() error { return p.SetTTL(255) },
		}
	} else {
		p := ipv6.NewPacketConn(s.conn)
		s.p6 = p
		_ = p.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true)
		steps = []func() error{
			func() error { return p.JoinGroup(ifi, group) },
			func() error { return p.SetMulticastInterface(ifi) },
			func() error { return p.SetMulticastLoopback(true) },
			func() error { return p.SetMulticastHopLimit(255) },
			func() error { return p.SetHopLimit(255) },
		}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// read implements socket. Linux gives every socket the packets of all interfaces; those of others are dropped here.
func (s *udp) read() (datagram, error) {
	for {
		n, index, dst, from, err := s.receive()
		if err != nil {
			return datagram{}, err
		}
		udp, ok := from.(*net.UDPAddr)
		if !ok || index != 0 && index != s.index {
			continue
		}
		at := udp.AddrPort()
		return datagram{
			data: s.buf[:n], from: netip.AddrPortFrom(at.Addr().Unmap(), at.Port()),
			unicast: dst != nil && !dst.IsMulticast(),
		}, nil
	}
}

func (s *udp) receive() (n, index int, dst net.IP, from net.Addr, err error) {
	if s.family == four {
		var cm *ipv4.ControlMessage
		if n, cm, from, err = s.p4.ReadFrom(s.buf[:]); cm != nil {
			index, dst = cm.IfIndex, cm.Dst
		}
		return n, index, dst, from, err
	}
	var cm *ipv6.ControlMessage
	if n, cm, from, err = s.p6.ReadFrom(s.buf[:]); cm != nil {
		index, dst = cm.IfIndex, cm.Dst
	}
	return n, index, dst, from, err
}

// write implements socket.
func (s *udp) write(data []byte, to netip.AddrPort) error {
	if !to.IsValid() {
		group := groups[s.family]
		if s.family == six {
			group = group.WithZone(s.zone)
		}
		to = netip.AddrPortFrom(group, mdnsPort)
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.conn.WriteToUDPAddrPort(data, to)
	return err
}

// close implements socket. A read that waits returns.
func (s *udp) close() error { return s.conn.Close() }
