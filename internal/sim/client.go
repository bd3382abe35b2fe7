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
	// Slow makes a client read the groups that come at so many bytes a second; Asleep, not at all before it is woken.
	Slow   int
	Asleep bool
}

// machine is where a client runs: it has an address, and sessions one after the other.
type machine struct {
	of     *Cluster
	number int
	name   string
	host   netip.Addr
	port   uint16
	access Access
	dialer *endpoint.Dialer
	pace   *pace           // nil = as fast as can be
	ctx    context.Context // its life
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
}

// start runs the client's goroutine until stop.
func (c *Cluster) start(name string, access Access, run func(ctx context.Context, m *machine)) (*machine, error) {
	m := &machine{of: c, number: len(c.machines), name: name, host: c.nextHost(), access: access, done: make(chan struct{})}
	if access.Slow > 0 || access.Asleep {
		m.pace = newPace(access)
	}
	pc, err := c.Net.Listen(netip.AddrPortFrom(m.host, 0).String())
	if err != nil {
		return nil, err
	}
	m.port = addrPort(pc.LocalAddr()).Port()
	m.dialer, err = endpoint.NewDialer(endpoint.DialConfig{
		PacketConn: pc, QUIC: access.QUIC, Resolver: c.Net, TLS: tlsconf.ClientConfig{Insecure: true},
		Protocols: lite.Tokens(access.Versions),
	})
	if err != nil {
		return nil, err
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	c.machines = append(c.machines, m)
	go func() {
		defer close(m.done)
		defer m.dialer.Close()
		run(m.ctx, m)
	}()
	return m, nil
}

func (m *machine) stop() {
	m.cancel()
	<-m.done
}

// Leave begins to end the client cleanly, and does not wait for it.
func (m *machine) Leave() { m.of.fault(m.cancel) }

// slow reports whether the client reads less than it could.
func (m *machine) slow() bool { return m.pace != nil }

// stopped reports whether the client has left or begun to.
func (m *machine) stopped() bool { return m.ctx.Err() != nil }

// Host is the address of the machine.
func (m *machine) Host() netip.Addr { return m.host }

// Wake lets a slow client read as fast as it can.
func (m *machine) Wake() { m.pace.wake() }

// dial opens a session with the machine's relay.
func (m *machine) dial(ctx context.Context, cfg client.Config) (*client.Client, error) {
	cfg.Dialer, cfg.Versions, cfg.Logger = m.dialer, m.access.Versions, m.of.log.Logger(m.name)
	url := m.of.Relays[m.access.Relay].URL(scheme(m.access.WebTransport))
	if m.pace == nil {
		return client.Dial(ctx, url, cfg)
	}
	conn, err := client.DialConn(ctx, url, cfg)
	if err != nil {
		return nil, err
	}
	return client.New(ctx, &slowConn{conn, m.pace}, "/", cfg)
}

// sessions runs f with one session after the other, until ctx ends.
func (m *machine) sessions(ctx context.Context, cfg client.Config, f func(context.Context, *client.Client)) {
	log := m.of.log.Logger(m.name)
	for ctx.Err() == nil {
		cl, err := m.dial(ctx, cfg)
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

// Dial opens a session for a test to use as it likes. It ends with the cluster, at the latest when everybody leaves.
func (c *Cluster) Dial(ctx context.Context, access Access, cfg client.Config) (*client.Client, error) {
	type result struct {
		cl  *client.Client
		err error
	}
	dialed := make(chan result, 1)
	m, err := c.start("client", access, func(life context.Context, m *machine) {
		cl, err := m.dial(ctx, cfg)
		dialed <- result{cl, err}
		if err == nil {
			<-life.Done()
			cl.Close()
		}
	})
	if err != nil {
		return nil, err
	}
	c.others = append(c.others, m)
	r := <-dialed
	return r.cl, r.err
}
