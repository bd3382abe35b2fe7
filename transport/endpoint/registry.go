package endpoint

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/moqmesh/moqmesh/transport"
)

// carrier is what both carriers' connections are.
type carrier interface {
	transport.Conn
	// Wait returns when the connection's goroutines have ended, soon after the connection.
	Wait()
}

// registry holds the open connections of a socket or a dialer.
type registry struct {
	mu     sync.Mutex
	closed bool
	conns  map[carrier]struct{}
	peers  map[netip.AddrPort]int // how many of them an address has
	wg     sync.WaitGroup         // one for each connection until its goroutines have ended
}

// add keeps a connection until it ends. It returns false, and keeps nothing, after close.
func (r *registry) add(c carrier) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.conns == nil {
		r.conns = make(map[carrier]struct{})
		r.peers = make(map[netip.AddrPort]int)
	}
	r.conns[c] = struct{}{}
	peer := peerOf(c)
	r.peers[peer]++
	r.wg.Add(1)
	context.AfterFunc(c.Context(), func() {
		r.mu.Lock()
		delete(r.conns, c)
		if r.peers[peer]--; r.peers[peer] == 0 {
			delete(r.peers, peer)
		}
		r.mu.Unlock()
		c.Wait()
		r.wg.Done()
	})
	return true
}

// has reports whether there is a connection to an address, as it was when the connection was added.
func (r *registry) has(peer netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peers[peer] > 0
}

// peerOf is the address of a connection's peer; zero if it is no UDP address.
func peerOf(c carrier) netip.AddrPort {
	if udp, ok := c.Info().Remote.(*net.UDPAddr); ok {
		return unmapped(udp.AddrPort())
	}
	return netip.AddrPort{}
}

// close closes all connections with code 0 and waits for them.
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	conns := make([]carrier, 0, len(r.conns))
	for c := range r.conns {
		conns = append(conns, c)
	}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { c.Close(0, "") })
	}
	wg.Wait()
	r.wg.Wait()
}
