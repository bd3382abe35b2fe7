package qmux

import (
	"context"

	"github.com/moqmesh/moqmesh/transport"
)

// How many datagrams wait to be sent, before the sender waits; and to be received, before more are dropped.
const (
	maxOutgoing = 32
	maxIncoming = 128
)

// datagrams is a queue of them.
type datagrams struct {
	broadcast
	queue [][]byte
}

func (d *datagrams) pop() []byte {
	p := d.queue[0]
	d.queue[0] = nil
	if d.queue = d.queue[1:]; len(d.queue) == 0 {
		d.queue = nil
	}
	return p
}

// SendDatagram implements transport.Conn. It waits for the peer's parameters.
func (c *Conn) SendDatagram(payload []byte) error {
	select {
	case <-c.ready:
	case <-c.ctx.Done():
	}
	most := c.MaxDatagramSize()
	for {
		c.mu.Lock()
		switch {
		case c.err != nil:
			c.mu.Unlock()
			return c.err
		case most == 0:
			c.mu.Unlock()
			return transport.ErrNoDatagrams
		case len(payload) > most:
			c.mu.Unlock()
			return transport.ErrDatagramTooLarge
		case len(c.outgoing.queue) < maxOutgoing:
			c.outgoing.queue = append(c.outgoing.queue, append([]byte(nil), payload...))
			c.wakeWriter()
			c.mu.Unlock()
			return nil
		}
		room := c.outgoing.wait()
		c.mu.Unlock()
		<-room // the end of the connection makes some, too
	}
}

// ReceiveDatagram implements transport.Conn.
func (c *Conn) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	for {
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			return nil, c.err
		}
		if len(c.incoming.queue) > 0 {
			p := c.incoming.pop()
			c.mu.Unlock()
			return p, nil
		}
		arrival := c.incoming.wait()
		c.mu.Unlock()
		select {
		case <-arrival:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// receiveDatagram queues a datagram of the peer, or drops it if nobody reads. c.mu is held.
func (c *Conn) receiveDatagram(data []byte) {
	if len(c.incoming.queue) >= maxIncoming {
		return
	}
	c.incoming.queue = append(c.incoming.queue, append([]byte(nil), data...))
	c.incoming.wake()
}
