package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/transport/quic"
	"github.com/moqmesh/moqmesh/transport/webtransport"
)

// attempt connects to one address, to the point where the connection can be used.
func (d *Dialer) attempt(ctx context.Context, p *plan, addr netip.AddrPort) (carrier, error) {
	connect := d.overQUIC
	if p.webSocket {
		connect = d.overTCP
	}
	c, err := connect(ctx, p, addr)
	if err != nil {
		return nil, err
	}
	if !d.conns.add(c) || !d.sock.conns.add(c) {
		c.Close(0, "")
		return nil, ErrDialerClosed
	}
	if p.confirm == nil {
		return c, nil
	}
	if err := p.confirm(ctx, c); err != nil {
		c.Close(0, "")
		return nil, err
	}
	return c, nil
}

// overQUIC connects as raw QUIC or WebTransport.
func (d *Dialer) overQUIC(ctx context.Context, p *plan, addr netip.AddrPort) (carrier, error) {
	protocols := p.protocols
	if p.webTransport {
		protocols = []string{h3}
	}
	q, err := d.sock.tr.Dial(ctx, net.UDPAddrFromAddrPort(addr), p.tls.TLS(p.host, protocols), p.settings.config(0))
	if err != nil {
		return nil, err
	}
	pinned := p.pinned()
	if p.webTransport {
		return carried(webtransport.Connect(ctx, q, p.url, webtransport.ClientConfig{Protocols: p.protocols, Pinned: pinned}))
	}
	protocol := q.ConnectionState().TLS.NegotiatedProtocol
	return quic.New(q, quic.Options{Dialed: true, Pinned: pinned, PlainCodes: plain(d.cfg.PlainCodes, protocol)}), nil
}

// carried keeps a nil connection from becoming a carrier.
func carried[C carrier](c C, err error) (carrier, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// pinned reports whether the peer is known by the fingerprint of its certificate.
func (p *plan) pinned() bool { return len(p.tls.Fingerprints) > 0 && !p.tls.Insecure }

// race resolves the host and tries its addresses, each with a head start on the next (RFC 8305). It returns
// when every attempt has ended.
func (d *Dialer) race(ctx context.Context, p *plan) (carrier, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &racer{
		outcomes: make(chan outcome),
		lookups:  make(chan lookup, 2),
		start:    func(addr netip.AddrPort) (carrier, error) { return d.attempt(ctx, p, addr) },
		delay:    d.cfg.Race,
		gate:     time.NewTimer(0),
		hold:     time.NewTimer(time.Hour),
		patience: d.cfg.ResolutionDelay,
	}
	r.hold.Stop()
	defer r.wg.Wait()
	defer cancel()
	defer r.gate.Stop()
	defer r.hold.Stop()
	if err := r.resolve(ctx, d.cfg.Resolver, p); err != nil {
		return nil, err
	}
	winner, err := r.run(ctx)
	cancel()
	for range r.active { // the rest fail now, or were as fast
		if o := <-r.outcomes; o.conn != nil {
			o.conn.Close(0, "")
		}
	}
	return winner, err
}

// The address families in their order of preference.
const (
	ip6 = iota
	ip4
)

type lookup struct {
	family int
	addrs  []netip.AddrPort
	err    error
}

type outcome struct {
	addr netip.AddrPort
	conn carrier
	err  error
}

// racer is one race. Only run and what it calls touch its state.
type racer struct {
	start    func(netip.AddrPort) (carrier, error)
	delay    time.Duration
	outcomes chan outcome
	lookups  chan lookup
	wg       sync.WaitGroup

	queues  [2][]netip.AddrPort // by family
	last    int                 // family of the last attempt
	asked   [2]bool             // the lookup of the family has not answered
	active  int
	gate    *time.Timer // when it fires, the next attempt may start
	open    bool        // it has fired
	hold    *time.Timer // when it fires, IPv4 no longer waits for the answer about IPv6
	errs    []error
	dnsErrs []error

	patience time.Duration // of hold, from the answer about IPv4
}

// resolve fills the queues, or starts the lookups that will.
func (r *racer) resolve(ctx context.Context, resolver Resolver, p *plan) error {
	r.last = ip4 // so that IPv6 goes first
	if len(p.addrs) > 0 {
		r.queues[ip6] = p.addrs
		return nil
	}
	port, err := strconv.ParseUint(p.port, 10, 16)
	if err != nil {
		return fmt.Errorf("port: %w", err)
	}
	if addr, err := netip.ParseAddr(p.host); err == nil {
		r.queues[ip6] = []netip.AddrPort{netip.AddrPortFrom(addr, uint16(port))}
		return nil
	}
	for family, network := range [...]string{ip6: "ip6", ip4: "ip4"} {
		r.asked[family] = true
		r.wg.Go(func() {
			addrs, err := resolver.LookupNetIP(ctx, network, p.host)
			l := lookup{family: family, err: err}
			for _, addr := range addrs {
				l.addrs = append(l.addrs, netip.AddrPortFrom(addr.Unmap(), uint16(port)))
			}
			r.lookups <- l
		})
	}
	return nil
}

func (r *racer) run(ctx context.Context) (carrier, error) {
	held := true
	for {
		r.launch(held)
		if r.active == 0 && !r.asked[ip6] && !r.asked[ip4] && len(r.queues[ip6])+len(r.queues[ip4]) == 0 {
			return nil, r.failure()
		}
		select {
		case l := <-r.lookups:
			r.asked[l.family] = false
			r.queues[l.family] = l.addrs
			if l.family == ip4 {
				r.hold.Reset(r.patience)
			}
			if l.err != nil {
				r.dnsErrs = append(r.dnsErrs, l.err)
			}
		case o := <-r.outcomes:
			r.active--
			if o.err == nil {
				return o.conn, nil
			}
			r.errs = append(r.errs, fmt.Errorf("%s: %w", o.addr, o.err))
			r.open = true
		case <-r.gate.C:
			r.open = true
		case <-r.hold.C:
			held = false
		case <-ctx.Done():
			return nil, errors.Join(append(r.errs, context.Cause(ctx))...)
		}
	}
}

// launch starts the next attempt if it is time for one and there is an address.
func (r *racer) launch(held bool) {
	addr, ok := r.next(held)
	if !ok {
		return
	}
	r.open = false
	r.gate.Reset(r.delay)
	r.active++
	r.wg.Go(func() {
		conn, err := r.start(addr)
		r.outcomes <- outcome{addr, conn, err}
	})
}

// next takes an address, of the families in turn.
func (r *racer) next(held bool) (addr netip.AddrPort, ok bool) {
	if !r.open {
		return addr, false
	}
	family := 1 - r.last
	if len(r.queues[family]) == 0 {
		family = r.last
	}
	if len(r.queues[family]) == 0 || (family == ip4 && held && r.asked[ip6]) {
		return addr, false
	}
	addr, r.queues[family] = r.queues[family][0], r.queues[family][1:]
	r.last = family
	return addr, true
}

// failure is the sum of all attempts, or of the lookups if there was nothing to attempt.
func (r *racer) failure() error {
	switch {
	case len(r.errs) > 0:
		return errors.Join(r.errs...)
	case len(r.dnsErrs) > 0:
		return errors.Join(distinct(r.dnsErrs)...)
	}
	return ErrNoAddress
}

// distinct leaves out errors that say the same as one before: both families of addresses are asked about, and mostly fail
// alike.
func distinct(errs []error) (out []error) {
	for _, err := range errs {
		if !slices.ContainsFunc(out, func(e error) bool { return e.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return out
}
