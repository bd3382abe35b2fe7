package qmux

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// Config is what a connection needs to know beside its carrier. Zero fields take the defaults.
type Config struct {
	// Info is what Conn.Info says. Dialed decides which end this is; Local, Remote and, in band, Protocol are filled in.
	Info transport.Info
	// Protocols are agreed in band on plain TCP and Unix sockets, preferred first.
	Protocols []string
	// MaxStreams is how many bidirectional, and as many unidirectional, streams the peer may have open (10000).
	MaxStreams int64
	// ReceiveWindow and StreamReceiveWindow bound what the peer may send ahead of our reading, in bytes (64 MiB and 8 MiB).
	// Both begin at an eighth and grow where the path needs it.
	ReceiveWindow, StreamReceiveWindow uint64
	// IdleTimeout ends a connection on which nothing arrives (30 s). From draft 01 on the smaller value of both ends counts.
	IdleTimeout time.Duration
	// KeepAlive is the interval of pings (5 s; negative: none).
	KeepAlive time.Duration
	// HandshakeTimeout bounds the wait for the peer's transport parameters (10 s).
	HandshakeTimeout time.Duration
}

// The defaults.
const (
	DefaultMaxStreams          = 10_000
	DefaultReceiveWindow       = 64 << 20
	DefaultStreamReceiveWindow = 8 << 20
	DefaultIdleTimeout         = 30 * time.Second
	DefaultKeepAlive           = 5 * time.Second
	DefaultHandshakeTimeout    = 10 * time.Second

	windowGrowth = 8 // from the first window to the largest
	minWindow    = 64 << 10
)

