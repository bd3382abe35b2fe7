package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/internal/backoff"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/relay"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// port is where relays listen.
const port = 443

// RelayConfig is what distinguishes a relay.
type RelayConfig struct {
	// ID is its hop id: i+1 unless Config.Relay says otherwise; 0 = random at each start.
	ID route.Hop
	// Accept and Dial are the versions that it speaks; nil = all.
	Accept, Dial []message.Version
	QUIC         endpoint.QUIC
	// Keys make peers learn at once that the relay has restarted; nil = they wait for their idle timeout.
	Keys *endpoint.Keys
	// Plain admits peers like clients.
	Plain   bool
	Cache   media.CacheConfig
	Backoff backoff.Policy
	// Hedge is the floor of hedged failover; 0 = off.
	Hedge time.Duration
}

// Relay is one relay of a cluster, running or not.
type Relay struct {
	of    *Cluster
	name  string
	host  netip.Addr
	cfg   RelayConfig
	links []Link // that it dials
	rand  func() float64

	unplugged bool // its dials, see Unplug

	mu      sync.Mutex // between the test and what it does in the background
	running *relay.Relay
	dials   *cable         // what it dials from
	gone    sync.WaitGroup // predecessors that are not quite dead
}

func (c *Cluster) newRelay(cfg Config, i int) *Relay {
	r := &Relay{
		of: c, name: fmt.Sprintf("relay%d", i), host: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
		cfg: RelayConfig{ID: route.Hop(i + 1)},
	}
	if cfg.Relay != nil {
		cfg.Relay(i, &r.cfg)
	}
	for _, l := range cfg.Topology.Links {
		if l.From == i {
			r.links = append(r.links, l)
		}
	}
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(cfg.Seed, uint64(i)))
	r.rand = func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return chance.Float64()
	}
	return r
}

// Host is the address of the relay.
func (r *Relay) Host() netip.Addr { return r.host }

// Up is the relay while it runs, else nil.
func (r *Relay) Up() *relay.Relay {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// URL is where clients dial the relay, with the scheme https or moqt.
func (r *Relay) URL(scheme string) string { return scheme + "://" + r.name + "/" }

// Start starts the relay, after what is left of its predecessor has gone.
func (r *Relay) Start() error {
	r.gone.Wait()
	listen, err := r.of.Net.Listen(netip.AddrPortFrom(r.host, port).String())
	if err != nil {
		return err
	}
	dial, err := r.of.Net.Listen(netip.AddrPortFrom(r.host, 0).String())
	if err != nil {
		return err
	}
	dials := &cable{socket: dial.(socket)}
	cfg, err := r.config(listen, dials)
	if err != nil {
		return err
	}
	running, err := relay.New(cfg)
	if err != nil {
		return err
	}
	r.of.fault(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running, r.dials = running, dials
	})
	return nil
}

func (r *Relay) config(listen, dial net.PacketConn) (relay.Config, error) {
	peers, err := r.peers()
	return relay.Config{
		Hop:          r.cfg.ID,
		Node:         r.name,
		Listen:       endpoint.Config{PacketConn: listen, QUIC: r.cfg.QUIC, Keys: r.cfg.Keys},
		Certificates: tlsconf.Config{Generate: []string{r.name}},
		Versions:     r.cfg.Accept,
		Dial: endpoint.DialConfig{
			PacketConn: dial, QUIC: r.cfg.QUIC, Resolver: r.of.Net, TLS: tlsconf.ClientConfig{Insecure: true},
		},
		DialVersions: r.cfg.Dial,
		Peers:        peers,
		Cluster:      cluster.Config{Backoff: r.cfg.Backoff, Rand: r.rand},
		Auth:         admission{plain: r.cfg.Plain},
		Cache:        r.cfg.Cache,
		Hedge:        r.cfg.Hedge,
		Logger:       r.of.log.Logger(r.name),
	}, err
}

// peers are the relays that this one dials.
func (r *Relay) peers() ([]cluster.Entry, error) {
	var values []any
	for _, l := range r.links {
		url := r.of.Relays[l.To].URL(l.scheme())
		if l.Cost != nil {
			url += fmt.Sprintf("?cost=%d", *l.Cost)
		}
		values = append(values, url)
	}
	list, err := cluster.Parse(values, cluster.Options{})
	return list.Entries, err
}

// take makes the relay count as not running, and returns what ran.
func (r *Relay) take() (running *relay.Relay) {
	r.of.fault(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		running, r.running = r.running, nil
	})
	return running
}

// Crash stops the relay without a word to anybody: from now on no packet of it arrives anywhere.
func (r *Relay) Crash() {
	running := r.take()
	if running == nil {
		return
	}
	r.of.Net.Isolate(r.host)
	r.gone.Go(func() {
		_ = running.Close() // never fails
		r.of.Net.Rejoin(r.host)
	})
}

// Unplug cuts every session that the relay has dialed, and those that it dials, from one call with true to one with false.
// Sessions that others have dialed live on.
func (r *Relay) Unplug(out bool) {
	r.of.fault(func() {
		r.unplugged = out
		r.dials.out.Store(out)
	})
}

// Close begins to close the relay as on a second signal: peers are told that their sessions end.
func (r *Relay) Close() {
	if running := r.take(); running != nil {
		r.gone.Go(func() { _ = running.Close() }) // never fails
	}
}

// Stop closes the relay and returns when nothing of it is left.
func (r *Relay) Stop() {
	r.Close()
	r.gone.Wait()
}

// Drain begins to shut the relay down as on a first signal, and does not wait for it. Sessions that are left after d are
// closed.
func (r *Relay) Drain(d time.Duration) {
	running := r.take()
	if running == nil {
		return
	}
	r.gone.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		_ = running.Shutdown(ctx) // it may be cut short
	})
}

// dialPort is where the relay dials from.
func (r *Relay) dialPort() uint16 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return addrPort(r.dials.LocalAddr()).Port()
}

func addrPort(a net.Addr) netip.AddrPort {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		panic(err) // the network has no other addresses
	}
	return ap
}

// linked reports whether the relay holds a session with every relay that it dials, as far as these run.
func (r *Relay) linked() bool {
	running := r.Up()
	if running == nil {
		return true
	}
	sessions := make(map[string]int)
	for _, p := range running.Peers() {
		sessions[p.Key] = len(p.Sessions)
	}
	for _, l := range r.links {
		to := r.of.Relays[l.To]
		if to.Up() != nil && sessions[to.URL(l.scheme())] == 0 {
			return false
		}
	}
	return true
}
