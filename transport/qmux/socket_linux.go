package qmux

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How much the system may hold of what it has not sent yet, in bytes: what it would send in unsentTime, within limits. More
// would be sent in the order in which it was written, whatever becomes urgent meanwhile. With less it runs dry whenever the
// writer is late. BBR in particular, which at first sends much faster than the path to find its rate, then takes the writer for
// the limit and goes on like that for seconds, at the price of a tenth of all packets.
const (
	unsentTime  = 20 * time.Millisecond
	searchTime  = 80 * time.Millisecond // instead, while it sends faster than the path delivers, to find its rate
	leastUnsent = 64 << 10
	mostUnsent  = 4 << 20
)

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
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, leastUnsent)
	})
}

// unsentFor is how much may wait at a pace, in bytes a second, while the path delivers at a rate.
func unsentFor(pace, rate uint64) uint64 {
	holds := unsentTime
	if pace/3 > rate/2 {
		holds = searchTime
	}
	return uint64(min(max(float64(pace)*holds.Seconds(), leastUnsent), mostUnsent))
}

// retune fits what may wait in the system to the rate at which it sends now, and holds BBR back where others are on the way.
func retune(nc net.Conn, now time.Time, y *yielding) {
	rc, _ := raw(nc)
	if rc == nil {
		return
	}
	_ = rc.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		wait := unsentFor(info.Pacing_rate, info.Delivery_rate)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, int(wait))
		rtt, shortest := time.Duration(info.Rtt)*time.Microsecond, time.Duration(info.Min_rtt)*time.Microsecond
		limit, changed := y.look(now, rtt, shortest, info.Delivery_rate)
		if !changed {
			return
		}
		if name, _ := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); name != "bbr" {
			return // the others share by themselves
		}
		if limit == 0 {
			limit = math.MaxUint32 // none
		}
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, int(min(limit, math.MaxUint32)))
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
