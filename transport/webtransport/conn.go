package webtransport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/internal/qstream"
)

// closeWait is how long an end waits for the other to confirm or to explain that the session is over.
const closeWait = 500 * time.Millisecond

// connectStream is the stream of the CONNECT request: *http3.Stream on a server, *http3.RequestStream
// on a client.
type connectStream interface {
	io.ReadWriteCloser
	StreamID() quic.StreamID
	SetWriteDeadline(time.Time) error
}

// Conn is a transport.Conn on one WebTransport session.
type Conn struct {
	q         *quic.Conn
	str       connectStream
	id        uint64
	demux     *demux
	streams   *qstream.Group
	lost      atomic.Pointer[transport.SessionError] // what streams have said of the end of the connection, nil = nothing
	info      transport.Info
	datagrams bool // both ends have them
	// receive waits for a datagram of the session.
	receive func(context.Context) ([]byte, error)

	bidiHeader, uniHeader, datagramHeader []byte

	bidi queue[*quic.Stream]
	uni  queue[*quic.ReceiveStream]

	ctx      context.Context // its life; the cause is the *transport.SessionError
	cancel   context.CancelCauseFunc
	ending   sync.Once
	peerDone chan struct{} // closed when the peer's side of the CONNECT stream has ended
}

var _ transport.Conn = (*Conn)(nil)

// options are what server and client know of a new session.
type options struct {
	dialed, pinned, datagrams bool
	protocol                  string
	url                       *url.URL
	// receive takes datagrams off the connection; nil: the session does that itself.
	receive func(context.Context) ([]byte, error)
}

// newConn starts a session whose CONNECT request was accepted.
func newConn(q *quic.Conn, str connectStream, d *demux, opts options) *Conn {
	id := uint64(str.StreamID())
	c := &Conn{
		q: q, str: str, id: id, demux: d,
		info:           qstream.Info(q, q.ConnectionState().TLS, opts.dialed, opts.pinned),
		datagrams:      opts.datagrams,
		bidiHeader:     quicvarint.Append(quicvarint.Append(nil, bidiStreamType), id),
		uniHeader:      quicvarint.Append(quicvarint.Append(nil, uniStreamType), id),
		datagramHeader: quicvarint.Append(nil, id/4),
		peerDone:       make(chan struct{}),
	}
	if c.receive = opts.receive; c.receive == nil {
		c.receive = c.receiveDatagram
	}
	c.info.Kind = transport.KindWebTransport
	c.info.Protocol = opts.protocol
	c.info.URL = opts.url
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.streams = qstream.NewTrackedGroup(qstream.Mapped, c, codeSessionGone)
	d.wg.Go(c.watch)
	d.establish(c)
	return c
}

