//go:build !linux

package qmux

import (
	"errors"
	"net"
	"time"
)

// ErrNoCongestion means that the system does not have, or does not let us use, a congestion control.
var ErrNoCongestion = errors.New("congestion control is not available")

func tune(net.Conn)                         {}
func retune(net.Conn, time.Time, *yielding) {}

// SetCongestion sets the congestion control of a TCP connection by its name. This system lets nobody choose.
func SetCongestion(net.Conn, string) error { return ErrNoCongestion }

type path struct {
	rtt, minRTT  time.Duration
	window, lost uint64
}

func pathOf(net.Conn) (p path, ok bool) { return p, false }
