package qmux

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

// read is the reader: it takes records until the carrier ends, also when the connection is over already, so that what the
// peer still sends does not make the system throw away what we said last.
func (c *Conn) read() {
	defer close(c.quiet)
	for {
		record, err := c.carrier.next()
		if err != nil {
			c.readEnd(err)
			return
		}
		c.hear()
		c.bytesIn.Add(uint64(len(record)))
		if c.ctx.Err() == nil {
			if bad := c.receiveRecord(record); bad != nil {
				c.fail(bad)
			}
		}
	}
}

// readEnd deals with a carrier that brings no more records.
func (c *Conn) readEnd(err error) {
	if bad, ok := errors.AsType[*ProtocolError](err); ok {
		c.fail(bad)
		_, _ = io.Copy(io.Discard, c.carrier.conn()) // until it is closed
		return
	}
	c.end(&transport.SessionError{Transport: dropped(err)}, nil)
}

// hear notes that the peer lives.
func (c *Conn) hear() {
	c.heardAt.Store(time.Now().UnixNano())
	c.records.Add(1)
}

func (c *Conn) receiveRecord(b []byte) *ProtocolError {
	for {
		f, n, err := c.parser.parse(b)
		if err != nil {
			return violation("%v", err)
		}
		if bad := c.receiveFrame(&f); bad != nil {
			return bad
		}
		if b = b[n:]; len(b) == 0 {
			break
		}
		if !c.draft.records() {
			return violation("%v", wire.ErrTrailing)
		}
	}
	if c.draft == Legacy {
		c.awaitReaders()
	}
	return nil
}

// awaitReaders holds the reader while too much is unread: the format has no other way to slow down a peer.
func (c *Conn) awaitReaders() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.received-c.consumed > c.window.max && c.err == nil {
		c.wait(&c.drained)
	}
}

func (c *Conn) receiveFrame(f *frame) *ProtocolError {
	if f.typ == framePadding {
		return nil
	}
	c.mu.Lock()
	defer c.unlock()
	if c.draft == Draft02 && (f.typ == frameParams) == c.known {
		return violation("transport parameters must be the first frame and come once")
	}
	switch f.typ {
	case frameStream:
		return c.receiveStream(f)
	case frameReset:
		return c.receiveReset(f)
	case frameStop:
		return c.receiveStop(f)
	case frameMaxStreamData:
		return c.receiveMaxStreamData(f)
	case frameMaxData:
		c.sendLimit = max(c.sendLimit, f.value)
		c.wakeWriter()
	case frameMaxStreamsBidi, frameMaxStreamsUni:
		kind := int(f.typ - frameMaxStreamsBidi)
		c.may[kind] = max(c.may[kind], f.value)
		c.credit.wake()
	case frameDatagram:
		if len(f.data)+datagramOverhead > maxRecord {
			return violation("datagram of %d bytes", len(f.data))
		}
		c.receiveDatagram(f.data)
	default:
		return c.receiveRest(f)
	}
	return nil
}

// receiveRest handles the frames that are about the connection.
func (c *Conn) receiveRest(f *frame) *ProtocolError {
	switch f.typ {
	case frameParams:
		return c.receiveParams(f.data)
	case framePing:
		return c.receivePing(f.value)
	case framePong:
		return c.receivePong(f.value)
	case frameApplicationClose:
		if f.code > math.MaxUint32 {
			c.endLater(&transport.SessionError{Remote: true, Transport: &ClosedError{f.code, string(f.data)}})
			return nil
		}
		c.endLater(&transport.SessionError{Code: uint32(f.code), Reason: string(f.data), Remote: true})
	case frameConnectionClose:
		c.endLater(&transport.SessionError{Remote: true, Transport: &ClosedError{f.code, string(f.data)}})
	}
	return nil // BLOCKED of whatever kind needs no answer: credit is given as soon as there is some
}

// afterwards has unlock call f. c.mu is held.
func (c *Conn) afterwards(f func()) { c.later = append(c.later, f) }

// endLater ends the connection as the peer wants it, once the lock is released.
func (c *Conn) endLater(err *transport.SessionError) { c.afterwards(func() { c.end(err, nil) }) }

// unlock releases c.mu and does what had to wait for that.
func (c *Conn) unlock() {
	later := c.later
	c.later = nil
	c.mu.Unlock()
	for _, f := range later {
		f()
	}
}

