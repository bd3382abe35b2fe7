package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Why a dial fails before anything is sent. The errors come in a *DialError.
var (
	ErrScheme       = errors.New("no carrier for this scheme") // which the DialError names
	ErrHost         = errors.New("no host")
	ErrNoAddress    = errors.New("host has no address")
	ErrDialerClosed = fmt.Errorf("dialer: %w", net.ErrClosed)
)

// DialError reports a dial that failed. Its text never holds the path or the query of the URL.
type DialError struct {
	Scheme string
	Host   string // host:port
	Err    error  // of every address that was tried, joined
}

func (e *DialError) Error() string { return fmt.Sprintf("dial %s://%s: %v", e.Scheme, e.Host, e.Err) }
func (e *DialError) Unwrap() error { return e.Err }

// Dialer opens connections. Its methods may be called concurrently.
type Dialer struct {
	cfg    DialConfig
	sock   *Socket
	shared bool // the socket is somebody else's
	conns  registry

	noCongestion sync.Once // the system does not have the congestion control that is asked for

	ctx  context.Context // ends with Close
	stop context.CancelCauseFunc

	mu     sync.Mutex // closed and the first dial of wg
	closed bool
	wg     sync.WaitGroup // dials under way
}

// NewDialer binds the dialer's socket, unless it shares one. The caller must Close the dialer.
func NewDialer(cfg DialConfig) (*Dialer, error) {
	cfg.Addr = orDefault(cfg.Addr, "[::]:0")
	cfg.Race = orDefault(cfg.Race, 250*time.Millisecond)
	cfg.ResolutionDelay = orDefault(cfg.ResolutionDelay, 50*time.Millisecond)
	cfg.Timeout = orDefault(cfg.Timeout, 30*time.Second)
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.HTTP == nil {
		cfg.HTTP = plainHTTP()
	}
	d := &Dialer{cfg: cfg, sock: cfg.Socket, shared: cfg.Socket != nil}
	if d.sock == nil {
		sock, err := openSocket(cfg.PacketConn, cfg.Addr, cfg.Logger, nil)
		if err != nil {
			return nil, fmt.Errorf("dialer: %w", err)
		}
		d.sock = sock
	}
	d.ctx, d.stop = context.WithCancelCause(context.Background())
	return d, nil
}

// Addr is the local address of the socket.
func (d *Dialer) Addr() net.Addr { return d.sock.Addr() }

// Dial connects to a target. The host is resolved anew each time; its addresses are raced as in RFC
// 8305, and the first that completes its handshake wins. The caller closes the connection. The error
// is a *DialError around what failed; a server that refuses a session with an HTTP status is a *webtransport.StatusError or
// a *qmux.StatusError in it.
func (d *Dialer) Dial(ctx context.Context, target Target) (transport.Conn, error) {
	p, err := d.plan(target)
	if err == nil {
		var c carrier
		if c, err = d.dial(ctx, p); err == nil {
			return c, nil
		}
	}
	return nil, &DialError{Scheme: p.scheme, Host: net.JoinHostPort(p.host, p.port), Err: err}
}

func (d *Dialer) dial(ctx context.Context, p *plan) (carrier, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, ErrDialerClosed
	}
	d.wg.Add(1)
	d.mu.Unlock()
	defer d.wg.Done()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(ErrDialerClosed) })()
	if d.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.cfg.Timeout)
		defer cancel()
	}
	if p.scheme == "http" {
		pin, err := fetchPin(ctx, d.cfg.HTTP, p.url.Host)
		if err != nil {
			return nil, err
		}
		p.tls.Fingerprints = []tlsconf.Fingerprint{pin}
	}
	return d.race(ctx, p)
}

// plan is a target in the terms of the layers below.
type plan struct {
	scheme, host, port string
	url                *url.URL
	webTransport       bool
	webSocket          bool
	addrs              []netip.AddrPort // fixed; none: resolve host
	protocols          []string
	tls                tlsconf.ClientConfig
	settings           QUIC
	keepAlive          time.Duration // of the target; 0 = none in particular
	confirm            func(context.Context, transport.Conn) error
}

// plan checks the target. It always returns as much as an error message needs.
func (d *Dialer) plan(t Target) (*plan, error) {
	p := &plan{
		scheme: t.URL.Scheme, host: t.URL.Hostname(), port: orDefault(t.URL.Port(), "443"), url: t.URL,
		addrs: t.Addrs, tls: d.cfg.TLS, confirm: t.Confirm, protocols: d.cfg.Protocols,
	}
	if len(t.Protocols) > 0 {
		p.protocols = t.Protocols
	}
	switch p.scheme {
	case "moqt", "moql":
	case "https", "http":
		p.webTransport = true
	case "wss":
		p.webSocket = true
	case "ws":
		p.webSocket, p.port = true, orDefault(t.URL.Port(), "80")
	default:
		return p, ErrScheme
	}
	if p.host == "" {
		return p, ErrHost
	}
	if len(t.Fingerprints) > 0 {
		p.tls.Fingerprints, p.tls.Insecure = t.Fingerprints, false
	}
	p.tls.ServerName = orDefault(t.ServerName, p.tls.ServerName)
	p.settings = d.cfg.QUIC
	p.settings.KeepAlive = orDefault(t.KeepAlive, p.settings.KeepAlive)
	p.keepAlive = t.KeepAlive
	return p, nil
}

// Close aborts dials under way, closes the connections that the dialer opened and are still open with
// code 0, and then the socket, if it is the dialer's own. It returns when all of their goroutines have ended.
func (d *Dialer) Close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop(ErrDialerClosed)
	d.wg.Wait()
	d.conns.close()
	if d.shared {
		return nil
	}
	return d.sock.close()
}
