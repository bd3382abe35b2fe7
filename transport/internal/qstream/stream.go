package qstream

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/moqmesh/moqmesh/transport"
)

var (
	_ transport.SendStream    = (*SendStream)(nil)
	_ transport.ReceiveStream = (*ReceiveStream)(nil)
	_ transport.Stream        = (*Stream)(nil)
)

// SendStream is a transport.SendStream on a stream of quic-go.
type SendStream struct {
	str   *quic.SendStream
	group *Group
}

// NewSendStream adds a stream to the group and, if header is not empty, writes it so that it arrives
// even if the stream is reset. It fails if the session is over; the stream is reset then.
func NewSendStream(str *quic.SendStream, g *Group, header []byte) (*SendStream, error) {
	if err := g.begin(str, header); err != nil {
		return nil, err
	}
	return &SendStream{str: str, group: g}, nil
}

type headed interface {
	resetter
	Write([]byte) (int, error)
	SetReliableBoundary()
}

// begin tracks a stream of ours and writes its header. The write does not block: a new stream has
// room for it whatever the peer's windows are.
func (g *Group) begin(str headed, header []byte) error {
	if !g.track(str) {
		return g.ends.SessionGone(false)
	}
	if len(header) == 0 {
		return nil
	}
	if _, err := str.Write(header); err != nil {
		g.forget(str)
		return g.Err(err)
	}
	str.SetReliableBoundary()
	return nil
}

// Write implements transport.SendStream.
func (s *SendStream) Write(p []byte) (int, error) {
	n, err := s.str.Write(p)
	if err != nil {
		err = s.group.writeError(s.str, err)
	}
	return n, err
}

// writeError translates why a write failed. Only a deadline leaves anything to be reset later.
func (g *Group) writeError(str resetter, err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		g.forget(str)
	}
	return g.Err(err)
}

// Close implements transport.SendStream.
func (s *SendStream) Close() error {
	s.group.forget(s.str)
	return s.group.closeError(s.str.Close(), s.str.Context())
}

// closeError names what ended a stream that could not be closed. quic-go only says that it could not.
func (g *Group) closeError(err error, ctx context.Context) error {
	if err == nil {
		return nil
	}
	return g.Err(context.Cause(ctx))
}

// Reset implements transport.SendStream.
func (s *SendStream) Reset(code uint64) {
	s.group.forget(s.str)
	s.str.CancelWrite(s.group.wire(code))
}

// SetWriteDeadline implements transport.SendStream.
func (s *SendStream) SetWriteDeadline(t time.Time) error { return s.str.SetWriteDeadline(t) }

// SetPriority implements transport.SendStream.
func (s *SendStream) SetPriority(urgency int) { s.str.SetPriority(priority(urgency)) }

// Context implements transport.SendStream.
func (s *SendStream) Context() context.Context { return streamContext{s.str.Context(), s.group} }

// priority is RFC 9218 as quic-go has it: incremental streams of one urgency share, others go one
// after the other, oldest first.
func priority(urgency int) (_ int8, incremental bool) {
	urgency = max(0, min(urgency, 7))
	return int8(urgency), urgency < 4
}

// ReceiveStream is a transport.ReceiveStream on a stream of quic-go.
type ReceiveStream struct {
	str   *quic.ReceiveStream
	group *Group
}

// NewReceiveStream wraps a stream of the peer, after what the carrier puts in front.
func NewReceiveStream(str *quic.ReceiveStream, g *Group) *ReceiveStream {
	return &ReceiveStream{str: str, group: g}
}

// Read implements transport.ReceiveStream.
func (s *ReceiveStream) Read(p []byte) (int, error) {
	n, err := s.str.Read(p)
	if err != nil {
		err = s.group.Err(err)
	}
	return n, err
}

// Stop implements transport.ReceiveStream.
func (s *ReceiveStream) Stop(code uint64) { s.str.CancelRead(s.group.wire(code)) }

// SetReadDeadline implements transport.ReceiveStream.
func (s *ReceiveStream) SetReadDeadline(t time.Time) error { return s.str.SetReadDeadline(t) }

// Stream is a transport.Stream on a bidirectional stream of quic-go.
type Stream struct {
	str   *quic.Stream
	group *Group
}

// NewStream adds a bidirectional stream to the group, see NewSendStream. A stream of the peer is
// added without a header.
func NewStream(str *quic.Stream, g *Group, header []byte) (*Stream, error) {
	if err := g.begin(str, header); err != nil {
		str.CancelRead(g.codes.wire(0))
		return nil, err
	}
	return &Stream{str: str, group: g}, nil
}

// Write implements transport.SendStream.
func (s *Stream) Write(p []byte) (int, error) {
	n, err := s.str.Write(p)
	if err != nil {
		err = s.group.writeError(s.str, err)
	}
	return n, err
}

// Close implements transport.SendStream.
func (s *Stream) Close() error {
	s.group.forget(s.str)
	return s.group.closeError(s.str.Close(), s.str.Context())
}

// Reset implements transport.SendStream.
func (s *Stream) Reset(code uint64) {
	s.group.forget(s.str)
	s.str.CancelWrite(s.group.wire(code))
}

// SetWriteDeadline implements transport.SendStream.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.str.SetWriteDeadline(t) }

// SetPriority implements transport.SendStream.
func (s *Stream) SetPriority(urgency int) { s.str.SetPriority(priority(urgency)) }

// Context implements transport.SendStream.
func (s *Stream) Context() context.Context { return streamContext{s.str.Context(), s.group} }

// Read implements transport.ReceiveStream.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.str.Read(p)
	if err != nil {
		err = s.group.Err(err)
	}
	return n, err
}

// Stop implements transport.ReceiveStream.
func (s *Stream) Stop(code uint64) { s.str.CancelRead(s.group.wire(code)) }

// SetReadDeadline implements transport.ReceiveStream.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.str.SetReadDeadline(t) }
