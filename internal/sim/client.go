package sim

import (
	"context"
	"net/netip"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// redial is the pause of clients before they dial again.
const redial = 500 * time.Millisecond

// Access says how a publisher or viewer comes in.
type Access struct {
	Relay        int // where
	WebTransport bool
	Versions     []client.Version // nil = all
	QUIC         endpoint.QUIC
}

// machine is where a client runs: it has an address, and sessions one after the other.
type machine struct {
	of     *Cluster
	name   string
	host   netip.Addr
	access Access
	dialer *endpoint.Dialer
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
}

// start runs the client's goroutine until stop.
func (c *Cluster) start(name string, access Access, run func(ctx context.Context, m *machine)) (*machine, error) {
	m := &machine{of: c, name: name, host: c.nextHost(), access: access, done: make(chan struct{})}
	pc, err := c.Net.Listen(netip.AddrPortFrom(m.host, 0).String())
	if err != nil {
		return nil, err
	}
	m.dialer, err = endpoint.NewDialer(endpoint.DialConfig{
		PacketConn: pc, QUIC: access.QUIC, Resolver: c.Net, TLS: tlsconf.ClientConfig{Insecure: true},
		Protocols: lite.Tokens(access.Versions),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	go func() {
		defer close(m.done)
		defer m.dialer.Close()
		run(ctx, m)
	}()
	return m, nil
}

func (m *machine) stop() {
	m.cancel()
	<-m.done
}

// Host is the address of the machine.
func (m *machine) Host() netip.Addr { return m.host }

// sessions runs f with one session after the other, until ctx ends.
func (m *machine) sessions(ctx context.Context, cfg client.Config, f func(context.Context, *client.Client)) {
	log := m.of.log.Logger(m.name)
	cfg.Dialer, cfg.Versions, cfg.Logger = m.dialer, m.access.Versions, log
	scheme := scheme(m.access.WebTransport)
	for ctx.Err() == nil {
		cl, err := client.Dial(ctx, m.of.Relays[m.access.Relay].URL(scheme), cfg)
		if err != nil {
			log.Info("dial failed", "err", err)
		} else {
			f(ctx, cl)
			cl.Close()
			log.Info("session ended", "cause", cl.Err())
		}
		sleep(ctx, redial)
	}
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
