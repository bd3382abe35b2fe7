package bench

import (
	"net"
	"time"
)

// socketBuffer is what viewers ask of the system, in bytes: many share a socket.
const socketBuffer = 4 << 20

// listen opens the socket of some viewers. On Linux it takes packets of one sender in one piece, as the kernel got
// them, which costs both ends less; elsewhere it is a plain one.
func listen() (net.PacketConn, error) {
	udp, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, err
	}
	if err := udp.SetReadBuffer(socketBuffer); err != nil {
		_ = udp.Close()
		return nil, err
	}
	if !coalesce(udp) {
		return udp, nil
	}
	return &coalesced{udp: udp, buf: make([]byte, 64<<10), oob: make([]byte, 64)}, nil
}

// coalesced is a UDP socket that gets several packets of equal length at once. It deliberately has no more methods than
// these: QUIC would read from the system past it.
type coalesced struct {
	udp  *net.UDPConn
	buf  []byte
	oob  []byte
	rest []byte       // of buf, not handed out
	size int          // of each packet in rest but the last
	from *net.UDPAddr // of rest
}

// ReadFrom implements net.PacketConn. One goroutine may call it at a time.
func (c *coalesced) ReadFrom(p []byte) (int, net.Addr, error) {
	for len(c.rest) == 0 {
		n, oobn, _, from, err := c.udp.ReadMsgUDPAddrPort(c.buf, c.oob)
		if err != nil {
			return 0, nil, err
		}
		if c.from == nil || c.from.AddrPort() != from {
			c.from = net.UDPAddrFromAddrPort(from)
		}
		c.rest, c.size = c.buf[:n], segment(c.oob[:oobn], n)
	}
	packet := c.rest[:min(c.size, len(c.rest))]
	c.rest = c.rest[len(packet):]
	return copy(p, packet), c.from, nil
}

// WriteTo implements net.PacketConn.
func (c *coalesced) WriteTo(p []byte, to net.Addr) (int, error) {
	if udp, ok := to.(*net.UDPAddr); ok {
		return c.udp.WriteToUDPAddrPort(p, udp.AddrPort())
	}
	return c.udp.WriteTo(p, to)
}

// Close, LocalAddr and the deadlines are those of the socket.
func (c *coalesced) Close() error                       { return c.udp.Close() }
func (c *coalesced) LocalAddr() net.Addr                { return c.udp.LocalAddr() }
func (c *coalesced) SetDeadline(t time.Time) error      { return c.udp.SetDeadline(t) }
func (c *coalesced) SetReadDeadline(t time.Time) error  { return c.udp.SetReadDeadline(t) }
func (c *coalesced) SetWriteDeadline(t time.Time) error { return c.udp.SetWriteDeadline(t) }

// SetReadBuffer and SetWriteBuffer do what QUIC asks for.
func (c *coalesced) SetReadBuffer(n int) error  { return c.udp.SetReadBuffer(n) }
func (c *coalesced) SetWriteBuffer(n int) error { return c.udp.SetWriteBuffer(n) }
