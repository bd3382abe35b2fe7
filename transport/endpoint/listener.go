package endpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	quicgo "github.com/quic-go/quic-go"
	"golang.org/x/time/rate"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/quic"
	"github.com/moqmesh/moqmesh/transport/webtransport"
)

// acceptors is how many goroutines take connections off quic-go's queue. It holds 32, and what completes
// its handshake while it is full is refused. A single goroutine is too slow for a burst when it is not
// scheduled at once; of many, one always is.
const acceptors = 64

// codeBusy closes a connection that nobody accepted in time. Both protocols have 1 for an internal error.
const codeBusy = 1

// ErrListenerClosed is what Accept returns after Close or StopAccepting.
var ErrListenerClosed = fmt.Errorf("listener: %w", net.ErrClosed)

// Listener accepts MoQ connections on one UDP socket.
type Listener struct {
	cfg       Config
	sock      *Socket
	ql        *quicgo.Listener
	admission *admission

	queue chan carrier
	ctx   context.Context // ends with the listening; its cause is what Accept returns
	stop  context.CancelCauseFunc
	wg    sync.WaitGroup // the accept loops and the connections that are not accepted yet

	complaints rate.Sometimes
	timedOut   atomic.Uint64
}

// Listen binds the socket and starts to accept. The caller must Close the listener.
func Listen(cfg Config) (*Listener, error) {
	if cfg.TLS == nil {
		if cfg.PacketConn != nil {
			_ = cfg.PacketConn.Close()
		}
		return nil, errors.New("listen: no TLS configuration")
	}
	cfg = cfg.withDefaults()
	l := &Listener{
		cfg: cfg,
		admission: &admission{
			maxPending: cfg.MaxPending, maxPerAddr: cfg.MaxPerAddr, exempt: cfg.Exempt,
		},
		queue:      make(chan carrier, cfg.Backlog),
		complaints: rate.Sometimes{Interval: time.Second},
	}
	sock, err := openSocket(cfg.PacketConn, cfg.Addr, cfg.Logger, l.configure)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.sock = sock
	l.ctx, l.stop = context.WithCancelCause(context.Background())
	config := l.paced(serverTLS(cfg.TLS, append(slices.Clone(cfg.Protocols), h3)))
	l.ql, err = sock.tr.Listen(config, cfg.QUIC.config(max(0, cfg.Timeout)))
	if err != nil {
		l.stop(nil)
		return nil, errors.Join(fmt.Errorf("listen: %w", err), sock.close())
	}
	for range acceptors {
		l.wg.Go(l.accept)
	}
	l.wg.Go(l.refuse)
	return l, nil
}

// serverTLS fits a configuration to QUIC, and whatever its GetConfigForClient returns.
func serverTLS(from *tls.Config, protocols []string) *tls.Config {
	fit := func(c *tls.Config) *tls.Config {
		c = c.Clone()
		c.MinVersion, c.NextProtos = tls.VersionTLS13, protocols
		return c
	}
	out := fit(from)
	if from.GetConfigForClient == nil {
		return out
	}
	var mu sync.Mutex
	var last, fitted *tls.Config // one at a time: a clone for each handshake would have keys for tickets of its own
	out.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := from.GetConfigForClient(hello)
		if c == nil || err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		if c != last {
			last, fitted = c, fit(c)
		}
		return fitted, nil
	}
	return out
}

// paced has Pace asked when the first packets of a client are complete, on the goroutine of its connection alone.
func (l *Listener) paced(c *tls.Config) *tls.Config {
	if l.cfg.Pace == nil {
		return c
	}
	next := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		ctx := l.ctx
		if l.cfg.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, l.cfg.Timeout)
			defer cancel()
		}
		if err := l.cfg.Pace(ctx); err != nil {
			return nil, err
		}
		if next == nil {
			return nil, nil // the configuration as it is
		}
		return next(hello)
	}
	return c
}

