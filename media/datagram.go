package media

import "slices"

// Datagram is a group of a single frame that travels as a datagram. Payload is shared: read only.
type Datagram struct {
	Group     uint64
	Timestamp uint64
	Payload   []byte
}

// maxDatagram is the largest payload taken, in bytes (moq-lite 10).
const maxDatagram = 65535

// datagramRing holds the last datagrams of a track (F17).
type datagramRing struct {
	ring  []Datagram // at most DatagramRing
	count uint64     // how many there were
}

func (d *datagramRing) push(g Datagram) {
	if len(d.ring) < DatagramRing {
		d.ring = append(d.ring, g)
	} else {
		d.ring[d.count%DatagramRing] = g
	}
	d.count++
}

// Datagram takes a single-frame group that came as a datagram, and copies payload. It is dropped silently if it is too
// large or out of range, below the start, past the end, or known: two copies deliver the same datagrams (F17).
func (c *Copy) Datagram(seq, ts uint64, payload []byte) {
	if seq > maxTimestamp || ts > maxTimestamp || len(payload) > maxDatagram {
		return
	}
	c.update(func(t *Track, wk *wakes) {
		if t.ended && seq >= t.end || c.claims.admit(seq) != nil {
			return
		}
		c.claims.begin(seq)
		c.arrived(wk)
		t.named(c, seq, false, wk)
		if t.ledger.seen.has(seq) {
			return
		}
		c.frames++
		c.ring(wk)
		t.ledger.finish(seq)
		t.datagrams.push(Datagram{seq, c.stamp(ts), slices.Clone(payload)})
		wk.everyone(t)
	})
}

// NextDatagram returns the next datagram in the reader's range, without blocking. One that is more than DatagramRing
// behind loses the oldest.
func (r *Reader) NextDatagram() (Datagram, bool) {
	t := r.track
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &t.datagrams
	if r.closed || t.err != nil || d.count == r.datagrams {
		return Datagram{}, false
	}
	r.pin()
	r.datagrams = max(r.datagrams, d.count-uint64(len(d.ring)))
	for r.datagrams < d.count {
		g := d.ring[r.datagrams%DatagramRing]
		r.datagrams++
		if v := r.view(); v.covers(g.Group) && v.first(g.Group) == 0 && !r.taken.has(g.Group) {
			r.taken.add(g.Group, g.Group)
			return g, true
		}
	}
	return Datagram{}, false
}

// lowestDatagram returns the lowest group among the datagrams that the reader has not looked at.
func (r *Reader) lowestDatagram() (group uint64, ok bool) {
	d := &r.track.datagrams
	for i := max(r.datagrams, d.count-uint64(len(d.ring))); i < d.count; i++ {
		if g := d.ring[i%DatagramRing].Group; !ok || g < group {
			group, ok = g, true
		}
	}
	return group, ok
}
