package media

import "slices"

// Datagram is a group of a single frame that travels as a datagram. Payload is shared: read only.
type Datagram struct {
	Group     uint64
	Timestamp uint64
	Payload   []byte
	// Missed datagrams, of MissedBytes of payload, were overwritten by newer ones before the reader came for them, since the
	// last one that it took. Whether they were in its range is not known any more.
	Missed, MissedBytes uint64
}

// maxDatagram is the largest payload taken, in bytes (moq-lite 10).
const maxDatagram = 65535

// datagramRing holds the last datagrams of a track (F17).
type datagramRing struct {
	ring  []datagramEntry // at most DatagramRing
	count uint64          // how many there were
	bytes uint64          // of payload of all of them
}

type datagramEntry struct {
	Datagram
	before uint64 // bytes of payload of all earlier ones
}

func (d *datagramRing) push(dg Datagram) {
	g := datagramEntry{dg, d.bytes}
	d.bytes += uint64(len(dg.Payload))
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
		t.datagrams.push(Datagram{Group: seq, Timestamp: c.stamp(ts), Payload: slices.Clone(payload)})
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
	var missed, missedBytes uint64
	if oldest := d.count - uint64(len(d.ring)); r.datagrams < oldest {
		missed, missedBytes = oldest-r.datagrams, d.ring[oldest%DatagramRing].before-r.datagramBytes
		r.datagrams = oldest
	}
	for r.datagrams < d.count {
		e := &d.ring[r.datagrams%DatagramRing]
		g := e.Datagram
		g.Missed, g.MissedBytes = missed, missedBytes
		r.datagrams++
		r.datagramBytes = e.before + uint64(len(g.Payload))
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
