package lite

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// Codes that close a session (moq-lite 7.1).
const (
	SessionNoError        uint32 = 0x0
	SessionInternal       uint32 = 0x1
	SessionUnauthorized   uint32 = 0x2
	SessionViolation      uint32 = 0x3
	SessionGoawayTimeout  uint32 = 0x10
	SessionControlTimeout uint32 = 0x11
	SessionNoVersion      uint32 = 0x15
)

// Codes that reset or stop a stream (moq-lite 7.2).
const (
	StreamInternal      uint64 = 0x0
	StreamCancelled     uint64 = 0x1
	StreamSessionClosed uint64 = 0x3
	StreamGoingAway     uint64 = 0x4
	StreamTooFarBehind  uint64 = 0x5
	StreamMalformed     uint64 = 0x12
	// StreamNoCapacity has its meaning from elsewhere, and that is the one it is used in here: a limit is reached. Peers
	// that do not know it take it for a failure like any other.
	StreamNoCapacity     uint64 = 0x30
	StreamControlTimeout uint64 = 0x31
	StreamGroupTooLarge  uint64 = 0x32
	StreamNotFound       uint64 = 0x33
	StreamOld            uint64 = 0x34
	StreamEvicted        uint64 = 0x35
	StreamUnroutable     uint64 = 0x36
	StreamWrongSize      uint64 = 0x37
	StreamFrameTooLarge  uint64 = 0x38
	StreamTimestamp      uint64 = 0x39
)

// CodeApplication is where application codes start, in both registries: 64 + n, n up to 65535.
const (
	CodeApplication    = 64
	MaxCodeApplication = CodeApplication + 65535
)

// streamErrors pairs errors with stream codes. Looking up a code takes the first error that has it, looking up an
// error the first that matches.
var streamErrors = []struct {
	code uint64
	err  error
}{
	{StreamCancelled, media.ErrCancelled},
	{StreamCancelled, context.Canceled},
	{StreamGoingAway, session.ErrGoingAway},
	{StreamTooFarBehind, media.ErrTooFarBehind},
	{StreamMalformed, media.ErrMalformed},
	{StreamNoCapacity, session.ErrNoCapacity},
	{StreamControlTimeout, session.ErrTimeout},
	{StreamControlTimeout, context.DeadlineExceeded},
	{StreamGroupTooLarge, media.ErrGroupTooLarge},
	{StreamNotFound, media.ErrNotFound},
	{StreamOld, media.ErrOld},
	{StreamEvicted, media.ErrEvicted},
	{StreamUnroutable, session.ErrUnroutable},
	{StreamUnroutable, session.ErrUnauthorized}, // no route that this peer may use
	{StreamFrameTooLarge, media.ErrFrameTooLarge},
	{StreamSessionClosed, net.ErrClosed},
}

// RequestError says that the peer refused a request or gave up a stream, and with which code. It unwraps to the
// error of package session or media that the code stands for, where there is one.
type RequestError struct {
	Code uint64
	Err  error // nil if the code stands for nothing known
}

func (e *RequestError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("given up by the peer with code 0x%x", e.Code)
	}
	return fmt.Sprintf("given up by the peer with code 0x%x: %v", e.Code, e.Err)
}

func (e *RequestError) Unwrap() error { return e.Err }

// StreamCode is the code with which a stream is ended because of err. Application codes of another peer are passed
// on; what no code stands for is StreamInternal.
func StreamCode(err error) uint64 {
	var refused *RequestError
	if errors.As(err, &refused) && refused.Code >= CodeApplication && refused.Code <= MaxCodeApplication {
		return refused.Code
	}
	for _, e := range streamErrors {
		if errors.Is(err, e.err) {
			return e.code
		}
	}
	return StreamInternal
}

// peerError turns the end of a stream by the peer into a *RequestError and leaves other errors alone. Cancelled and
// session closed keep only their code: they must not be taken for our own cancelling or for the end of this session.
func peerError(err error) error {
	var ended *transport.StreamError
	if !errors.As(err, &ended) || !ended.Remote {
		return err
	}
	refused := &RequestError{Code: ended.Code}
	if ended.Unmapped || ended.Code == StreamCancelled || ended.Code == StreamSessionClosed {
		return refused
	}
	for _, e := range streamErrors {
		if e.code == ended.Code {
			refused.Err = e.err
			break
		}
	}
	return refused
}

// violation is an error that ends the session.
type violation struct {
	code uint32
	err  error
}

func (v *violation) Error() string { return v.err.Error() }
func (v *violation) Unwrap() error { return v.err }

// violationf is a violation of the protocol by the peer.
func violationf(format string, args ...any) error {
	return &violation{SessionViolation, fmt.Errorf("%w: "+format, append([]any{session.ErrViolation}, args...)...)}
}