// sendOnly reports whether the peer can send nothing on a stream.
func (c *Conn) sendOnly(id uint64) bool { return kindOf(id) == kindUni && initiator(id) == c.side() }

// receiveOnly reports whether we can send nothing on a stream.
func (c *Conn) receiveOnly(id uint64) bool { return kindOf(id) == kindUni && initiator(id) != c.side() }

func (c *Conn) receiveStream(f *frame) *ProtocolError {
	if c.sendOnly(f.id) {
		return violation("data on stream %d, which is ours alone", f.id)
	}
	s, bad := c.find(f.id)
	if bad != nil {
		return bad
	}
	n := len(f.data)
	if c.received += uint64(n); c.received > c.limit && c.draft != Legacy {
		return violation("more data than allowed")
	}
	if s == nil || s.recv.over {
		c.release(n) // late
		return nil
	}
	h := &s.recv
	if h.received += uint64(n); h.received > h.limit && c.draft != Legacy {
		return violation("more data than allowed on stream %d", f.id)
	}
	h.fin, h.over = f.fin, f.fin
	if h.stopped {
		c.consume(s, n)
		return nil
	}
	c.consume(s, h.deliver(f.data))
	return nil
}

func (c *Conn) receiveReset(f *frame) *ProtocolError {
	if c.sendOnly(f.id) {
		return violation("reset of stream %d, which is ours alone", f.id)
	}
	s, bad := c.find(f.id)
	if bad != nil || s == nil || s.recv.over {
		return bad
	}
	h := &s.recv
	h.over = true
	// Some peers say 0: that takes nothing back.
	if f.value > h.received && c.draft != Legacy {
		gap := f.value - h.received
		if c.received += gap; c.received > c.limit || f.value > h.limit {
			return violation("more data than allowed on stream %d", f.id)
		}
		c.release(int(gap))
	}
	if h.err == nil {
		h.err = &transport.StreamError{Code: f.code, Remote: true}
	}
	left := len(h.buf) - h.off
	h.buf, h.off = nil, 0
	h.wake()
	c.consume(s, left)
	return nil
}

func (c *Conn) receiveStop(f *frame) *ProtocolError {
	if c.receiveOnly(f.id) {
		return violation("STOP_SENDING for stream %d, which is the peer's alone", f.id)
	}
	s, bad := c.find(f.id)
	if bad != nil || s == nil {
		return bad
	}
	why := &transport.StreamError{Code: f.code, Remote: true}
	if cancel := c.abandon(s, min(f.code, math.MaxUint32), why); cancel != nil {
		c.afterwards(func() { cancel(why) })
	}
	return nil
}

func (c *Conn) receiveMaxStreamData(f *frame) *ProtocolError {
	if c.receiveOnly(f.id) {
		return violation("credit for stream %d, which is the peer's alone", f.id)
	}
	s, bad := c.find(f.id)
	if bad != nil || s == nil {
		return bad
	}
	if f.value > s.send.limit {
		s.send.limit = f.value
		c.offer(s)
	}
	return nil
}

// receiveParams takes over the peer's parameters. A second time changes nothing, in the drafts that let it pass.
func (c *Conn) receiveParams(body []byte) *ProtocolError {
	p, err := parseParams(body)
	if err != nil {
		return violation("%v", err)
	}
	if (p.protocols != nil) != (c.ours.protocols != nil) {
		return violation("protocols must be agreed in band by both ends or none")
	}
	if c.known {
		return nil
	}
	c.known, c.peer = true, p
	c.sendLimit = max(c.sendLimit, p.data)
	c.may = [kinds]uint64{max(c.may[kindBidi], p.streamsBidi), max(c.may[kindUni], p.streamsUni)}
	if p.protocols != nil {
		server, client := c.ours.protocols, p.protocols
		if c.info.Dialed {
			server, client = client, server
		}
		c.info.Protocol = agree(server, client)
	}
	for _, s := range c.streams { // the peer may have opened some before
		if !s.send.over {
			s.send.limit = max(s.send.limit, c.peerLimit(s.id))
			c.offer(s)
		}
	}
	c.credit.wake()
	c.wakeWriter()
	close(c.ready)
	return nil
}