// OpenStream implements transport.Conn.
func (c *Conn) OpenStream(ctx context.Context) (transport.Stream, error) {
	str, err := c.q.OpenStreamSync(ctx)
	if err != nil {
		return nil, c.streams.Err(err)
	}
	s, err := qstream.NewStream(str, c.streams, c.bidiHeader)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OpenUniStream implements transport.Conn.
func (c *Conn) OpenUniStream(ctx context.Context) (transport.SendStream, error) {
	str, err := c.q.OpenUniStream()
	if _, wait := errors.AsType[*quic.StreamLimitReachedError](err); wait {
		str, err = c.waitUniStream(ctx)
	}
	if err != nil {
		return nil, c.streams.Err(err)
	}
	s, err := qstream.NewSendStream(str, c.streams, c.uniHeader)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// waitUniStream waits for the peer's stream limit, until ctx or the session ends, which may be before the connection does.
func (c *Conn) waitUniStream(ctx context.Context) (*quic.SendStream, error) {
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	str, err := c.q.OpenUniStreamSync(both)
	if err != nil && both.Err() != nil {
		err = context.Cause(both)
	}
	return str, err
}

// AcceptStream implements transport.Conn. HTTP/3's own streams are dealt with here, too.
func (c *Conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	str, ok := next(ctx, c, &c.bidi, c.q.AcceptStream, c.demux.sortBidi)
	if !ok {
		return nil, c.acceptError(ctx)
	}
	s, err := qstream.NewStream(str, c.streams, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AcceptUniStream implements transport.Conn.
func (c *Conn) AcceptUniStream(ctx context.Context) (transport.ReceiveStream, error) {
	str, ok := next(ctx, c, &c.uni, c.q.AcceptUniStream, c.demux.sortUni)
	if !ok {
		return nil, c.acceptError(ctx)
	}
	return qstream.NewReceiveStream(str, c.streams), nil
}

func (c *Conn) acceptError(ctx context.Context) error {
	if end := context.Cause(c.ctx); end != nil {
		return end
	}
	return context.Cause(ctx)
}

var datagramBuffers = sync.Pool{New: func() any { return new([]byte) }}

// SendDatagram implements transport.Conn.
func (c *Conn) SendDatagram(payload []byte) error {
	if end := context.Cause(c.ctx); end != nil {
		return end
	}
	if !c.datagrams {
		return transport.ErrNoDatagrams
	}
	buf := datagramBuffers.Get().(*[]byte)
	*buf = append(append((*buf)[:0], c.datagramHeader...), payload...)
	err := qstream.SendDatagram(c.q, *buf)
	datagramBuffers.Put(buf)
	return c.streams.Err(err)
}

// ReceiveDatagram implements transport.Conn.
func (c *Conn) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	// What waits below does not always hear of the end of the session.
	p, err := acceptFor(ctx, c, c.ctx, c.receive)
	if err == nil {
		return p, nil
	}
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		return nil, ctxErr
	}
	// The CONNECT stream or the connection has ended, and the session is about to.
	<-c.ctx.Done()
	return nil, context.Cause(c.ctx)
}

// receiveDatagram waits for a datagram that is the session's. Others are dropped: they have no stream (RFC 9297, 2.1).
func (c *Conn) receiveDatagram(ctx context.Context) ([]byte, error) {
	for {
		p, err := c.q.ReceiveDatagram(ctx)
		if err != nil {
			return nil, err
		}
		quarter, n, err := quicvarint.Parse(p)
		switch {
		case err != nil:
			_ = c.q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeDatagramError), "") // never fails
			return nil, err
		case quarter == c.id/4:
			return p[n:], nil
		}
	}
}

// MaxDatagramSize implements transport.Conn.
func (c *Conn) MaxDatagramSize() int {
	if !c.datagrams {
		return 0
	}
	return max(0, qstream.MaxDatagram(c.q)-len(c.datagramHeader))
}

// Context implements transport.Conn.
func (c *Conn) Context() context.Context { return c.ctx }

// Info implements transport.Conn.
func (c *Conn) Info() transport.Info { return c.info }

// Stats implements transport.Conn.
func (c *Conn) Stats() transport.Stats { return qstream.Stats(c.q) }

// SessionEnd implements qstream.Ends: the session's own end, where there is one, says more than the
// connection's.
func (c *Conn) SessionEnd(err error) error {
	if end := context.Cause(c.ctx); end != nil {
		return end
	}
	end := connectionEnd(err)
	c.lost.CompareAndSwap(nil, end)
	return end
}

// SessionGone implements qstream.Ends.
func (c *Conn) SessionGone(wait bool) error {
	if wait {
		timer := time.NewTimer(closeWait)
		defer timer.Stop()
		select {
		case <-c.ctx.Done():
		case <-timer.C:
		}
	}
	return context.Cause(c.ctx)
}

// connectionEnd translates the end of a connection under a session. Codes are HTTP/3's there, but some
// peers close the connection with the mapped code of the session instead of sending a capsule.
func connectionEnd(err error) *transport.SessionError {
	if app, ok := errors.AsType[*quic.ApplicationError](err); ok && app.Remote {
		if code, ok := qstream.Unmap(uint64(app.ErrorCode)); ok {
			return &transport.SessionError{Code: uint32(code), Reason: app.ErrorMessage, Remote: true}
		}
		if app.ErrorCode == 0 || app.ErrorCode == quic.ApplicationErrorCode(http3.ErrCodeNoError) {
			return &transport.SessionError{Reason: app.ErrorMessage, Remote: true}
		}
	}
	return qstream.Lost(err)
}

// connectEnd translates the end of the peer's side of the CONNECT stream without a close capsule.
func connectEnd(err error) *transport.SessionError {
	switch {
	case err == io.EOF: //nolint:errorlint // bare after a clean end
		return &transport.SessionError{Remote: true}
	case errors.Is(err, net.ErrClosed):
		return connectionEnd(err)
	}
	end := qstream.Lost(err)
	if h3, ok := errors.AsType[*http3.Error](err); ok {
		end.Remote = h3.Remote
	}
	return end
}
