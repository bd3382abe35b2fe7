package quic

import (
	"context"

	quicgo "github.com/quic-go/quic-go"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/internal/qstream"
)

// maxReason keeps a close reason within one packet of any path, in bytes.
const maxReason = 512

// Options say what the handshake of a connection does not.
type Options struct {
	Dialed bool
	// PlainCodes sends stream codes as they are instead of mapping them as WebTransport does.
	PlainCodes bool
	// Pinned says that the peer was verified by the fingerprint of its certificate.
	Pinned bool
}

// Conn is a transport.Conn on one QUIC connection. It has no goroutine of its own.
type Conn struct {
	q       *quicgo.Conn
	streams *qstream.Group
	ctx     context.Context // its life; the cause is the *transport.SessionError
	info    transport.Info
}

var _ transport.Conn = (*Conn)(nil)

// New takes over a connection whose handshake is complete.
func New(q *quicgo.Conn, opts Options) *Conn {
	state := q.ConnectionState().TLS
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Conn{q: q, ctx: ctx, info: qstream.Info(q, state, opts.Dialed, opts.Pinned)}
	c.info.Kind = transport.KindQUIC
	c.info.Protocol = state.NegotiatedProtocol
	c.streams = qstream.NewGroup(qstream.Codes(opts.PlainCodes), ends{})
	context.AfterFunc(q.Context(), func() { cancel(qstream.SessionError(context.Cause(q.Context()))) })
	return c
}

// ends: session and connection end together, and the connection's code is the session's.
type ends struct{}

func (ends) SessionEnd(err error) error { return qstream.SessionError(err) }
func (ends) SessionGone(bool) error     { return nil }

// OpenStream implements transport.Conn.
func (c *Conn) OpenStream(ctx context.Context) (transport.Stream, error) {
	str, err := c.q.OpenStreamSync(ctx)
	if err != nil {
		return nil, c.streams.Err(err)
	}
	return c.stream(str)
}

// OpenUniStream implements transport.Conn.
func (c *Conn) OpenUniStream(ctx context.Context) (transport.SendStream, error) {
	str, err := c.q.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, c.streams.Err(err)
	}
	s, err := qstream.NewSendStream(str, c.streams, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AcceptStream implements transport.Conn.
func (c *Conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	str, err := c.q.AcceptStream(ctx)
	if err != nil {
		return nil, c.streams.Err(err)
	}
	return c.stream(str)
}

func (c *Conn) stream(str *quicgo.Stream) (transport.Stream, error) {
	s, err := qstream.NewStream(str, c.streams, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AcceptUniStream implements transport.Conn.
func (c *Conn) AcceptUniStream(ctx context.Context) (transport.ReceiveStream, error) {
	str, err := c.q.AcceptUniStream(ctx)
	if err != nil {
		return nil, c.streams.Err(err)
	}
	return qstream.NewReceiveStream(str, c.streams), nil
}

// SendDatagram implements transport.Conn.
func (c *Conn) SendDatagram(payload []byte) error {
	return c.streams.Err(qstream.SendDatagram(c.q, payload))
}

// ReceiveDatagram implements transport.Conn.
func (c *Conn) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	p, err := c.q.ReceiveDatagram(ctx)
	return p, c.streams.Err(err)
}

// MaxDatagramSize implements transport.Conn.
func (c *Conn) MaxDatagramSize() int { return qstream.MaxDatagram(c.q) }

// Close implements transport.Conn. What is still to be sent on streams is lost.
func (c *Conn) Close(code uint32, reason string) {
	_ = c.q.CloseWithError(quicgo.ApplicationErrorCode(code), transport.TruncateReason(reason, maxReason)) // never fails
	<-c.ctx.Done()
}

// Wait returns when the connection has ended.
func (c *Conn) Wait() { <-c.ctx.Done() }

// Context implements transport.Conn.
func (c *Conn) Context() context.Context { return c.ctx }

// Info implements transport.Conn.
func (c *Conn) Info() transport.Info { return c.info }

// Stats implements transport.Conn.
func (c *Conn) Stats() transport.Stats { return qstream.Stats(c.q) }
