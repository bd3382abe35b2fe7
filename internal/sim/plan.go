package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/backoff"
	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// Plan is a whole random run: a cluster, who publishes and watches, and what goes wrong when. All of it follows from the
// seed.
type Plan struct {
	Seed       uint64
	Shape      string
	Topology   Topology
	Relays     []RelayConfig
	Net        netsim.Link // to and between clients
	Publishers []PublisherConfig
	Viewers    []ViewerConfig
	Episodes   []Episode
	// Basic says that a wire without timestamps or properties may be on the way: groups are retained for the default time
	// only, and arrive with the times at which relays got them.
	Basic bool
	// Mixed says that relays speak different versions.
	Mixed bool
}

// newPlan draws a plan.
func newPlan(seed uint64) *Plan {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), plan: &Plan{Seed: seed}}
	d.topology()
	d.relays()
	d.audience()
	d.episodes()
	return d.plan
}

// drawer draws a plan.
type drawer struct {
	*rand.Rand
	plan     *Plan
	versions versionMix
}

// between returns a random duration.
func (d *drawer) between(a, b time.Duration) time.Duration {
	return a + time.Duration(d.Int64N(int64(b-a)))
}

// chance is true with a probability in percent.
func (d *drawer) chance(percent int) bool { return d.IntN(100) < percent }

// topology draws relays and links with their prices and properties.
func (d *drawer) topology() {
	p := d.plan
	n := 3 + min(d.IntN(10), d.IntN(10)) // up to 12, mostly fewer
	shapes := []struct {
		name string
		make func() Topology
	}{
		{"chain", func() Topology { return Chain(n) }},
		{"ring", func() Topology { return Ring(n) }},
		{"ring with a chord", func() Topology { return Chord(max(4, n)) }},
		{"star", func() Topology { return Star(n) }},
		{"mesh", func() Topology { return Mesh(min(n, 6)) }},
		{"diamond", Diamond},
		{"random", func() Topology { return RandomGraph(d.Rand, n, 1+d.IntN(n)) }},
		{"dense random", func() Topology { return RandomGraph(d.Rand, n, 2*n) }},
	}
	shape := shapes[d.IntN(len(shapes))]
	p.Shape, p.Topology = shape.name, shape.make()
	priced, loss := d.chance(60), d.chance(40)
	for i := range p.Topology.Links {
		l := &p.Topology.Links[i]
		l.WebTransport = d.chance(30)
		if priced && d.chance(70) {
			cost := d.Uint64N(20)
			l.Cost = &cost
		}
		l.Net = &netsim.Link{Delay: d.between(0, 60*time.Millisecond)}
		if d.chance(50) {
			l.Net.Jitter = d.between(0, l.Net.Delay/2+time.Millisecond)
		}
		if loss && d.chance(50) {
			l.Net.Loss = d.Float64() * 0.02
		}
		if d.chance(20) {
			l.Net.Bandwidth = 4_000_000 + d.Int64N(20_000_000)
		}
	}
	p.Net = netsim.Link{Delay: d.between(time.Millisecond, 30*time.Millisecond)}
}

// versionMix says which versions there are in a cluster.
type versionMix uint8

const (
	newest versionMix = iota // moq-lite 06 alone
	recent                   // 05 and 06
	old                      // 04 to 06
)

// upTo is a list of versions from 04 up to one.
func upTo(v message.Version) (all []message.Version) {
	for ; v >= message.Lite04; v-- {
		all = append(all, v)
	}
	return all
}

// version draws what a peer speaks.
func (d *drawer) version() []message.Version {
	switch d.versions {
	case recent:
		return upTo(message.Lite05 + message.Version(d.IntN(2)))
	case old:
		return upTo(message.Lite04 + message.Version(d.IntN(3)))
	default:
		return nil
	}
}

// relays draws how the relays are set up.
func (d *drawer) relays() {
	p := d.plan
	switch n := d.IntN(100); {
	case n < 60:
		d.versions = newest
	case n < 85:
		d.versions = recent
	default:
		d.versions = old
	}
	p.Basic, p.Mixed = d.versions == old, d.versions != newest
	common := RelayConfig{Plain: d.versions == newest && d.chance(15)}
	if d.chance(30) {
		common.QUIC.IdleTimeout = d.between(5*time.Second, 10*time.Second)
	}
	if d.chance(80) {
		common.Backoff = backoff.Policy{Max: 5 * time.Second}
	}
	if d.chance(50) {
		common.Hedge = origin.DefaultHedge
	}
	keys := d.chance(50)
	for i := range p.Topology.Relays {
		r := common
		r.ID = route.Hop(i + 1)
		r.Accept, r.Dial = d.version(), d.version()
		if keys {
			r.Keys = new(endpoint.Keys)
			r.Keys.StatelessReset[0] = byte(i)
		}
		p.Relays = append(p.Relays, r)
	}
}

