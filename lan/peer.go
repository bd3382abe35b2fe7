package lan

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
)

// Prefix is the path under which LAN peers come in; what follows is the credential (L12).
const Prefix = "/.cluster/"

// maxCandidates bounds the addresses that are dialed for one peer.
const maxCandidates = 16

// errNoCandidate says that a record has no address that a URL could name (L7).
var errNoCandidate = errors.New("it has no address that can be dialed")

// Peer is a relay of our group that it falls to us to dial. It prints without its credential.
type Peer struct {
	// ID names it among the discovered: its node, or else its instance, which is new with every start.
	ID string
	// Instance is the name of the running process.
	Instance string
	// Address is its URL without query: that of its node, or moqt://<ip>:<port>. The path is not the one to dial.
	Address string
	// Path is what to dial instead of the path of Address (L8). It is a credential: never log it.
	Path string
	// Cost is the price of the link that the node asks for; nil = none.
	Cost *uint64
	// Addrs are to be tried in this order. Empty = resolve the host of Address.
	Addrs []netip.AddrPort
	// Fingerprint is the SHA-256 of its certificate, the only one to be accepted (L9); empty = ordinary validation.
	Fingerprint string
}

// String is what logs may say of it: scheme, host and port (C7).
func (p Peer) String() string {
	scheme, rest, _ := strings.Cut(p.Address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

func (p Peer) GoString() string     { return "lan.Peer(" + p.String() + ")" }
func (p Peer) LogValue() slog.Value { return slog.StringValue(p.String()) }

// same reports whether two descriptions of one peer mean the same dial.
func (p *Peer) same(o *Peer) bool {
	costs := p.Cost == nil && o.Cost == nil || p.Cost != nil && o.Cost != nil && *p.Cost == *o.Cost
	return costs && p.ID == o.ID && p.Instance == o.Instance && p.Address == o.Address && p.Path == o.Path &&
		p.Fingerprint == o.Fingerprint && slices.Equal(p.Addrs, o.Addrs)
}

// peerOf works out how to dial the relay of an accepted record. prefer is an address to stay with for its name, if it is
// still among those of the record.
func (g group) peerOf(r *record, addrs []netip.Addr, prefer netip.Addr) (Peer, error) {
	p := Peer{ID: r.id(), Instance: r.instance, Fingerprint: r.fingerprint, Path: Prefix + g.credential(r)}
	if r.node != "" {
		var err error
		p.Address, p.Cost, err = r.nodeURL()
		return p, err
	}
	addrs = candidates(addrs)
	if len(addrs) == 0 {
		return p, errNoCandidate
	}
	for _, a := range addrs {
		p.Addrs = append(p.Addrs, netip.AddrPortFrom(a, r.port))
	}
	name := addrs[0]
	if slices.Contains(addrs, prefer) {
		name = prefer
	}
	p.Address = "moqt://" + netip.AddrPortFrom(name, r.port).String()
	return p, nil
}

// candidates orders the addresses that can be dialed (L7): loopback last, IPv4 first, then by number. Link-local IPv6
// addresses need a scope, which no URL carries.
func candidates(addrs []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range addrs {
		a = a.Unmap()
		usable := a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && (a.Is4() || !a.IsLinkLocalUnicast())
		if usable && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b netip.Addr) int {
		if a.IsLoopback() != b.IsLoopback() {
			return order(b.IsLoopback())
		}
		return a.Compare(b) // shorter addresses, IPv4, come first
	})
	return out[:min(len(out), maxCandidates)]
}

// order is -1 if the first comes first.
func order(first bool) int {
	if first {
		return -1
	}
	return 1
}

// weDial reports whether it is our part to dial: that of the smaller id (L6). With equal ids nobody does.
func weDial(own, other string) bool { return own < other }