func (c Config) withDefaults() Config {
	c.MaxStreams = orDefault(c.MaxStreams, DefaultMaxStreams)
	c.ReceiveWindow = max(orDefault(c.ReceiveWindow, DefaultReceiveWindow), minWindow)
	c.StreamReceiveWindow = max(orDefault(c.StreamReceiveWindow, DefaultStreamReceiveWindow), minWindow)
	c.IdleTimeout = orDefault(c.IdleTimeout, DefaultIdleTimeout)
	c.KeepAlive = orDefault(c.KeepAlive, DefaultKeepAlive)
	c.HandshakeTimeout = orDefault(c.HandshakeTimeout, DefaultHandshakeTimeout)
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Conn is a transport.Conn on a carrier.
type Conn struct {
	cfg     Config
	draft   Draft
	carrier carrier
	parser  parser
	info    transport.Info
	ours    params // what we have told the peer
	started time.Time

	ctx    context.Context // its life; the cause is the *transport.SessionError
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	ready  chan struct{} // closed when the peer's parameters have come
	quiet  chan struct{} // closed when the reader has ended
	sent   chan struct{} // closed when the writer has ended
	wakeup chan struct{} // of the writer; capacity 1

	heardAt              atomic.Int64 // unix nanoseconds
	records, bytesIn     atomic.Uint64
	recordsOut, bytesOut atomic.Uint64

	mu       sync.Mutex
	err      *transport.SessionError // how it ended
	farewell []byte                  // the frame that says so to the peer; nil = none
	later    []func()                // calls that must not be made under the lock
	timer    *time.Timer

	peer    params
	known   bool // peer has come
	greeted bool // ours is sent

	streams map[uint64]*stream
	next    [kinds]uint64        // how many streams we have opened
	may     [kinds]uint64        // how many the peer allows
	credit  broadcast            // for those who wait for that
	opened  [kinds]uint64        // how many streams the peer has opened
	allowed [kinds]uint64        // how many we allow
	closed  [kinds]uint64        // how many of the peer's are over
	waiting [kinds]fifo[*stream] // opened by the peer and not accepted; our limit on streams bounds them

	schedule  schedule
	control   []control
	unread    bool   // more than may wait
	sendLimit uint64 // of the peer, for what all streams carry
	written   uint64 // of that
	copied    int    // what streams keep of short writes, see copyLimit

	received, consumed uint64 // what all streams carry, and what of it counts as read
	limit              uint64 // ours for that
	window             window
	drained            waiter // where the reader waits, without flow control

	allowedMoved [kinds]bool // MAX_STREAMS is due
	limitMoved   bool        // MAX_DATA is due

	ping        pinger
	rtt, minRTT time.Duration // of pings; rtt is smoothed
	carrierPing bool          // the carrier's own ping is due
	answer      string        // to the last one of the peer
	answerDue   bool

	outgoing, incoming fifo[[]byte] // datagrams
}

var _ transport.Conn = (*Conn)(nil)

// NewStream starts a connection on a stream of bytes whose handshake, if there is one, is over: TLS with one of Tokens as
// the ALPN, plain TCP or a Unix socket. With an empty token the draft is that of TCP and Unix sockets, and the
// protocol is agreed in band: NewStream then waits for the peer's parameters, until ctx ends. It owns nc.
func NewStream(ctx context.Context, nc net.Conn, token string, cfg Config) (*Conn, error) {
	draft := inBand
	if token != "" {
		draft, cfg.Info.Protocol = ParseToken(token)
		cfg.Protocols = nil
	}
	if draft == Legacy {
		_ = nc.Close()
		return nil, fmt.Errorf("qmux: %q is for WebSocket alone", token)
	}
	c := start(newByteStream(nc, draft), draft, cfg)
	if token != "" {
		return c, nil
	}
	select {
	case <-c.ready:
		return c, nil
	case <-c.ctx.Done():
		c.Wait()
		return nil, context.Cause(c.ctx)
	case <-ctx.Done():
		c.Close(codeNone, "")
		c.Wait()
		return nil, context.Cause(ctx)
	}
}

// start takes over a carrier.
func start(car carrier, draft Draft, cfg Config) *Conn {
	cfg = cfg.withDefaults()
	c := &Conn{
		cfg: cfg, draft: draft, carrier: car, info: cfg.Info,
		parser:  parser{draft: draft, delimited: draft.records() || car.pings()},
		ready:   make(chan struct{}),
		quiet:   make(chan struct{}),
		sent:    make(chan struct{}),
		wakeup:  make(chan struct{}, 1),
		streams: make(map[uint64]*stream),
		window:  window{size: cfg.ReceiveWindow / windowGrowth, max: cfg.ReceiveWindow},
	}
	c.info.Local, c.info.Remote = car.conn().LocalAddr(), car.conn().RemoteAddr()
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.started = time.Now()
	c.heardAt.Store(c.started.UnixNano())
	c.ours = c.parameters()
	c.limit = c.ours.data
	c.allowed = [kinds]uint64{c.ours.streamsBidi, c.ours.streamsUni}
	if draft == Legacy { // no limits but ours for streams
		c.greeted, c.known = true, true
		c.sendLimit = math.MaxUint64
		c.may = [kinds]uint64{maxStreams, maxStreams}
		close(c.ready)
	}
	if ws, ok := car.(*webSocket); ok {
		ws.heard, ws.answer = c.hear, c.answerPing
	}
	c.arm(min(c.cfg.HandshakeTimeout, c.interval()))
	c.wg.Go(c.read)
	c.wg.Go(c.write)
	return c
}

// parameters are what we tell the peer.
func (c *Conn) parameters() params {
	stream := c.cfg.StreamReceiveWindow / windowGrowth
	p := params{
		data: c.window.size, bidiLocal: stream, bidiRemote: stream, uni: stream,
		streamsBidi: uint64(c.cfg.MaxStreams), streamsUni: uint64(c.cfg.MaxStreams), protocols: c.cfg.Protocols,
		maxRecord: maxRecord,
	}
	if c.draft.records() {
		p.idleTimeout = uint64(c.cfg.IdleTimeout.Milliseconds())
		p.datagram = maxRecord
	}
	p.resetAt = c.draft == Draft02
	return p
}

// Info implements transport.Conn.
func (c *Conn) Info() transport.Info { return c.info }

// Context implements transport.Conn.
func (c *Conn) Context() context.Context { return c.ctx }

// Wait returns when the goroutines of the connection have ended, soon after it.
func (c *Conn) Wait() { c.wg.Wait() }

// NetConn is what the connection runs on, TLS included; for its options, not to be read or written.
func (c *Conn) NetConn() net.Conn { return c.carrier.conn() }

// maxReason is the longest reason of a close, in bytes.
const maxReason = 512

// Close implements transport.Conn. What streams have still to send is lost.
func (c *Conn) Close(code uint32, reason string) {
	reason = transport.TruncateReason(reason, maxReason)
	c.end(&transport.SessionError{Code: code, Reason: reason},
		c.draft.closeFrame(frameApplicationClose, uint64(code), reason))
	c.Wait()
}

// fail ends the connection because the peer is at fault.
func (c *Conn) fail(err *ProtocolError) {
	c.end(&transport.SessionError{Transport: err}, c.draft.closeFrame(frameConnectionClose, codeViolation, err.Reason))
}

// end ends the connection, the first time that it is called. farewell is what the peer is told; nil = nothing.
func (c *Conn) end(err *transport.SessionError, farewell []byte) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err, c.farewell = err, farewell
	c.disarm()
	c.wg.Go(c.reap) // the writer is still there
	var cancels []context.CancelCauseFunc
	for _, s := range c.streams {
		if s.send.err == nil {
			if s.send.err = err; s.send.cancel != nil && !s.send.fin {
				cancels = append(cancels, s.send.cancel)
			}
		}
		if s.recv.err == nil && (!s.recv.fin || s.recv.off < len(s.recv.buf)) {
			s.recv.err = err
		}
		c.dropCopied(&s.send)
		s.send.wake()
		s.recv.wake()
	}
	c.schedule = schedule{}
	c.control = nil
	c.credit.wake()
	c.drained.wake()
	for i := range c.waiting {
		c.waiting[i].queue = nil
		c.waiting[i].wake()
	}
	c.incoming.wake()
	c.outgoing.wake()
	c.wakeWriter()
	c.mu.Unlock()
	c.cancel(err)
	for _, cancel := range cancels {
		cancel(err)
	}
}

