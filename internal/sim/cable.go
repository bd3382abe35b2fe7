package sim

import (
	"net"
	"sync/atomic"
)

// cable is a socket that can be unplugged: nothing goes out or comes in then, and nobody is told.
type cable struct {
	socket
	out atomic.Bool
}

// socket is what QUIC wants to be able to do with one.
type socket interface {
	net.PacketConn
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

// WriteTo implements net.PacketConn.
func (c *cable) WriteTo(p []byte, to net.Addr) (int, error) {
	if c.out.Load() {
		return len(p), nil
	}
	return c.socket.WriteTo(p, to)
}

// ReadFrom implements net.PacketConn.
func (c *cable) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.socket.ReadFrom(p)
		if err != nil || !c.out.Load() {
			return n, from, err
		}
	}
}
