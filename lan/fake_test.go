package lan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// segment is a network in memory: what one port sends to the group, all of the same wire hear, the sender too.
type segment struct {
	mu    sync.Mutex
	ports []*port
	cut   map[*fakeHost]bool // hosts that nothing gets to or from
	heard int                // packets sent to the group
}

// fakeHost is the network of one machine.
type fakeHost struct {
	segment *segment

	mu      sync.Mutex
	ifaces  []iface
	wires   map[string]string // interface to wire
	listErr error
	openErr map[family]error
	sendErr map[family]error
	readErr error
	opened  int
	tried   int // sends
}

func newHost(s *segment) *fakeHost {
	return &fakeHost{segment: s, wires: make(map[string]string), openErr: make(map[family]error), sendErr: make(map[family]error)}
}

// plug adds or replaces an interface on a wire.
func (h *fakeHost) plug(index int, name, wire string, prefixes ...string) {
	h.unplug(name)
	i := iface{index: index, name: name, running: true}
	for _, p := range prefixes {
		i.addrs = append(i.addrs, netip.MustParsePrefix(p))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ifaces = append(h.ifaces, i)
	h.wires[name] = wire
}

func (h *fakeHost) unplug(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ifaces = slices.DeleteFunc(h.ifaces, func(i iface) bool { return i.name == name })
}

// fail sets what goes wrong, under the lock.
func (h *fakeHost) fail(set func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set()
}

func (h *fakeHost) counts() (opened, tried int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened, h.tried
}

func (h *fakeHost) interfaces() ([]iface, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ifaces), h.listErr
}

func (h *fakeHost) open(i iface, f family) (socket, error) {
	h.mu.Lock()
	h.opened++
	err := h.openErr[f]
	h.mu.Unlock() // the lock of the segment comes first
	if err != nil {
		return nil, err
	}
	p := &port{host: h, iface: i, family: f, in: make(chan datagram, 1000), closed: make(chan struct{})}
	s := h.segment
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = append(s.ports, p)
	return p, nil
}

// port is a socket.
type port struct {
	host   *fakeHost
	iface  iface
	family family
	in     chan datagram
	closed chan struct{}
	once   sync.Once
}

func (p *port) read() (datagram, error) {
	p.host.mu.Lock()
	err := p.host.readErr
	p.host.mu.Unlock()
	if err != nil {
		return datagram{}, err
	}
	select {
	case d := <-p.in:
		return d, nil
	case <-p.closed:
		return datagram{}, net.ErrClosed
	}
}

func (p *port) write(data []byte, to netip.AddrPort) error {
	h := p.host
	h.mu.Lock()
	h.tried++
	err, wire := h.sendErr[p.family], h.wires[p.iface.name]
	h.mu.Unlock()
	if err != nil {
		return err
	}
	var from netip.Addr
	for _, a := range p.iface.addrs {
		if a.Addr().Is4() == (p.family == four) {
			from = a.Addr()
		}
	}
	if !to.IsValid() {
		p.host.segment.deliver(p, wire, datagram{data: slices.Clone(data), from: netip.AddrPortFrom(from, mdnsPort)})
	}
	return nil
}

func (s *segment) deliver(from *port, wire string, d datagram) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard++
	for _, p := range s.ports {
		p.host.mu.Lock()
		same := p.host.wires[p.iface.name] == wire && p.family == from.family
		p.host.mu.Unlock()
		if same && (p.host == from.host || !s.cut[p.host] && !s.cut[from.host]) {
			p.push(d)
		}
	}
}

func (p *port) push(d datagram) {
	select {
	case <-p.closed:
	case p.in <- d:
	default:
	}
}

func (p *port) close() error {
	p.once.Do(func() { close(p.closed) })
	s := p.host.segment
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ports = slices.DeleteFunc(s.ports, func(o *port) bool { return o == p })
	return nil
}

// inject sends a packet as if it came from somewhere.
func (s *segment) inject(wire string, f family, d datagram) {
	s.deliver(&port{host: &fakeHost{}, family: f}, wire, d)
}

func (s *segment) isolate(h *fakeHost, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut == nil {
		s.cut = make(map[*fakeHost]bool)
	}
	s.cut[h] = cut
}

func (s *segment) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

var errBroken = errors.New("broken")

// machine is a running Discovery on a host of its own.
type machine struct {
	*Discovery
	host *fakeHost
	logs *logs
}

// boot starts a discovery; name becomes its instance, so that tests know who dials.
func boot(t *testing.T, h *fakeHost, name byte, change func(*Config)) *machine {
	t.Helper()
	l := new(logs)
	cfg := Config{
		Port: 4443, Fingerprint: strings.Repeat("a", 64), network: h, random: repeat(name), chance: middle, Logger: l.logger(),
	}
	if change != nil {
		change(&cfg)
	}
	d, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return &machine{d, h, l}
}

// repeat is a source of one byte over and over.
type repeat byte

func (r repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r)
	}
	return len(b), nil
}

// dials lists the instances that a machine is to dial, by their first two digits.
func (m *machine) dials() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, p := range m.peers {
		out = append(out, p.Instance[:2])
	}
	return strings.Join(out, " ")
}

func (m *machine) addresses() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, p := range m.peers {
		out = append(out, fmt.Sprint(p.Addrs))
	}
	return strings.Join(out, " ")
}

func isReady(d *Discovery) bool {
	select {
	case <-d.Ready():
		return true
	default:
		return false
	}
}

// elapse lets time pass and everything come to rest.
func elapse(d time.Duration) { time.Sleep(d) }
