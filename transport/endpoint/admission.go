package endpoint

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// The reasons to refuse a connection on its first packet.
var (
	errTooManyPending = errors.New("too many handshakes at once")
	errTooManyPerAddr = errors.New("too many connections from this address")
)

// admission counts connections before anything else is known of them. Its maps are bounded by the
// connections there are: a handshake from a forged address leaves within the handshake timeout.
type admission struct {
	maxPending, maxPerAddr int
	exempt                 func(netip.Addr) bool

	refused, refusedPending, refusedPerAddr atomic.Uint64

	mu      sync.Mutex
	pending int
	perAddr map[netip.Prefix]int
}

// ticket is one admitted connection.
type ticket struct {
	a       *admission
	source  netip.Prefix // zero: not counted by address
	start   time.Time
	pending bool // guarded by a.mu
}

type ticketKey struct{}

// admit counts a new connection until ctx ends, and returns a context that carries its ticket.
func (a *admission) admit(ctx context.Context, remote net.Addr, now time.Time) (context.Context, error) {
	t := &ticket{a: a, start: now, pending: true}
	if addr, ok := addrOf(remote); ok && a.maxPerAddr >= 0 && !a.exempt(addr) {
		t.source = sourceOf(addr)
	}
	if err := a.enter(t); err != nil {
		a.refused.Add(1)
		if errors.Is(err, errTooManyPending) {
			a.refusedPending.Add(1)
		} else {
			a.refusedPerAddr.Add(1)
		}
		return nil, err
	}
	context.AfterFunc(ctx, t.leave)
	return context.WithValue(ctx, ticketKey{}, t), nil
}

func (a *admission) enter(t *ticket) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending >= a.maxPending {
		return errTooManyPending
	}
	if t.source.IsValid() {
		if a.perAddr[t.source] >= a.maxPerAddr {
			return errTooManyPerAddr
		}
		if a.perAddr == nil {
			a.perAddr = make(map[netip.Prefix]int)
		}
		a.perAddr[t.source]++
	}
	a.pending++
	return nil
}

// accepted ends the handshake's part of a ticket.
func (t *ticket) accepted() {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	t.settle()
}

func (t *ticket) settle() {
	if t.pending {
		t.pending = false
		t.a.pending--
	}
}

func (t *ticket) leave() {
	a := t.a
	a.mu.Lock()
	defer a.mu.Unlock()
	t.settle()
	if !t.source.IsValid() {
		return
	}
	if a.perAddr[t.source]--; a.perAddr[t.source] <= 0 {
		delete(a.perAddr, t.source)
	}
}

// addrOf returns the IP address of a network address.
func addrOf(a net.Addr) (netip.Addr, bool) {
	if known, ok := a.(interface{ AddrPort() netip.AddrPort }); ok { // of UDP and TCP
		addr := known.AddrPort().Addr()
		return addr.Unmap(), addr.IsValid()
	}
	ap, err := netip.ParseAddrPort(a.String())
	return ap.Addr().Unmap(), err == nil
}

// sourceOf is what a limit counts: one IPv4 address, or the /64 that an IPv6 user has to himself.
func sourceOf(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.WithZone("").Prefix(bits) // fails on bad bits only
	return p
}
