package endpoint

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"golang.org/x/time/rate"
)

// udpSocket is what quic-go wants of a socket to use everything that the system offers.
type udpSocket interface {
	quicgo.OOBCapablePacketConn
	net.Conn
	SetWriteBuffer(bytes int) error
	WriteMsgUDPAddrPort(b, oob []byte, addr netip.AddrPort) (n, oobn int, err error)
}

var (
	_ udpSocket = (*net.UDPConn)(nil)
	_ udpSocket = (*patient)(nil) // else quic-go goes without batches, segmentation offload and ECN
)

// patient is a socket that takes a packet which the system refuses to send for one that was lost on the way, where the
// connection is established: a firewall that rejects, a route or an interface that is gone for a moment. QUIC sends it
// again, and gives up after the idle timeout; quic-go would end the connection on the spot. Until then errors go through,
// so that a dial to where there is no way fails at once.
type patient struct {
	udpSocket
	established func(netip.AddrPort) bool
	log         *slog.Logger
	complaints  rate.Sometimes
	lost        atomic.Uint64
}

func newPatient(udp udpSocket, established func(netip.AddrPort) bool, log *slog.Logger) *patient {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &patient{
		udpSocket: udp, established: established, log: log, complaints: rate.Sometimes{Interval: time.Second},
	}
}

// WriteMsgUDP sends one packet, or a few of equal size.
func (p *patient) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	to := unmapped(addr.AddrPort())
	n, oobn, err = p.udpSocket.WriteMsgUDPAddrPort(b, oob, to) // which does not allocate, as WriteMsgUDP does
	if err == nil || !passing(err) || !p.established(to) {
		return n, oobn, err
	}
	lost := p.lost.Add(1)
	p.complaints.Do(func() {
		p.log.Warn("a packet cannot be sent and counts as lost", "remote", addr.String(), "err", err, "lost", lost)
	})
	return len(b), len(oob), nil
}

// passing reports whether err may be another one, or none, for the next packet.
func passing(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && slices.Contains(passingErrors, number)
}

var passingErrors = []syscall.Errno{
	syscall.EPERM, syscall.EACCES, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN,
	syscall.ENODEV, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ECONNREFUSED,
}

// unmapped is the address without the IPv6 form that IPv4 ones have on some sockets.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