func (c Config) withDefaults() Config {
	c.Timeout = orDefault(c.Timeout, 10*time.Second)
	c.Backlog = orDefault(c.Backlog, 128)
	c.MaxPending = orDefault(c.MaxPending, 10_000)
	c.MaxPerAddr = orDefault(c.MaxPerAddr, 10_000)
	c.VerifyRate = orDefault(c.VerifyRate, 200)
	if c.Exempt == nil {
		c.Exempt = netip.Addr.IsLoopback
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// configure prepares the transport for listening: the checks before a handshake, and the keys.
func (l *Listener) configure(tr *quicgo.Transport) {
	if keys := l.cfg.Keys; keys != nil {
		tr.StatelessResetKey = (*quicgo.StatelessResetKey)(&keys.StatelessReset)
		tr.TokenGeneratorKey = (*quicgo.TokenGeneratorKey)(&keys.Token)
	}
	limiter := rate.NewLimiter(rate.Limit(max(0, l.cfg.VerifyRate)), max(0, l.cfg.VerifyRate))
	tr.VerifySourceAddress = func(net.Addr) bool { return !limiter.Allow() }
	tr.ConnContext = func(ctx context.Context, info *quicgo.ClientInfo) (context.Context, error) {
		ctx, err := l.admission.admit(ctx, info.RemoteAddr, time.Now())
		if err != nil {
			l.complain(info.RemoteAddr, err)
		}
		return ctx, err
	}
}

// accept hands every connection to a goroutine of its own: none can delay another.
func (l *Listener) accept() {
	for {
		q, err := l.ql.Accept(l.ctx)
		if err != nil {
			l.stop(fmt.Errorf("listener: %w", err)) // unless it is the effect of that
			return
		}
		l.wg.Go(func() {
			if err := l.serve(q); err != nil {
				l.cfg.Logger.Debug("connection not accepted", "remote", q.RemoteAddr(), "err", err)
			}
		})
	}
}

// refuse ends the listening of quic-go when ours has ended.
func (l *Listener) refuse() {
	<-l.ctx.Done()
	_ = l.ql.Close() // never fails; refuses handshakes under way, and keeps those that are through
	for {
		q, err := l.ql.Accept(context.Background())
		if err != nil {
			return
		}
		_ = q.CloseWithError(0, "") // never fails
	}
}

// serve takes a connection from the end of its TLS handshake to Accept.
func (l *Listener) serve(q *quicgo.Conn) error {
	t := q.Context().Value(ticketKey{}).(*ticket)
	ctx := l.ctx
	if l.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, t.start.Add(l.cfg.Timeout))
		defer cancel()
	}
	c, err := l.open(ctx, q)
	if err != nil {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			l.timedOut.Add(1)
		}
		return err
	}
	if !l.sock.conns.add(c) {
		c.Close(0, "")
		return ErrListenerClosed
	}
	select {
	case l.queue <- c:
		t.accepted()
		return nil
	case <-c.Context().Done():
		return context.Cause(c.Context())
	case <-ctx.Done():
		if l.ctx.Err() != nil {
			c.Close(0, "")
			return ErrListenerClosed
		}
		c.Close(codeBusy, "busy")
		return errors.New("backlog full")
	}
}

// open makes a session of a connection.
func (l *Listener) open(ctx context.Context, q *quicgo.Conn) (carrier, error) {
	protocol := q.ConnectionState().TLS.NegotiatedProtocol
	if protocol == h3 {
		return webtransport.Accept(ctx, q, webtransport.ServerConfig{
			Protocols: l.cfg.Protocols, Handler: l.cfg.Handler,
		})
	}
	return quic.New(q, quic.Options{PlainCodes: plain(l.cfg.PlainCodes, protocol)}), nil
}

func plain(plainCodes func(string) bool, protocol string) bool {
	return plainCodes != nil && plainCodes(protocol)
}

// Accept waits for the next connection: a raw QUIC connection that negotiated one of the protocols, or
// a WebTransport session, with a protocol or without. The caller closes it. After Close or StopAccepting
// the error is ErrListenerClosed, after a failure of the socket that failure; both last.
func (l *Listener) Accept(ctx context.Context) (transport.Conn, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-l.ctx.Done():
			return nil, context.Cause(l.ctx)
		case c := <-l.queue:
			if c.Context().Err() == nil {
				return c, nil
			}
		}
	}
}

// Addr is the local address of the socket.
func (l *Listener) Addr() net.Addr { return l.sock.Addr() }

// Socket is the listener's socket, for dialing from the same address. It is closed with the listener.
func (l *Listener) Socket() *Socket { return l.sock }

// Refused counts the first packets of connections that were refused for any of the limits. A client may
// send more than one before it learns.
func (l *Listener) Refused() uint64 { return l.admission.refused.Load() }

// RefusedBy tells apart the limits of Refused: of handshakes at once, and of connections from one address.
func (l *Listener) RefusedBy() (pending, perAddr uint64) {
	return l.admission.refusedPending.Load(), l.admission.refusedPerAddr.Load()
}

// TimedOut counts connections that were not complete within Config.Timeout, after their TLS handshake.
func (l *Listener) TimedOut() uint64 { return l.timedOut.Load() }

// StopAccepting refuses new connections from now on, closes those that wait for Accept, and keeps the
// others.
func (l *Listener) StopAccepting() {
	l.stop(ErrListenerClosed)
	l.wg.Wait()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case c := <-l.queue:
			wg.Go(func() { c.Close(0, "") })
		default:
			return
		}
	}
}

// Close stops accepting, closes every connection on the socket that is still open with code 0, dialed
// ones too, and then the socket. It returns when all of their goroutines have ended, about half a second
// later at most.
func (l *Listener) Close() error {
	l.StopAccepting()
	return l.sock.close()
}
