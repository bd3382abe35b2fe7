package lan

import (
	"cmp"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"time"
)

// event says what became of a peer.
type event struct {
	kind eventKind
	peer Peer
	err  error // for eventUnusable
}

type eventKind uint8

const (
	eventFound eventKind = iota
	eventChanged
	eventLost
	eventUnusable // the record is of our group but cannot be dialed
)

// directory makes one list of peers out of what all interfaces have found. It is pure.
type directory struct {
	group group
	self  record

	peers    map[string]Peer       // by id: those we dial
	primary  map[string]netip.Addr // by instance: the address in the name of a peer without node
	unusable map[string]error      // by instance: what was said already
}

func newDirectory(g group, self record) *directory {
	return &directory{group: g, self: self, peers: make(map[string]Peer)}
}

// merge puts the findings of all interfaces together: one entry per instance, with all addresses. What was told last
// counts.
func merge(links [][]found) []found {
	byInstance := make(map[string]found)
	for _, l := range links {
		for _, f := range l {
			have, ok := byInstance[f.instance]
			addrs := slices.Concat(have.addrs, f.addrs)
			if ok && !f.since.After(have.since) {
				f = have
			}
			slices.SortFunc(addrs, netip.Addr.Compare)
			f.addrs = slices.Compact(addrs)
			byInstance[f.instance] = f
		}
	}
	out := slices.Collect(maps.Values(byInstance))
	// Newest first: of several instances of one node the last that was started counts (L11).
	slices.SortFunc(out, func(a, b found) int {
		return cmp.Or(b.since.Compare(a.since), cmp.Compare(b.instance, a.instance))
	})
	return out
}

// update works out the list anew and returns what has changed, the lost first.
func (d *directory) update(links [][]found) (events []event) {
	next := make(map[string]Peer)
	primary := make(map[string]netip.Addr)
	unusable := make(map[string]error)
	taken := make(map[netip.AddrPort]bool) // by instances that were heard of later
	for _, f := range merge(links) {
		r := record{app: d.self.app, instance: f.instance, port: f.port}
		r.readTXT(f.txt)
		if r.instance == d.self.instance || r.check() != nil || !d.group.accepts(&r) {
			continue
		}
		if claim(taken, &f) || !weDial(d.self.id(), r.id()) {
			continue
		}
		if _, taken := next[r.id()]; taken {
			continue
		}
		p, err := d.group.peerOf(&r, f.addrs, d.primary[f.instance])
		if err != nil {
			unusable[f.instance] = err
			if d.unusable[f.instance] == nil {
				events = append(events, event{eventUnusable, p, err})
			}
			continue
		}
		next[p.ID] = p
		if len(p.Addrs) > 0 {
			primary[f.instance] = primaryOf(&p)
		}
	}
	events = append(changes(d.peers, next), events...)
	d.peers, d.primary, d.unusable = next, primary, unusable
	return events
}

// claim takes the addresses of an instance for it. Those that later instances have taken it loses: two sockets do not
// share an address, so it was killed, or moved, and its records outlive it. It reports whether it has lost all that can
// be dialed.
func claim(taken map[netip.AddrPort]bool, f *found) (replaced bool) {
	free := f.addrs[:0:0]
	for _, a := range f.addrs {
		addr := netip.AddrPortFrom(a.Unmap(), f.port)
		if !taken[addr] {
			free = append(free, a)
			taken[addr] = true
		}
	}
	replaced = len(free) < len(f.addrs) && len(candidates(free)) == 0
	f.addrs = free
	return replaced
}

// primaryOf is the address in the name of a peer without node.
func primaryOf(p *Peer) netip.Addr {
	u, err := url.Parse(p.Address)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	return addr
}

func changes(old, next map[string]Peer) (events []event) {
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if _, ok := next[id]; !ok {
			events = append(events, event{kind: eventLost, peer: old[id]})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(next)) {
		before, now := old[id], next[id]
		switch _, known := old[id]; {
		case !known:
			events = append(events, event{kind: eventFound, peer: now})
		case !before.same(&now):
			events = append(events, event{kind: eventChanged, peer: now})
		}
	}
	return events
}

// list returns the peers by id.
func (d *directory) list() []Peer {
	out := make([]Peer, 0, len(d.peers))
	for _, id := range slices.Sorted(maps.Keys(d.peers)) {
		out = append(out, d.peers[id])
	}
	return out
}

// settleTime lets the packets of all interfaces arrive before a list is made of them.
const settleTime = 100 * time.Millisecond
