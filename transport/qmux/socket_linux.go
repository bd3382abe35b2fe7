package qmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unsent is how much the system may hold of what it has not sent yet, in bytes. More would be sent in the order in which it
// was written, whatever becomes urgent meanwhile; less would let fast links run dry.
const unsent = 64 << 10

// ErrNoCongestion means that the system does not have, or does not let us use, a congestion control.
var ErrNoCongestion = errors.New("congestion control is not available")

// raw returns the socket below TLS, if there is one.
func raw(nc net.Conn) (syscall.RawConn, *net.TCPConn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil, nil
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return nil, nil
	}
	return rc, tcp
}

// tune prepares a TCP socket: small writes go out at once, and little waits in the system. What cannot be set stays as it is.
func tune(nc net.Conn) {
	rc, tcp := raw(nc)
	if rc == nil {
		return
	}
	_ = tcp.SetNoDelay(true)
	_ = rc.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
}

// SetCongestion sets the congestion control of a TCP connection by its name, for example "bbr"; TLS may be on top. The
// error is ErrNoCongestion if the system has none of that name, also where the connection is not TCP.
func SetCongestion(nc net.Conn, name string) error {
	rc, _ := raw(nc)
	if rc == nil {
		return fmt.Errorf("%w: no TCP socket", ErrNoCongestion)
	}
	var err error
	if ctl := rc.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}); ctl != nil {
		return ctl
	}
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrNoCongestion, name, err)
	}
	return nil
}

// path is what the system knows of the way to the peer.
type path struct {
	rtt, minRTT time.Duration
	window      uint64 // bytes that can be on the way
	lost        uint64 // segments sent again
}

// pathOf asks the system. It reports false where there is nothing to ask.
func pathOf(nc net.Conn) (p path, ok bool) {
	rc, _ := raw(nc)
	if rc == nil {
		return p, false
	}
	var info *unix.TCPInfo
	var err error
	if ctl := rc.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); ctl != nil || err != nil {
		return p, false
	}
	p.rtt, p.minRTT = time.Duration(info.Rtt)*time.Microsecond, time.Duration(info.Min_rtt)*time.Microsecond
	p.window, p.lost = uint64(info.Snd_cwnd)*uint64(info.Snd_mss), uint64(info.Total_retrans)
	if info.Delivery_rate > 0 { // BBR keeps a window of twice what is on the way
		p.window = min(p.window, uint64(float64(info.Delivery_rate)*p.rtt.Seconds()))
	}
	return p, true
}
