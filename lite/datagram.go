package lite

import (
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/wire"
)

// sending says whether a worker is sending datagrams.
type sending uint8

const (
	sendingNone sending = iota
	sendingSome
	sendingMore // and is to look again before it stops
)

// sendDatagrams sends the datagrams that are due. Only one worker at a time does. SendDatagram may block; that is in
// nobody's way, because a worker that sends does not count as free.
func (sv *serving) sendDatagrams() {
	if !sv.s.version.HasDatagrams() || !sv.beginDatagrams() {
		return
	}
	buf := scratches.Get().(*scratch)
	defer scratches.Put(buf)
	for {
		d, ok := sv.nextDatagram()
		switch {
		case ok:
			sv.sendDatagram(buf, d)
		case sv.endDatagrams():
			return
		}
	}
}

// beginDatagrams reports whether the worker is to send; if another one does, that one looks again.
func (sv *serving) beginDatagrams() bool {
	sv.mu.Lock()
	if sv.datagrams != sendingNone {
		sv.datagrams = sendingMore
		sv.mu.Unlock()
		return false
	}
	sv.datagrams = sendingSome
	sv.free--
	spare := sv.spareLocked()
	sv.mu.Unlock()
	if spare {
		sv.start(nil)
	}
	return true
}

// endDatagrams reports whether nothing came meanwhile.
func (sv *serving) endDatagrams() bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if sv.datagrams == sendingMore {
		sv.datagrams = sendingSome
		return false
	}
	sv.datagrams = sendingNone
	sv.free++
	return true
}

func (sv *serving) nextDatagram() (media.Datagram, bool) {
	sv.pull.Lock()
	defer sv.pull.Unlock()
	return sv.media.NextDatagram()
}

// sendDatagram sends one datagram. What is larger than the connection carries now is dropped, as is everything that
// cannot be sent: datagrams are never repeated (moq-lite 5.13).
func (sv *serving) sendDatagram(buf *scratch, d media.Datagram) {
	if d.Missed > 0 {
		sv.sent.staleDatagrams(d.Missed, d.MissedBytes)
	}
	m := message.Datagram{Subscribe: sv.id, Sequence: d.Group, Timestamp: d.Timestamp, Payload: d.Payload}
	b, err := m.Append(buf.joined[:0], sv.s.version)
	if err != nil {
		return
	}
	buf.joined = b
	if len(b) > sv.s.conn.MaxDatagramSize() || sv.s.conn.SendDatagram(b) != nil {
		return
	}
	sv.mu.Lock()
	sv.whole.add(d.Group, d.Group)
	sv.mu.Unlock()
	sv.sent.datagram(len(d.Payload))
}

// receiveDatagrams passes datagrams on until the session ends. It runs from the first subscription of ours on. Those that
// cannot be decoded or belong to no subscription are dropped.
func (s *Session) receiveDatagrams() {
	ctx := s.conn.Context()
	for {
		b, err := s.conn.ReceiveDatagram(ctx)
		if err != nil {
			return
		}
		var m message.Datagram
		if m.Decode(b, s.version) != nil {
			continue
		}
		if u := s.in.find(m.Subscribe); u != nil {
			u.datagram(m)
		}
	}
}

// knockSize is the payload of a knock in bytes: a packet with it is larger than the smallest that is answered with a
// stateless reset (RFC 9000, 10.3).
const knockSize = 48

// Knock sends a datagram that belongs to no subscription, which a peer drops. A peer that has restarted since answers it
// with a stateless reset, if its keys are the old ones; the pings of an idle connection are too small for that. It does
// not block, and does nothing where the version has no datagrams.
func (s *Session) Knock() {
	if !s.version.HasDatagrams() {
		return
	}
	m := message.Datagram{Subscribe: wire.MaxVarint, Payload: make([]byte, knockSize)}
	if b, err := m.Append(nil, s.version); err == nil {
		_ = s.conn.SendDatagram(b) // it may be lost as well
	}
}

// wantDatagrams starts receiving datagrams where there are any.
func (s *Session) wantDatagrams() {
	if !s.version.HasDatagrams() {
		return
	}
	s.mu.Lock()
	first := !s.datagrams
	s.datagrams = true
	s.mu.Unlock()
	if first {
		s.spawn(s.receiveDatagrams)
	}
}
