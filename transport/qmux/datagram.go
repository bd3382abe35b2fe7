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
	return takeNext(ctx, c, &c.incoming, nil)
}

// receiveDatagram queues a datagram of the peer, or drops it if nobody reads. c.mu is held.
func (c *Conn) receiveDatagram(data []byte) {
	if len(c.incoming.queue) >= maxIncoming {
		return
	}
	c.incoming.queue = append(c.incoming.queue, append([]byte(nil), data...))
	c.incoming.wake()
}