// reap closes the carrier when both ends have said all, or do not within closeWait.
func (c *Conn) reap() {
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	for _, done := range []<-chan struct{}{c.sent, c.quiet} {
		select {
		case <-done:
		case <-timer.C:
			_ = c.carrier.conn().Close() // the goroutines see it
			return
		}
	}
	_ = c.carrier.conn().Close()
}

// broadcast wakes all who wait. Guarded by the lock of the connection.
type broadcast struct{ ch chan struct{} }

// wait returns a channel that is closed at the next wake.
func (b *broadcast) wait() <-chan struct{} {
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *broadcast) wake() {
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Stats implements transport.Conn. Packets are records; where the system measures the path, its figures come in.
func (c *Conn) Stats() transport.Stats {
	c.mu.Lock()
	rtt, minRTT := c.rtt, c.minRTT
	c.mu.Unlock()
	st := transport.Stats{
		RTT: rtt, MinRTT: minRTT, BytesSent: c.bytesOut.Load(), BytesReceived: c.bytesIn.Load(),
		PacketsSent: c.recordsOut.Load(), PacketsReceived: c.records.Load(),
	}
	if path, ok := pathOf(c.carrier.conn()); ok {
		st.RTT, st.MinRTT, st.CongestionWindow, st.PacketsLost = path.rtt, path.minRTT, path.window, path.lost
	}
	return st
}

// MaxDatagramSize implements transport.Conn. It is 0, too, until the peer's parameters have come.
func (c *Conn) MaxDatagramSize() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draft.records() || c.peer.datagram <= datagramOverhead {
		return 0
	}
	return int(min(c.peer.datagram, c.peer.maxRecord, maxRecord)) - datagramOverhead
}
