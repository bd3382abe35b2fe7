package netsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"
)

// Config is what New takes; the zero value is a network that delivers at once and loses nothing.
type Config struct {
	Seed uint64
	Link Link // between any two hosts that SetLink was not called for
}

// Network connects sockets. Its methods may be called concurrently.
type Network struct {
	cfg Config

	mu       sync.Mutex
	sockets  map[netip.AddrPort]*socket
	links    map[direction]*link
	isolated map[netip.Addr]bool
	names    map[string][]netip.Addr
	nextPort uint16
	closed   bool
}

// direction is one way between two hosts.
type direction struct{ from, to netip.Addr }

// New returns a network without hosts: they come with their sockets. In a bubble the caller must Close
// it before the bubble ends.
func New(cfg Config) *Network {
	return &Network{
		cfg:      cfg,
		sockets:  make(map[netip.AddrPort]*socket),
		links:    make(map[direction]*link),
		isolated: make(map[netip.Addr]bool),
		names:    make(map[string][]netip.Addr),
		nextPort: 49152,
	}
}

// Listen opens a socket at ip:port; port 0 takes a free one. Closing it frees the address.
func (n *Network) Listen(addr string) (net.PacketConn, error) {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, net.ErrClosed
	}
	for ap.Port() == 0 {
		if free := netip.AddrPortFrom(ap.Addr(), n.nextPort); n.sockets[free] == nil {
			ap = free
		}
		n.nextPort = max(49152, n.nextPort+1)
	}
	if n.sockets[ap] != nil {
		return nil, fmt.Errorf("listen %s: address already in use", ap)
	}
	s := newSocket(n, ap)
	n.sockets[ap] = s
	return s, nil
}

// Close closes all sockets and waits until nothing is under way any more.
func (n *Network) Close() {
	n.mu.Lock()
	n.closed = true
	sockets := make([]*socket, 0, len(n.sockets))
	for _, s := range n.sockets {
		sockets = append(sockets, s)
	}
	n.mu.Unlock()
	for _, s := range sockets {
		_ = s.Close()
	}
}

// SetLink sets what lies between two hosts, in both directions. Packets under way are not affected.
func (n *Network) SetLink(a, b netip.Addr, l Link) {
	n.SetOneWay(a, b, l)
	n.SetOneWay(b, a, l)
}

// SetOneWay sets one direction of a link.
func (n *Network) SetOneWay(from, to netip.Addr, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(direction{from, to}).Link = l
}

// Cut loses every packet between two hosts from now on, Mend ends that.
func (n *Network) Cut(a, b netip.Addr)  { n.cut(true, direction{a, b}, direction{b, a}) }
func (n *Network) Mend(a, b netip.Addr) { n.cut(false, direction{a, b}, direction{b, a}) }

// CutOneWay loses every packet in one direction from now on, until Mend.
func (n *Network) CutOneWay(from, to netip.Addr) { n.cut(true, direction{from, to}) }

func (n *Network) cut(down bool, ways ...direction) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range ways {
		n.link(d).down = down
	}
}

// Isolate loses every packet from and to a host from now on, Rejoin ends that. A host that is isolated
// while its sockets close looks to others as if it had crashed.
func (n *Network) Isolate(host netip.Addr) { n.isolate(host, true) }
func (n *Network) Rejoin(host netip.Addr)  { n.isolate(host, false) }

func (n *Network) isolate(host netip.Addr, gone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isolated[host] = gone
}

// Stats returns what has happened in one direction between two hosts.
func (n *Network) Stats(from, to netip.Addr) Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(direction{from, to}).stats
}

// SetHost gives a name addresses, for LookupNetIP.
func (n *Network) SetHost(name string, addrs ...netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = addrs
}

// LookupNetIP resolves names as net.Resolver does; network is "ip", "ip4" or "ip6".
func (n *Network) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []netip.Addr
	for _, addr := range n.names[host] {
		if network == "ip" || (network == "ip4") == addr.Is4() {
			found = append(found, addr)
		}
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

// link returns the state of a direction. The caller holds the lock.
func (n *Network) link(d direction) *link {
	l := n.links[d]
	if l == nil {
		h := fnv.New64a()
		fmt.Fprint(h, d)
		l = &link{Link: n.cfg.Link, rand: rand.New(rand.NewPCG(n.cfg.Seed, h.Sum64()))}
		if d.from == d.to {
			l.Link = Link{}
		}
		n.links[d] = l
	}
	return l
}

// SendPacket implements simnet.Router. A packet that goes nowhere is lost like any other.
func (n *Network) SendPacket(p simnet.Packet) error {
	from, to := addrPort(p.From), addrPort(p.To)
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.link(direction{from.Addr(), to.Addr()})
	arrival, ok := l.send(now, len(p.Data), n.isolated[from.Addr()] || n.isolated[to.Addr()])
	if !ok {
		return nil
	}
	if s := n.sockets[to]; s != nil {
		s.inbox.add(arrival, p)
	}
	return nil
}

// AddNode implements simnet.Router; Listen has done it already.
func (n *Network) AddNode(net.Addr, simnet.PacketReceiver) {}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.UDPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
