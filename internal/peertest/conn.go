package peertest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/moqmesh/moqmesh/transport"
)

// Defaults of Options.
const (
	DefaultWindow       = 64 << 10
	DefaultStreams      = 100
	DefaultDatagramSize = 1200
)

// datagramQueue is how many datagrams wait for their receiver; more are lost.
const datagramQueue = 256

// ErrDatagramTooLarge is what SendDatagram says to a payload above the size of the pair.
var ErrDatagramTooLarge = errors.New("datagram is too large")

// Options describe a Pair. The zero value is a raw QUIC connection.
type Options struct {
	// Client and Server are what Info says at the two ends. Dialed is set by Pair, Kind is transport.KindQUIC unless set,
	// and an empty Protocol of the server is that of the client.
	Client, Server transport.Info
	// Window is how many bytes of a stream may be unread before Write blocks; 0 = DefaultWindow.
	Window int
	// Streams is how many streams of one kind an end may have open at a time; 0 = DefaultStreams.
	Streams int
	// DatagramSize is the largest datagram; 0 = DefaultDatagramSize, negative = no datagrams.
	DatagramSize int
}

// link is what the two ends share. Its lock covers all state of both ends and of all streams.
type link struct {
	mu       sync.Mutex
	window   int
	streams  int
	datagram int
	ends     [2]*Conn
}

// kind tells bidirectional streams from unidirectional ones.
type kind int

const (
	bidi kind = iota
	uni
)

// Conn is one end of a Pair. It implements transport.Conn.
type Conn struct {
	link *link
	peer *Conn
	info transport.Info

	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by link.mu.
	err       *transport.SessionError // set once, when the connection has ended
	changed   *sync.Cond              // accept queues, datagrams, open and err
	open      [2]int                  // streams opened here and not yet over at the peer
	silent    [2][]*Stream            // opened here, nothing sent yet: the peer does not know of them
	accept    [2][]*Stream            // opened by the peer, not yet accepted
	datagrams [][]byte
	halves    map[*half]struct{} // with somebody to wake when the connection ends
	stats     transport.Stats

	datagramSize atomic.Int64
}

var _ transport.Conn = (*Conn)(nil)

// Pair returns the two ends of a new connection.
func Pair(o Options) (client, server *Conn) {
	l := &link{
		window:   cmp.Or(o.Window, DefaultWindow),
		streams:  cmp.Or(o.Streams, DefaultStreams),
		datagram: max(cmp.Or(o.DatagramSize, DefaultDatagramSize), 0),
	}
	o.Server.Protocol = cmp.Or(o.Server.Protocol, o.Client.Protocol)
	client, server = newConn(l, o.Client, true), newConn(l, o.Server, false)
	client.peer, server.peer = server, client
	l.ends = [2]*Conn{client, server}
	return client, server
}

