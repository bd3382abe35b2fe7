package sim

import (
	"math/rand/v2"

	"github.com/moqmesh/moqmesh/internal/netsim"
)

// Link joins two relays: From dials To. Both directions carry routes and content.
type Link struct {
	From, To int // relays by number, from 0
	// Cost is the price that From charges for pulling from To and declares to it; nil = unpriced, which costs 1.
	Cost *uint64
	// WebTransport is dialed instead of raw QUIC.
	WebTransport bool
	// Net is what lies between the two; nil = the cluster's default.
	Net *netsim.Link
}

func (l *Link) scheme() string { return scheme(l.WebTransport) }

func scheme(webTransport bool) string {
	if webTransport {
		return "https"
	}
	return "moqt"
}

// Topology says how many relays there are and how they are linked.
type Topology struct {
	Relays int
	Links  []Link
}

func (t *Topology) link(from, to int) { t.Links = append(t.Links, Link{From: from, To: to}) }

// Chain is 0 - 1 - 2 - ..., each relay dialing the one before it.
func Chain(n int) Topology {
	t := Topology{Relays: n}
	for i := 1; i < n; i++ {
		t.link(i, i-1)
	}
	return t
}

// Ring is a chain whose ends are linked.
func Ring(n int) Topology {
	t := Chain(n)
	t.link(0, n-1)
	return t
}

// Chord is a ring with one link across.
func Chord(n int) Topology {
	t := Ring(n)
	t.link(n/2, 0)
	return t
}

// Star has relay 0 in the middle.
func Star(n int) Topology {
	t := Topology{Relays: n}
	for i := 1; i < n; i++ {
		t.link(i, 0)
	}
	return t
}

// Mesh links every pair.
func Mesh(n int) Topology {
	t := Topology{Relays: n}
	for i := range n {
		for j := range i {
			t.link(i, j)
		}
	}
	return t
}

// Diamond has two ways from relay 0 to relay 3: by 1 and by 2.
func Diamond() Topology {
	t := Topology{Relays: 4}
	t.link(1, 0)
	t.link(2, 0)
	t.link(3, 1)
	t.link(3, 2)
	return t
}

// RandomGraph is connected: a random tree and so many more links as extra says, as far as there are pairs left.
func RandomGraph(r *rand.Rand, n, extra int) Topology {
	t := Topology{Relays: n}
	type pair struct{ a, b int }
	linked := make(map[pair]bool)
	add := func(a, b int) {
		linked[pair{min(a, b), max(a, b)}] = true
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		t.link(a, b)
	}
	for i := 1; i < n; i++ {
		add(i, r.IntN(i))
	}
	for range extra {
		a, b := r.IntN(n), r.IntN(n)
		if a != b && !linked[pair{min(a, b), max(a, b)}] {
			add(a, b)
		}
	}
	return t
}
