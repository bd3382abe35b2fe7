package endpoint

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"

	quicgo "github.com/quic-go/quic-go"
)

// Socket is one UDP socket with the QUIC machinery on it. Listeners and dialers share it.
type Socket struct {
	pc    net.PacketConn
	tr    *quicgo.Transport
	conns registry

	closing sync.Once
	err     error
}

// openSocket binds addr, unless there is a pc, which it owns from then on. configure may complete the
// transport before it is used; log may be nil.
func openSocket(pc net.PacketConn, addr string, log *slog.Logger, configure func(*quicgo.Transport)) (*Socket, error) {
	if pc == nil {
		udp, err := bind(addr)
		if err != nil {
			return nil, err
		}
		pc = udp
	}
	s := &Socket{pc: pc}
	if udp, ok := pc.(udpSocket); ok {
		pc = newPatient(udp, s.conns.has, log)
	}
	s.tr = &quicgo.Transport{Conn: pc, ConnectionIDLength: connectionIDLength}
	if configure != nil {
		configure(s.tr)
	}
	return s, nil
}

// bind takes the first address of a host name. On a machine without IPv6, [::] means 0.0.0.0.
func bind(addr string) (*net.UDPConn, error) {
	udp, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	pc, err := net.ListenUDP("udp", udp)
	if errors.Is(err, syscall.EAFNOSUPPORT) && udp.IP.Equal(net.IPv6unspecified) {
		return net.ListenUDP("udp4", &net.UDPAddr{Port: udp.Port})
	}
	return pc, err
}

// Addr is the local address.
func (s *Socket) Addr() net.Addr { return s.pc.LocalAddr() }

// close closes the connections first, as peers would have to wait for their idle timeout otherwise.
func (s *Socket) close() error {
	s.closing.Do(func() {
		s.conns.close()
		s.err = errors.Join(s.tr.Close(), s.pc.Close())
	})
	return s.err
}