func newConn(l *link, info transport.Info, dialed bool) *Conn {
	info.Dialed = dialed
	info.Kind = cmp.Or(info.Kind, transport.KindQUIC)
	clientAddr := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 50000}
	serverAddr := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 443}
	if info.Local, info.Remote = clientAddr, serverAddr; !dialed {
		info.Local, info.Remote = info.Remote, info.Local
	}
	c := &Conn{link: l, info: info, changed: sync.NewCond(&l.mu), halves: make(map[*half]struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.datagramSize.Store(int64(l.datagram))
	return c
}

// OpenStream opens a bidirectional stream. As in QUIC, the peer learns of it with the first thing that is sent on it, or
// on a later stream of its kind.
func (c *Conn) OpenStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.openStream(ctx, bidi)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// OpenUniStream opens a unidirectional stream.
func (c *Conn) OpenUniStream(ctx context.Context) (transport.SendStream, error) {
	s, err := c.openStream(ctx, uni)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Conn) openStream(ctx context.Context, k kind) (*Stream, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if err := c.wait(ctx, func() bool { return c.open[k] < c.link.streams }); err != nil {
		return nil, err
	}
	c.open[k]++
	s, remote := newStream(c, k)
	c.silent[k] = append(c.silent[k], remote)
	return s, nil
}

// AcceptStream waits for the next bidirectional stream of the peer.
func (c *Conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.acceptStream(ctx, bidi)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// AcceptUniStream waits for the next unidirectional stream of the peer.
func (c *Conn) AcceptUniStream(ctx context.Context) (transport.ReceiveStream, error) {
	s, err := c.acceptStream(ctx, uni)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Conn) acceptStream(ctx context.Context, k kind) (*Stream, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if err := c.wait(ctx, func() bool { return len(c.accept[k]) > 0 }); err != nil {
		return nil, err
	}
	s := c.accept[k][0]
	c.accept[k] = c.accept[k][1:]
	return s, nil
}

// SendDatagram delivers a datagram. It never blocks; it is lost if the peer has too many unread ones.
func (c *Conn) SendDatagram(payload []byte) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case len(payload) > c.MaxDatagramSize():
		return ErrDatagramTooLarge
	}
	c.stats.BytesSent += uint64(len(payload))
	if len(c.peer.datagrams) < datagramQueue {
		c.peer.datagrams = append(c.peer.datagrams, append([]byte(nil), payload...))
		c.peer.changed.Broadcast()
	}
	return nil
}

// ReceiveDatagram waits for the next datagram.
func (c *Conn) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if err := c.wait(ctx, func() bool { return len(c.datagrams) > 0 }); err != nil {
		return nil, err
	}
	p := c.datagrams[0]
	c.datagrams = c.datagrams[1:]
	c.stats.BytesReceived += uint64(len(p))
	return p, nil
}

// MaxDatagramSize is what the pair was made with, or what SetMaxDatagramSize said last.
func (c *Conn) MaxDatagramSize() int { return int(c.datagramSize.Load()) }

// SetMaxDatagramSize changes the size of datagrams that this end sends, as the path of a connection may.
func (c *Conn) SetMaxDatagramSize(n int) { c.datagramSize.Store(int64(n)) }

// Close ends the connection at both ends. Whatever is unread is lost.
func (c *Conn) Close(code uint32, reason string) {
	c.end(
		&transport.SessionError{Code: code, Reason: reason},
		&transport.SessionError{Code: code, Reason: reason, Remote: true},
	)
}

// Fail ends the connection at both ends as a failure of the carrier does.
func (c *Conn) Fail(cause error) {
	c.end(&transport.SessionError{Transport: cause}, &transport.SessionError{Transport: cause})
}

// end ends the connection unless it has ended.
func (c *Conn) end(here, there *transport.SessionError) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.err != nil {
		return
	}
	c.fail(here)
	c.peer.fail(there)
}

// fail ends one end.
func (c *Conn) fail(err *transport.SessionError) {
	c.err = err
	c.cancel(err)
	c.changed.Broadcast()
	for h := range c.halves {
		h.reader.Broadcast()
		h.writer.Broadcast()
	}
	clear(c.halves)
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// Info says what the options said.
func (c *Conn) Info() transport.Info { return c.info }

// Stats counts bytes; the rest is what SetStats said last.
func (c *Conn) Stats() transport.Stats {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.stats
}

// SetStats replaces the counters, for what depends on measurements.
func (c *Conn) SetStats(s transport.Stats) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	c.stats = s
}

// Streams is how many streams this end has opened that are not yet over at the peer.
func (c *Conn) Streams() (bidirectional, unidirectional int) {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	return c.open[bidi], c.open[uni]
}

// wait waits, with the lock held, until ready is true. It fails when ctx or the connection ends.
func (c *Conn) wait(ctx context.Context, ready func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		c.link.mu.Lock()
		defer c.link.mu.Unlock()
		c.changed.Broadcast()
	})
	defer stop()
	for {
		switch {
		case c.err != nil:
			return c.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case ready():
			return nil
		}
		c.changed.Wait()
	}
}
