package qmux

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// The codes of CONNECTION_CLOSE.
const (
	codeNone      = 0
	codeViolation = 1002
)

// How a connection fails without a word of either end's application. They are the Transport of a
// *transport.SessionError.
var (
	ErrIdleTimeout = errors.New("nothing arrived for the idle timeout")
	ErrDropped     = errors.New("the carrier ended without a close")
	// ErrHandshakeTimeout is a context.DeadlineExceeded, too.
	ErrHandshakeTimeout error = handshakeTimeout{}
)

type handshakeTimeout struct{}

func (handshakeTimeout) Error() string { return "the peer has sent no transport parameters" }

// Is makes it what it is for those who bound a handshake with a context: whichever of the two ends first, it is late.
func (handshakeTimeout) Is(target error) bool { return target == context.DeadlineExceeded }

// ProtocolError is what the peer did wrong.
type ProtocolError struct{ Reason string }

func (e *ProtocolError) Error() string { return "protocol violation: " + e.Reason }

func violation(format string, args ...any) *ProtocolError {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}

// ClosedError is a CONNECTION_CLOSE of the peer: its carrier failed, or it did not understand us.
type ClosedError struct {
	Code   uint64
	Reason string
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("closed with code %d (%q)", e.Code, e.Reason)
}

// dropped is the error of a carrier that failed or ended.
func dropped(err error) error {
	if err == nil || errors.Is(err, net.ErrClosed) {
		return ErrDropped
	}
	return fmt.Errorf("%w: %w", ErrDropped, err)
}