// access draws where and how a client comes in.
func (d *drawer) access() Access {
	return Access{Relay: d.IntN(d.plan.Topology.Relays), WebTransport: d.chance(30), Versions: d.clientVersions()}
}

func (d *drawer) clientVersions() []client.Version {
	if d.versions == newest && d.chance(80) {
		return nil
	}
	return d.version()
}

// content draws what is published.
func (d *drawer) content(name string) Content {
	c := Content{
		Name: name, Track: "video",
		Interval: d.between(40*time.Millisecond, 200*time.Millisecond).Truncate(time.Millisecond),
		PerGroup: 2 + d.IntN(20), Size: 40 + d.IntN(1400),
		Info: media.Info{Priority: uint8(d.IntN(256)), MaxAge: time.Minute, Timescale: 90_000},
	}
	if d.plan.Basic {
		c.Info = media.DefaultInfo()
	}
	return c
}

// careful is the max age of viewers who must get everything that can be had.
const careful = 30 * time.Second

// audience draws broadcasts with their publishers and viewers.
func (d *drawer) audience() {
	p := d.plan
	for i := range 1 + d.IntN(3) {
		c := d.content(fmt.Sprintf("show/%d", i))
		for range 1 + d.IntN(2) {
			cost := d.Uint64N(10)
			p.Publishers = append(p.Publishers, PublisherConfig{
				Content: c, Access: d.access(), Hop: route.Hop(1000 + len(p.Publishers)),
				Cost: route.Cost{Warm: cost, Cold: cost}, Backfill: d.IntN(4),
			})
		}
		for range 1 + d.IntN(3) {
			maxAge := careful
			if d.chance(30) {
				maxAge = d.between(0, 2*time.Second)
			}
			access := d.access()
			if d.chance(15) {
				access.QUIC = endpoint.QUIC{ReceiveWindow: 32 << 10, StreamReceiveWindow: 16 << 10}
				access.Slow, access.Asleep = 200+d.IntN(5000), d.chance(30)
			}
			p.Viewers = append(p.Viewers, ViewerConfig{Content: c, Access: access, MaxAge: maxAge, Unstamped: p.Basic})
		}
	}
}

func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s of %d relays, %d links", p.Seed, p.Shape, p.Topology.Relays, len(p.Topology.Links))
	for i, r := range p.Relays {
		fmt.Fprintf(&b, "\n  relay %d: accepts %v, dials %v", i, r.Accept, r.Dial)
		if r.QUIC.IdleTimeout != 0 {
			fmt.Fprintf(&b, ", idle timeout %v", r.QUIC.IdleTimeout)
		}
		if r.Hedge != 0 {
			fmt.Fprintf(&b, ", hedges after %v", r.Hedge)
		}
		if r.Plain {
			b.WriteString(", takes peers for clients")
		}
	}
	for i, l := range p.Topology.Links {
		fmt.Fprintf(&b, "\n  link %d: %d dials %s://%d", i, l.From, l.scheme(), l.To)
		if l.Cost != nil {
			fmt.Fprintf(&b, " at %d", *l.Cost)
		}
		fmt.Fprintf(&b, ", %+v", *l.Net)
	}
	for i, c := range p.Publishers {
		fmt.Fprintf(&b, "\n  publisher %d of %s at relay %d %v, cost %d, %v x %d", i, c.Name, c.Relay, c.Versions, c.Cost.Warm, c.Interval, c.PerGroup)
	}
	for i, v := range p.Viewers {
		fmt.Fprintf(&b, "\n  viewer %d of %s at relay %d %v, max age %v", i, v.Name, v.Relay, v.Versions, v.MaxAge)
		switch {
		case v.Asleep:
			b.WriteString(", reads nothing")
		case v.Slow > 0:
			fmt.Fprintf(&b, ", reads %d bytes a second", v.Slow)
		}
	}
	for _, s := range p.steps() {
		fmt.Fprintf(&b, "\n  %v: %s", s.at, s.what)
	}
	return b.String()
}

// step is one thing to do.
type step struct {
	at   time.Duration // since the cluster is linked
	what string
	do   func(*Run)
}

// steps are the steps of all episodes, in order.
func (p *Plan) steps() []step {
	var all []step
	for _, e := range p.Episodes {
		all = append(all, e.steps...)
	}
	slices.SortStableFunc(all, func(a, b step) int { return int(a.at - b.at) })
	return all
}
