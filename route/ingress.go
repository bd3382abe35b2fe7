package route

import (
	"fmt"
	"slices"

	"github.com/moqmesh/moqmesh/paths"
)

// reading is an advertisement taken in: the list and cost it has as a route, or why it cannot be one.
type reading struct {
	hops   []Hop // valid until the next read
	cost   Cost
	reason Reason
}

// read applies section 2.5 from step 2 on. It fails with ErrHops where the peer must not send this.
func (t *Table) read(s *session, prefix string, ad *Advertised) (reading, error) {
	r := reading{hops: t.scratch[:0]}
	if s.Wire == WireLocal {
		r.cost = received(s.Wire, ad.Cost, 0)
	} else if err := checkHops(ad); err != nil {
		return reading{}, err
	} else {
		t.readWire(s, ad, &r)
	}
	if s.goaway {
		r.cost = worst // (R40)
	}
	switch {
	case r.reason != 0:
	case paths.Depth(prefix) > paths.MaxSegments:
		r.reason = TooDeep
	case !s.reaches(prefix): // (R11)
		r.reason = NotGranted
	}
	return r, nil
}

// readWire fills in what a peer sent.
func (t *Table) readWire(s *session, ad *Advertised, r *reading) {
	traits := s.Wire.traits()
	if r.hops, r.reason = rebuild(r.hops, traits.list, ad); r.reason != 0 {
		return
	}
	length := len(r.hops)
	if t.cfg.Hop != 0 && slices.Contains(r.hops, t.cfg.Hop) { // (R9)
		r.reason = Loop
		return
	}
	if r.hops, r.reason = stamp(r.hops, s.Stamp); r.reason != 0 {
		return
	}
	if len(r.hops) > t.cfg.MaxHops && s.Wire != WireLite01 { // (R4)
		r.reason = TooManyHops
		return
	}
	r.cost = received(s.Wire, ad.Cost, length).charge(s.Price) // (R10)
}

// checkHops is the validity of a list as received (R3).
func checkHops(ad *Advertised) error {
	if len(ad.Hops) > MaxHops {
		return fmt.Errorf("%w: %d entries", ErrHops, len(ad.Hops))
	}
	for i, h := range ad.Hops {
		switch {
		case h > maxHop:
			return fmt.Errorf("%w: id out of range", ErrHops)
		case h != 0 && slices.Contains(ad.Hops[:i], h):
			return fmt.Errorf("%w: %d twice", ErrHops, h)
		}
	}
	if ad.Sender > maxHop {
		return fmt.Errorf("%w: id out of range", ErrHops)
	}
	return nil
}

const maxHop = 1<<62 - 1

// rebuild appends the list as the sender sees itself in it (2.3, R8).
func rebuild(out []Hop, form listForm, ad *Advertised) ([]Hop, Reason) {
	switch form {
	case listNone:
		return out, 0
	case listCount:
		return append(out, make([]Hop, len(ad.Hops))...), 0
	case listFull:
		return append(out, ad.Hops...), 0
	case listApart:
	}
	switch {
	case ad.Sender != 0 && slices.Contains(ad.Hops, ad.Sender):
		return out, Reflected
	case len(ad.Hops) == MaxHops:
		return out, NoRoom
	}
	return append(append(out, ad.Hops...), ad.Sender), 0
}

// stamp names the publisher of a list that does not (R5).
func stamp(hops []Hop, id Hop) ([]Hop, Reason) {
	switch {
	case len(hops) == 0:
		return append(hops, id, 0), 0
	case hops[0] != 0:
		return hops, 0
	case len(hops) == MaxHops:
		return hops, NoRoom
	case slices.Contains(hops, id):
		return hops, StampTaken
	}
	return slices.Insert(hops, 0, id), 0
}
