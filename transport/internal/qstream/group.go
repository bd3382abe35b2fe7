package qstream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/quic-go/quic-go"
)

// Group is what the streams of one connection share: how their codes are numbered, how errors are
// translated, and, where a session can end before its connection does, which of them are open.
type Group struct {
	codes Codes
	ends  Ends

	mu     sync.Mutex
	closed bool
	open   map[resetter]struct{}
	code   quic.StreamErrorCode // of streams that outlive the session; 0: none can, and none is tracked
}

// Ends tells how the connection of a group ended.
type Ends interface {
	// SessionEnd returns the *transport.SessionError that stands for err, an error of the connection.
	SessionEnd(err error) error
	// SessionGone is asked about a stream that was reset with the group's code: it returns the
	// *transport.SessionError, or nil if the session lives. With wait it gives a peer that resets its
	// streams before it says why a moment to do so.
	SessionGone(wait bool) error
}

type resetter interface {
	CancelWrite(quic.StreamErrorCode)
}

// NewGroup returns a group for streams that live as long as their QUIC connection.
func NewGroup(codes Codes, ends Ends) *Group { return &Group{codes: codes, ends: ends} }

// NewTrackedGroup returns a group whose open streams ResetAll can reset with code, the wire number that
// says the session is gone.
func NewTrackedGroup(codes Codes, ends Ends, code quic.StreamErrorCode) *Group {
	return &Group{codes: codes, ends: ends, code: code, open: make(map[resetter]struct{})}
}

// ResetAll resets the sending side of every tracked stream. Streams added later are reset at once.
func (g *Group) ResetAll() {
	g.mu.Lock()
	open := g.open
	g.open, g.closed = nil, true
	g.mu.Unlock()
	for str := range open {
		str.CancelWrite(g.code)
	}
}

// track registers a new stream; false means that it has been reset because the session is over.
func (g *Group) track(str resetter) bool {
	if g.code == 0 {
		return true
	}
	g.mu.Lock()
	closed := g.closed
	if g.open != nil {
		g.open[str] = struct{}{}
	}
	g.mu.Unlock()
	if closed {
		str.CancelWrite(g.code)
	}
	return !closed
}

func (g *Group) forget(str resetter) {
	if g.code == 0 {
		return
	}
	g.mu.Lock()
	delete(g.open, str)
	g.mu.Unlock()
}

// Err translates an error of quic-go: resets to *transport.StreamError, the end of the connection to
// *transport.SessionError; others (io.EOF, deadlines, contexts) stay what they are.
func (g *Group) Err(err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // Read returns it bare
		return err
	}
	if strErr, ok := errors.AsType[*quic.StreamError](err); ok {
		if g.isGone(strErr) {
			if end := g.ends.SessionGone(strErr.Remote); end != nil {
				return end
			}
		}
		return g.codes.streamError(strErr)
	}
	if errors.Is(err, net.ErrClosed) {
		return g.ends.SessionEnd(err)
	}
	return err
}

// wire is the number that ends a stream with a code. Once the session is over it is the group's, whatever the stream's user
// has to say: the peer may hear of it before it hears of the end, and must not take it for a reset of that stream.
func (g *Group) wire(code uint64) quic.StreamErrorCode {
	if g.code != 0 && g.ends.SessionGone(false) != nil {
		return g.code
	}
	return g.codes.wire(code)
}

func (g *Group) isGone(err *quic.StreamError) bool { return g.code != 0 && err.ErrorCode == g.code }

// streamContext is the context of a sending side. Its cause is a transport error, which a context
// derived from quic-go's could not have; and it costs neither a goroutine nor a registration. The
// standard library takes the cause from Err and uses AfterFunc for derived contexts.
type streamContext struct {
	context.Context
	group *Group
}

// Err is nil while the stream is open for sending, context.Canceled after Close, and otherwise what
// ended the stream: a *transport.StreamError or *transport.SessionError.
func (c streamContext) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	cause := context.Cause(c.Context)
	if errors.Is(cause, quic.ErrStreamClosed) {
		return context.Canceled
	}
	if strErr, ok := errors.AsType[*quic.StreamError](cause); ok && strErr.Remote && c.group.isGone(strErr) {
		// Waiting for the reason is out of the question here, and so is a cause that changes.
		return c.group.codes.streamError(strErr)
	}
	return c.group.Err(cause)
}

// Value hides the values of quic-go's context, and with them its cause.
func (c streamContext) Value(any) any { return nil }

// AfterFunc lets derived contexts follow without a goroutine each.
func (c streamContext) AfterFunc(f func()) (stop func() bool) {
	return context.AfterFunc(c.Context, f)
}
