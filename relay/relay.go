// Package relay puts a relay together: listeners, admission, the origin, the dials to peers, and the way down. It holds
// no rule of a protocol or of routing.
package relay

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/lan"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/stats"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Relay is a running relay. Its methods may be called concurrently.
type Relay struct {
	cfg      Config
	started  time.Time
	log      *slog.Logger
	certs    *tlsconf.Store
	listener *endpoint.Listener
	dialer   *endpoint.Dialer
	cache    *media.Cache
	origin   *origin.Origin
	cluster  atomic.Pointer[cluster.Cluster]
	peerList atomic.Pointer[peerlist.Watch] // nil without cluster.connect_api
	lan      atomic.Pointer[lan.Discovery]  // nil without LAN discovery
	web      *web
	leases   *lease.Manager
	limited  lite.Limited
	timeouts atomic.Uint64 // sessions that came to nothing in time
	pressure *pressure
	refusals *refusals
	room     room

	ids      atomic.Uint64 // of sessions, as in log lines
	sessions registry
	watchdog watchdog
	selves   selfLog
	slow     sync.Once      // an accepted peer cannot have the congestion control
	book     *stats.Book    // nil = not counted by broadcast
	wg       sync.WaitGroup // the accept loop and what it started

	closeOnce sync.Once
	life      context.Context // ends when closing begins
	end       context.CancelFunc
	closed    chan struct{} // closed when all has ended
	failed    chan error    // takes why the listener has failed
}

// New binds every socket and starts to serve. It fails, and leaves nothing behind, if one of them cannot be bound or a
// certificate cannot be loaded. The caller must Close the relay, or Shutdown it.
func New(cfg Config) (*Relay, error) {
	cfg = cfg.normal()
	if cfg.Auth == nil {
		return nil, errors.New("relay: nobody can be admitted: no authorizer is configured")
	}
	r := &Relay{
		cfg: cfg, started: time.Now(), log: cfg.Logger, pressure: newPressure(), refusals: newRefusals(),
		closed: make(chan struct{}), failed: make(chan error, 1),
	}
	r.life, r.end = context.WithCancel(context.Background())
	r.sessions.init()
	r.watchdog.init()
	hop, source := cfg.Hop, "configured"
	if hop == 0 {
		hop, source = randomHop(), "random"
	}
	r.cfg.Hop = hop
	r.leases = lease.New(lease.Config{
		Authorizer: cfg.Auth, Node: cfg.Node, NoRecovery: cfg.Lease.NoRecovery, StaleWindow: cfg.Lease.StaleWindow, Logger: r.log,
	})
	if err := r.bind(); err != nil {
		r.release()
		return nil, err
	}
	if err := r.openLAN(); err != nil {
		r.release()
		return nil, err
	}
	r.cache = media.NewCache(cfg.Cache)
	r.room = room{resize: r.cache.Resize, most: cfg.Cache.Capacity}
	r.origin = origin.New(origin.Config{
		Hop: hop, MaxHops: cfg.MaxHops, Cache: r.cache, Logger: r.log, Hedge: cfg.Hedge, IdleTimeout: cfg.Dial.QUIC.IdleTimeout,
		Adverts: cfg.Limits.Announcements, Feeds: cfg.Limits.AnnounceStreams, AnnounceRate: cfg.AnnounceRate,
	})
	r.log.Info("cluster initialized", "hop", uint64(hop), "id", source, "peers", len(cfg.Peers))
	if err := r.startStats(); err != nil {
		_ = r.Close()
		return nil, err
	}
	r.wg.Go(r.accept)
	r.wg.Go(r.watchSessions)
	if cfg.CacheHeadroom > 0 {
		r.wg.Go(func() { r.sizeCache(r.life) })
	}
	if cfg.Memory > 0 {
		r.wg.Go(func() { r.watchMemory(r.life) })
	}
	if cfg.Lateness > 0 {
		r.wg.Go(func() { r.watchLateness(r.life) })
	}
	r.web.start()
	r.startCluster()
	return r, nil
}

