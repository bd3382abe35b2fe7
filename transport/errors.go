package transport

import (
	"errors"
	"fmt"
	"net"
)

// ErrDatagramTooLarge means that a datagram exceeds what the connection carries now, see
// Conn.MaxDatagramSize.
var ErrDatagramTooLarge = errors.New("datagram too large")

// ErrNoDatagrams means that the connection carries no datagrams.
var ErrNoDatagrams = errors.New("datagrams not negotiated")

// StreamError reports that a stream was reset or stopped.
type StreamError struct {
	Code   uint64 // plain: the carrier has undone its mapping
	Remote bool   // the peer did it
	// Unmapped is true where the carrier maps codes and the peer sent one outside the mapping; Code is
	// then the raw number.
	Unmapped bool
}

func (e *StreamError) Error() string {
	who := "locally"
	if e.Remote {
		who = "by the peer"
	}
	return fmt.Sprintf("stream ended %s with code 0x%x", who, e.Code)
}

// SessionError reports how a connection ended. It satisfies errors.Is(err, net.ErrClosed).
type SessionError struct {
	Code   uint32 // session code of the protocol; meaningless if Transport is set
	Reason string
	Remote bool
	// Transport is the cause when the carrier itself failed (idle timeout, TLS, reset); nil if one end
	// closed the session with a code.
	Transport error
}

func (e *SessionError) Error() string {
	if e.Transport != nil {
		return "connection lost: " + e.Transport.Error()
	}
	who := "locally"
	if e.Remote {
		who = "by the peer"
	}
	if e.Reason == "" {
		return fmt.Sprintf("session closed %s with code 0x%x", who, e.Code)
	}
	return fmt.Sprintf("session closed %s with code 0x%x (%q)", who, e.Code, e.Reason)
}

func (e *SessionError) Is(target error) bool { return target == net.ErrClosed }
func (e *SessionError) Unwrap() error        { return e.Transport }
