package cluster

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/moqmesh/moqmesh/route"
)

// Found describes a peer that LAN discovery has found.
type Found struct {
	Address     string           // its URL; decides the key. The query does not count
	Path        string           // dialed instead of the path of Address: a credential
	Cost        *uint64          // price of the link; nil = none
	Addrs       []netip.AddrPort // tried in this order; empty = resolve the host
	Fingerprint string           // SHA-256 of the only certificate to accept, in lower-case hex; empty = ordinary validation
}

// found is what only such peers have.
type found struct {
	path        string
	addrs       []netip.AddrPort
	fingerprint string
}

// NewFound makes an entry of it. The error is an *EntryError.
func NewFound(f Found) (Entry, error) {
	address, _, _ := strings.Cut(f.Address, "?")
	e, bad := parseString(address, false)
	if bad != nil {
		return Entry{}, bad
	}
	if f.Cost != nil {
		if *f.Cost > route.MaxCost {
			return Entry{}, &EntryError{Name: e.Name(), Err: ErrCost}
		}
		e.cost, e.hasCost = *f.Cost, true
	}
	return e.foundAs(found{path: f.Path, addrs: slices.Clone(f.Addrs), fingerprint: f.Fingerprint}), nil
}

// foundAs replaces the path, but not the key (L8).
func (e Entry) foundAs(f found) Entry {
	e.found = &f
	e.url = url.URL{Scheme: e.url.Scheme, Host: e.url.Host, Path: f.path}
	return e
}

// Advertised is our own address for peers on the LAN: the URL, with the price that it asks for. It is false if there is
// anything else in the query; nothing that might be a secret is to be shown there. The zero Node gives an empty text.
func (n Node) Advertised() (text string, ok bool) {
	if n.IsZero() {
		return "", true
	}
	u := n.url
	if u.RawQuery != "" {
		return "", false
	}
	if n.cost != nil {
		u.RawQuery = "cost=" + strconv.FormatUint(*n.cost, 10)
	}
	return u.String(), true
}

// IsFound reports whether the peer was found on the LAN. Its URL then has a credential for path.
func (e Entry) IsFound() bool { return e.found != nil }

// Addrs are the addresses to try, in this order; empty = resolve the host of the URL.
func (e Entry) Addrs() []netip.AddrPort {
	if e.found == nil {
		return nil
	}
	return slices.Clone(e.found.addrs)
}

// Fingerprint is the SHA-256 of the only certificate to accept, in lower-case hex; empty = as configured.
func (e Entry) Fingerprint() string {
	if e.found == nil {
		return ""
	}
	return e.found.fingerprint
}

func (f *found) same(o *found) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.path == o.path && f.fingerprint == o.fingerprint && slices.Equal(f.addrs, o.addrs)
}
