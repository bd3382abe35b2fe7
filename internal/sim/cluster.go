package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/paths"
)

// Config of a Cluster.
type Config struct {
	// Seed decides which packets are lost and how long redials pause.
	Seed     uint64
	Topology Topology
	// Net is what lies between any two hosts that the topology says nothing else about.
	Net netsim.Link
	// Relay may adapt each relay; nil leaves all at their defaults.
	Relay func(i int, cfg *RelayConfig)
	// Level is what the log keeps.
	Level slog.Level
}

// Cluster is relays, publishers and viewers on one network. Its methods belong to the goroutine of the test, the root of
// the bubble.
type Cluster struct {
	Net    *netsim.Network
	Relays []*Relay
	log    *Log

	publishers []*Publisher
	viewers    []*Viewer
	watchers   []*Watcher
	announcers []*Announcer
	others     []*machine
	samplers   []func()
	machines   []*machine // of all of them
	links      []Link
	cuts       map[[2]netip.Addr]bool // between two hosts, the lower first
	isolated   map[netip.Addr]bool
	faulty     func() // called before and after every fault; nil = nobody wants to know
	wg         sync.WaitGroup
}

// New starts a cluster. The caller must Stop it.
func New(cfg Config) (*Cluster, error) {
	c := &Cluster{
		Net: netsim.New(netsim.Config{Seed: cfg.Seed, Link: cfg.Net}), log: newLog(cfg.Level), links: cfg.Topology.Links,
		cuts: make(map[[2]netip.Addr]bool), isolated: make(map[netip.Addr]bool),
	}
	for i := range cfg.Topology.Relays {
		c.Relays = append(c.Relays, c.newRelay(cfg, i))
		c.Net.SetHost(c.Relays[i].name, c.Relays[i].host)
	}
	for _, l := range cfg.Topology.Links {
		if l.Net != nil {
			c.Net.SetLink(c.Relays[l.From].host, c.Relays[l.To].host, *l.Net)
		}
	}
	for _, r := range c.Relays {
		if err := r.Start(); err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return c, nil
}

// Stop ends everything that still runs, viewers first.
func (c *Cluster) Stop() {
	c.Leave()
	for _, r := range c.Relays {
		r.Stop()
	}
	c.wg.Wait()
	c.Net.Close()
}

// Leave ends viewers, watchers and publishers, and returns when their sessions have ended.
func (c *Cluster) Leave() {
	var wg sync.WaitGroup
	for _, v := range c.viewers {
		wg.Go(v.Stop)
	}
	for _, w := range c.watchers {
		wg.Go(w.Stop)
	}
	for _, m := range c.others {
		wg.Go(m.stop)
	}
	wg.Wait()
	for _, p := range c.publishers {
		wg.Go(p.Stop)
	}
	for _, a := range c.announcers {
		wg.Go(a.Stop)
	}
	wg.Wait()
}

// Sampled adds something to look at now and then while time passes.
func (c *Cluster) Sampled(look func()) { c.samplers = append(c.samplers, look) }

// How often conditions and samples are looked at.
const (
	poll   = 10 * time.Millisecond
	sample = 100 * time.Millisecond
)

// Run lets time pass.
func (c *Cluster) Run(d time.Duration) {
	end := time.Now().Add(d)
	for now := time.Now(); now.Before(end); now = time.Now() {
		next := now.Truncate(sample).Add(sample) // the same for all
		time.Sleep(min(end.Sub(now), next.Sub(now)))
		synctest.Wait()
		if time.Now().Equal(next) {
			c.look()
		}
	}
	synctest.Wait()
}

func (c *Cluster) look() {
	for _, f := range c.samplers {
		f()
	}
}

// Await lets time pass until a condition holds, and reports whether it did within d.
func (c *Cluster) Await(d time.Duration, condition func() bool) bool {
	end := time.Now().Add(d)
	for {
		synctest.Wait()
		if condition() {
			return true
		}
		if !time.Now().Before(end) {
			return false
		}
		c.Run(poll)
	}
}

// Log returns what the relays and clients have logged, and the test with Logf.
func (c *Cluster) Log() string { return c.log.String() }

// Logf adds a line to the log.
func (c *Cluster) Logf(format string, args ...any) {
	c.log.Logger("test").Warn(fmt.Sprintf(format, args...))
}

// nextHost gives a client an address of its own.
func (c *Cluster) nextHost() netip.Addr {
	n := len(c.machines) + 1
	return netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
}

// relayHosts are where relays live, so that they know each other.
var relayHosts = netip.MustParsePrefix("10.0.0.0/24")

// admission lets everybody in; sessions from the addresses of relays are peers.
type admission struct {
	plain bool // there are no peers
}

var everything = func() paths.Set {
	all, err := paths.ParseSet("**")
	if err != nil {
		panic(err) // a constant
	}
	return all
}()

// Authorize implements auth.Authorizer.
func (a admission) Authorize(_ context.Context, r auth.Request) (auth.Grant, error) {
	remote, err := netip.ParseAddrPort(r.Remote)
	peer := err == nil && relayHosts.Contains(remote.Addr()) && !a.plain
	return auth.Grant{Publish: everything, Subscribe: everything, Peer: peer}.For(r.Role)
}

// Linked reports whether every relay that runs holds a session with every running relay that it dials.
func (c *Cluster) Linked() bool {
	for _, r := range c.Relays {
		if !r.linked() {
			return false
		}
	}
	return true
}
