package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// sweepEvery is how often the cache is told the time.
const sweepEvery = 250 * time.Millisecond

// How long Shutdown waits after the last write: three round trips within these bounds.
const (
	minFlush = 100 * time.Millisecond
	maxFlush = time.Second
)

// Client is one session with a relay, or with any other MoQ peer. Its methods may be called concurrently. The owner
// must call Close or Shutdown, also after the session has failed.
type Client struct {
	cache *media.Cache
	local *local
	link  *link

	dialer  *endpoint.Dialer // ours to close; nil if it was given or the connection was
	cancel  context.CancelFunc
	workers sync.WaitGroup

	mu     sync.Mutex
	closed bool // no more workers
}

// Dial connects to a URL and returns once the handshake is done and requests can be made. The schemes are https
// (WebTransport), moqt or moql (raw QUIC), wss and ws (WebSocket, with TLS and without) and, for development, http: that
// fetches the certificate's hash from /certificate.sha256 over TCP and then dials WebTransport on the same port. ctx bounds
// the dial alone. A refusal by the peer may come later, as the error of the first requests and as Err.
func Dial(ctx context.Context, rawURL string, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	conn, dialer, err := dial(ctx, rawURL, cfg)
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx, conn, requestPath(rawURL), cfg)
	if err != nil {
		err = fmt.Errorf("handshake: %w", err)
		if dialer != nil {
			err = errors.Join(err, dialer.Close())
		}
		return nil, err
	}
	c.dialer = dialer
	return c, nil
}

// DialConn opens the connection alone, without the MoQ handshake, with the dialer of the configuration, which
// must be set. The caller closes it.
func DialConn(ctx context.Context, rawURL string, cfg Config) (transport.Conn, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return cfg.Dialer.Dial(ctx, endpoint.Target{URL: u})
}

// NewDialer makes a dialer for Config.Dialer: one socket for many clients. The caller closes it after the clients.
func NewDialer(cfg Config) (*endpoint.Dialer, error) {
	cfg = cfg.withDefaults()
	return endpoint.NewDialer(endpoint.DialConfig{
		TLS: cfg.TLS, QUIC: cfg.QUIC, Protocols: lite.Tokens(cfg.Versions), Timeout: cfg.DialTimeout, Logger: cfg.Logger,
	})
}

// New starts a client on a connection that is there already; path is path and query of the URL for the connections that
// carry none. The client owns the connection, also if New fails.
func New(ctx context.Context, conn transport.Conn, path string, cfg Config) (*Client, error) {
	return connect(ctx, conn, path, cfg.withDefaults())
}

// dial returns the dialer too if it was made for this connection.
func dial(ctx context.Context, rawURL string, cfg Config) (transport.Conn, *endpoint.Dialer, error) {
	if cfg.Dialer != nil {
		conn, err := DialConn(ctx, rawURL, cfg)
		return conn, nil, err
	}
	if _, err := parseURL(rawURL); err != nil {
		return nil, nil, err
	}
	dialer, err := NewDialer(cfg)
	if err != nil {
		return nil, nil, err
	}
	cfg.Dialer = dialer
	conn, err := DialConn(ctx, rawURL, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, dialer.Close())
	}
	return conn, dialer, nil
}

// parseURL never repeats the URL in its errors.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, ErrURL
	case u.Scheme == "" || u.Host == "":
		return nil, fmt.Errorf("%w: scheme://host[:port]/path is needed", ErrURL)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%w: it has no host", ErrURL)
	}
	return u, nil
}

// requestPath is path[?query] of a URL that parses.
func requestPath(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}

// connect does the handshake.
func connect(ctx context.Context, conn transport.Conn, path string, cfg Config) (*Client, error) {
	sess, err := lite.Connect(ctx, conn, lite.Config{
		Hop: cfg.Hop, Versions: cfg.Versions, Logger: cfg.Logger, HandshakeTimeout: cfg.DialTimeout,
		Role: cfg.Role, Path: path, Price: cfg.Price,
	})
	if err != nil {
		return nil, err // the connection has been closed
	}
	return serve(sess, cfg), nil
}

// serve starts a client on a session.
func serve(sess *lite.Session, cfg Config) *Client {
	cache := media.NewCache(media.CacheConfig{Capacity: cfg.CacheBytes})
	c := &Client{cache: cache, local: newLocal(cfg.Hop, cache)}
	c.link = newLink(c.local, sess)
	life, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.start(func() { c.link.run(life) })
	c.start(func() { c.sweep(life) })
	return c
}

// sweep tells the cache the time until the client is closed.
func (c *Client) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.cache.Sweep(now)
		case <-ctx.Done():
			return
		}
	}
}

// Version is the version that was agreed on.
func (c *Client) Version() Version { return c.link.sess.Version() }

// HasCost reports whether the wire carries the costs of announcements.
func (c *Client) HasCost() bool { return c.Version().HasCost() }

// Done is closed when the session has ended, whoever ended it; Err then tells why.
func (c *Client) Done() <-chan struct{} { return c.link.done }

// Err is nil while the session lives, then its end: a *transport.SessionError, or ErrClosed after Close.
func (c *Client) Err() error { return c.link.err() }

// GoingAway is closed when the peer has sent GOAWAY: it wants this client to leave, and answers no new requests.
// GoawayURI then says where to. The session goes on until either end closes it.
func (c *Client) GoingAway() <-chan struct{} { return c.link.goingAway }

// GoawayURI is the URL to reconnect to that came with GOAWAY; empty means the same one. It may hold credentials.
func (c *Client) GoawayURI() string { return c.link.goawayURI() }

// Shutdown ends the client gracefully: it withdraws and finishes all broadcasts, waits until the subscriptions that are
// being served have got what they lack, then closes. If ctx ends first it closes at once and returns the cause.
func (c *Client) Shutdown(ctx context.Context) error {
	c.local.close(true)
	err := c.flush(ctx)
	c.Close()
	return err
}

// flush waits until nobody lacks anything, or nobody is there any more.
func (c *Client) flush(ctx context.Context) error {
	served := c.local.everServed()
	select {
	case <-c.local.idle():
	case <-c.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !served {
		return nil
	}
	// The last packets may be on their way, or lost and to be sent again, which a close would prevent.
	timer := time.NewTimer(min(max(3*c.link.sess.Conn().Stats().RTT, minFlush), maxFlush))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Close ends the session at once and returns when all goroutines of the client have ended. It may be called twice.
func (c *Client) Close() {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		c.link.close()
		c.local.close(false)
		c.cancel()
	}
	c.workers.Wait()
	if first && c.dialer != nil {
		_ = c.dialer.Close() // a socket that fails to close is of no use either way
	}
}

// start runs f on a goroutine that Close waits for; false after Close.
func (c *Client) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.workers.Go(f)
	return true
}
