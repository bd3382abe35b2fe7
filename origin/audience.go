package origin

import (
	"encoding/binary"

	"github.com/moqmesh/moqmesh/route"
)

// audience counts who reads a track, or waits for it, by the identity of the peer. A route through one of them is used only
// if there is no other, and then not for that peer (R23): what must be pulled for one reader can serve all. That costs nobody
// a better way for longer than it takes to tell, since a peer that has a better one than ours does not go on reading from us.
type audience map[route.Hop]int

func (a audience) add(peer route.Hop) {
	if peer != 0 {
		a[peer]++
	}
}

func (a audience) remove(peer route.Hop) {
	if peer == 0 {
		return
	}
	if a[peer]--; a[peer] <= 0 {
		delete(a, peer)
	}
}

// before says how many of those who are here a source is reached through.
func (a audience) before(s source) (n int) {
	if len(a) == 0 {
		return 0
	}
	n = a[s.peer]
	for b := s.hops; len(b) >= 8; b = b[8:] {
		if h := hopAt(b, 0); h != s.peer {
			n += a[h]
		}
	}
	return n
}

// hopString packs a hop list so that sources can be compared.
func hopString(hops []route.Hop) string {
	b := make([]byte, 0, 8*len(hops))
	for _, h := range hops {
		b = binary.BigEndian.AppendUint64(b, uint64(h))
	}
	return string(b)
}

func hopAt(hops string, i int) route.Hop {
	return route.Hop(binary.BigEndian.Uint64([]byte(hops[8*i : 8*i+8])))
}

// through says whether the route of a source passes through a peer, the one that sent it included.
func (s source) through(peer route.Hop) bool {
	if s.peer == peer {
		return true
	}
	for b := s.hops; len(b) >= 8; b = b[8:] {
		if hopAt(b, 0) == peer {
			return true
		}
	}
	return false
}

// begins says whether a peer is the publisher at the beginning of a route: its first hop, or the unnamed one of its session
// (R5).
func (s source) begins(peer route.Hop) bool {
	n := len(s.hops) / 8
	return n > 0 && hopAt(s.hops, 0) == peer || s.peer == peer && (n == 1 || n == 2 && hopAt(s.hops, 1) == 0)
}
