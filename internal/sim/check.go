package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
)

// Loops lists the hop lists that hold an id twice, or that of the relay which has the route. There must never be one.
func (c *Cluster) Loops() (faults []string) {
	for _, r := range c.Relays {
		if running := r.Up(); running != nil {
			faults = append(faults, r.loops(running.Origin().Routes())...)
		}
	}
	return faults
}

func (r *Relay) loops(routes []origin.RouteInfo) (faults []string) {
	for _, have := range routes {
		if loops(r.cfg.ID, have.Hops) {
			faults = append(faults, fmt.Sprintf("%s has a route to %q by %v", r.name, have.Prefix, have.Hops))
		}
	}
	return faults
}

func loops(own route.Hop, hops []route.Hop) bool {
	for i, h := range hops {
		if h != 0 && (h == own || slices.Contains(hops[:i], h)) {
			return true
		}
	}
	return false
}

// Residue lists what relays hold though nobody publishes or watches any more.
func (c *Cluster) Residue() (faults []string) {
	for _, r := range c.Relays {
		running := r.Up()
		if running == nil {
			continue
		}
		n, m := running.Origin().Counters(), running.State().Metrics().Own
		if n.Routes+n.Fronts+n.Tracks+n.Readers+n.Upstreams+n.HoldsPending+m.CacheGroups != 0 || m.CacheBytes != 0 {
			faults = append(faults, fmt.Sprintf("%s: %+v, cache: %d groups, %d bytes", r.name, n, m.CacheGroups, m.CacheBytes))
		}
	}
	return faults
}

// leftOver is how long what was left may take to go: relays that have subscribed in a circle just when the last route went
// wait for each other for ten seconds.
const leftOver = 12 * time.Second

// Empty ends all clients and lists what is still there some time later.
func (c *Cluster) Empty() []string {
	c.Leave()
	c.Await(leftOver, func() bool { return len(c.Residue()) == 0 })
	return c.Residue()
}

// Blunders lists what relays and clients log when they, or their peers, break the protocol or do not know why a session
// ends. Between ourselves that never happens, whatever the network does.
func (c *Cluster) Blunders() (lines []string) {
	for line := range strings.Lines(c.Log()) {
		ended := strings.Contains(line, `"session closed"`) || strings.Contains(line, `"session ended"`)
		if strings.Contains(line, `"closing session"`) || ended && (strings.Contains(line, `code 0x1"`) || strings.Contains(line, `code 0x3"`)) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