// bind opens the certificates and every socket, before anything is served.
func (r *Relay) bind() (err error) {
	certs, changed := r.cfg.Certificates, r.cfg.Certificates.OnChange
	certs.OnChange = func() {
		r.lanCertificate()
		if changed != nil {
			changed()
		}
	}
	if r.certs, err = tlsconf.Open(certs); err != nil {
		return fmt.Errorf("certificates of the listener: %w", err)
	}
	listen := r.cfg.Listen
	if secret := r.certs.Secret(); secret != nil && listen.Keys == nil {
		// Peers of an earlier run learn at once that their connections are gone.
		if listen.Keys, err = endpoint.DeriveKeys(secret); err != nil {
			return fmt.Errorf("keys of the QUIC listener: %w", err)
		}
	}
	listen.TLS = r.certs.Server(r.cfg.ClientRoots)
	listen.Protocols = lite.Tokens(r.cfg.Versions)
	listen.Timeout = r.cfg.Handshake
	listen.Pace = r.pressure.pace
	if r.listener, err = endpoint.Listen(listen); err != nil {
		return fmt.Errorf("QUIC listener: %w", err)
	}
	r.log.Info("listening", "kind", "quic", "address", r.listener.Addr().String())
	dial := r.cfg.Dial
	dial.Protocols = lite.Tokens(r.cfg.DialVersions)
	dial.Congestion = r.cfg.Congestion
	if r.dialer, err = endpoint.NewDialer(dial); err != nil {
		return fmt.Errorf("socket to dial from: %w", err)
	}
	r.web, err = newWeb(r)
	return err
}

// randomHop is non-zero and below 2^53, which old browser clients can decode (R1).
func randomHop() route.Hop {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if h := binary.BigEndian.Uint64(b[:]) >> 11; h != 0 {
			return route.Hop(h)
		}
	}
}

// Hop is our id in hop lists.
func (r *Relay) Hop() route.Hop { return r.cfg.Hop }

// Addr is the UDP address that clients and peers dial.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// Origin is the relay's live set, for programs that embed the relay.
func (r *Relay) Origin() *origin.Origin { return r.origin }

// Done is closed when the relay has been closed.
func (r *Relay) Done() <-chan struct{} { return r.closed }

// State is what the operators' pages show, for programs that embed the relay.
func (r *Relay) State() admin.State { return state{r} }

// Peers describes every peer that the relay dials.
func (r *Relay) Peers() []cluster.Status {
	if c := r.cluster.Load(); c != nil {
		return c.Status()
	}
	return nil // the relay has not begun yet
}

// Failed delivers, once, why no connections can be accepted any more: the socket of the listener has failed, and the
// sessions on it with it. All that is left to do is to close the relay.
func (r *Relay) Failed() <-chan error { return r.failed }

// accept takes connections until the listener closes; each gets a goroutine.
func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept(context.Background())
		if err != nil {
			if !errors.Is(err, endpoint.ErrListenerClosed) {
				r.failed <- fmt.Errorf("QUIC listener: %w", err)
			}
			return
		}
		r.wg.Go(func() { r.admit(conn) })
	}
}

// Close ends every session at once and returns when the last goroutine has ended. Peers see the code for "no error".
func (r *Relay) Close() error {
	r.closeOnce.Do(func() {
		r.end()
		r.sessions.drain()
		r.web.close()
		r.sessions.closeAll(lite.SessionNoError, "going away")
		if c := r.cluster.Load(); c != nil {
			c.Close()
		}
		r.release()
		close(r.closed)
	})
	<-r.closed
	return nil
}

// release closes what bind opened, in the order in which it depends on each other.
func (r *Relay) release() {
	r.end()
	if d := r.lan.Load(); d != nil {
		_ = d.Close()
	}
	if r.web != nil {
		r.web.close()
	}
	if r.dialer != nil {
		_ = r.dialer.Close()
	}
	if r.listener != nil {
		_ = r.listener.Close()
	}
	if r.web != nil {
		r.web.settle() // what they had under way has ended with the listener
	}
	r.wg.Wait()
	r.leases.Close()
	if r.origin != nil {
		r.origin.Close()
	}
	if r.certs != nil {
		_ = r.certs.Close()
	}
}

// Shutdown drains: every session, also one that comes later, is told to go, and the relay closes when the last one has
// left. When ctx ends, the sessions that are still there are closed. If ctx has no time left to begin with, nobody is
// told and all are closed at once. It returns when everything has ended.
func (r *Relay) Shutdown(ctx context.Context) error {
	if ctx.Err() != nil {
		r.log.Info("drain skipped", "sessions", r.sessions.len())
		return r.Close()
	}
	n := r.sessions.drain()
	r.log.Info("drain started", "sessions", n)
	select {
	case <-r.sessions.empty():
		r.log.Info("drain ended", "why", "the last session has left", "forced", 0)
	case <-ctx.Done():
		forced := r.sessions.closeAll(lite.SessionGoawayTimeout, "drain deadline")
		r.log.Info("drain ended", "why", context.Cause(ctx).Error(), "forced", forced)
	}
	return r.Close()
}
