package qmux

import (
	"context"

	"github.com/moqmesh/moqmesh/transport"
)

// OpenStream implements transport.Conn.
func (c *Conn) OpenStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.open(ctx, kindBidi)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OpenUniStream implements transport.Conn.
func (c *Conn) OpenUniStream(ctx context.Context) (transport.SendStream, error) {
	s, err := c.open(ctx, kindUni)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Conn) open(ctx context.Context, kind int) (*stream, error) {
	for {
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			return nil, c.err
		}
		if c.next[kind] < c.may[kind] {
			s := c.newStream(c.next[kind]<<2|uint64(kind)<<1|c.side(), true)
			c.next[kind]++
			c.mu.Unlock()
			return s, nil
		}
		credit := c.credit.wait()
		c.mu.Unlock()
		select {
		case <-credit:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// side is the bit of stream ids that says who opened a stream, for ours.
func (c *Conn) side() uint64 {
	if c.info.Dialed {
		return 0
	}
	return 1
}

// newStream makes a stream and keeps it. c.mu is held.
func (c *Conn) newStream(id uint64, mine bool) *stream {
	s := &stream{c: c, id: id, accepted: mine}
	s.send.urgency, s.send.limit = defaultUrgency, c.peerLimit(id)
	size := c.cfg.StreamReceiveWindow / windowGrowth
	s.recv.limit = size
	s.recv.window = window{size: size, max: c.cfg.StreamReceiveWindow}
	if kindOf(id) == kindUni {
		if mine {
			s.recv.over, s.recv.err = true, errNoHalf
		} else {
			s.send.over, s.send.err = true, errNoHalf
		}
	}
	c.streams[id] = s
	return s
}

// peerLimit is how much may be sent on a new stream.
func (c *Conn) peerLimit(id uint64) uint64 {
	switch {
	case c.draft == Legacy:
		return c.sendLimit
	case kindOf(id) == kindUni:
		return c.peer.uni
	case initiator(id) == c.side():
		return c.peer.bidiRemote
	default:
		return c.peer.bidiLocal
	}
}

// AcceptStream implements transport.Conn.
func (c *Conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.accept(ctx, kindBidi)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AcceptUniStream implements transport.Conn.
func (c *Conn) AcceptUniStream(ctx context.Context) (transport.ReceiveStream, error) {
	s, err := c.accept(ctx, kindUni)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Conn) accept(ctx context.Context, kind int) (*stream, error) {
	return takeNext(ctx, c, &c.waiting[kind], func(s *stream) {
		s.accepted = true
		c.settle(s)
	})
}

// find returns the stream of a frame of the peer; nil if it is over. A stream that is new is opened, and with it every
// stream of its kind that should have come before. c.mu is held.
func (c *Conn) find(id uint64) (*stream, *ProtocolError) {
	if s := c.streams[id]; s != nil {
		return s, nil
	}
	kind, index := kindOf(id), id>>2
	if initiator(id) == c.side() {
		if index >= c.next[kind] {
			return nil, violation("frame for stream %d, which does not exist", id)
		}
		return nil, nil
	}
	if index < c.opened[kind] {
		return nil, nil
	}
	if index >= c.allowed[kind] {
		return nil, violation("stream %d is above the limit", id)
	}
	q := &c.waiting[kind]
	for ; c.opened[kind] <= index; c.opened[kind]++ {
		q.queue = append(q.queue, c.newStream(c.opened[kind]<<2|id&3, false))
	}
	q.wake()
	return c.streams[id], nil
}

// settle forgets a stream whose both halves are over, and gives the peer a new one for it. c.mu is held.
func (c *Conn) settle(s *stream) {
	drained := s.recv.off == len(s.recv.buf) || s.recv.err != nil
	if !s.accepted || !s.send.over || !s.recv.over || !drained || c.streams[s.id] != s {
		return
	}
	delete(c.streams, s.id)
	if initiator(s.id) == c.side() {
		return
	}
	kind := kindOf(s.id)
	c.closed[kind]++
	most := uint64(c.cfg.MaxStreams)
	allowed := c.closed[kind] + most
	if c.draft == Legacy {
		c.allowed[kind] = allowed
		return
	}
	if allowed-c.allowed[kind] >= max(most/8, 1) {
		c.allowed[kind], c.allowedMoved[kind] = allowed, true
		c.wakeWriter()
	}
}
