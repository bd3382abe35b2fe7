package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
)

// errDraining keeps the dial loops from linking a relay that is about to go.
var errDraining = errors.New("this relay drains")

// everything is what peers that we dial may publish and see (C13).
var everything = func() paths.Set {
	all, err := paths.ParseSet("**")
	if err != nil {
		panic(err) // a constant
	}
	return all
}()

// startCluster begins to dial the configured peers.
func (r *Relay) startCluster() {
	cfg := r.cfg.Cluster
	cfg.Dial = r.dialPeer
	c := cluster.New(cfg)
	r.cluster.Store(c)
	if len(r.cfg.Peers) == 0 && r.cfg.PeerList.IsZero() && !r.cfg.LAN.Enabled {
		r.log.Info("no peers are configured: running standalone")
	}
	c.Set(cluster.SourceConnect, r.cfg.Peers)
	if list := r.newPeerList(c); list != nil {
		r.peerList.Store(list)
		r.wg.Go(func() { list.Run(r.life) })
	}
	if d := r.lan.Load(); d != nil {
		r.wg.Go(func() { r.followLAN(d, c) })
	}
}

// dialPeer establishes a session with a peer: connection, version and, where the version has one, the peer's SETUP.
func (r *Relay) dialPeer(ctx context.Context, e cluster.Entry) (cluster.Session, error) {
	if r.sessions.isDraining() {
		return nil, errDraining
	}
	id := r.ids.Add(1)
	log := r.log.With("session", id, "peer", e.Name())
	u := e.URL()
	target, versions, err := r.target(e)
	if err != nil {
		return nil, err
	}
	target.KeepAlive = r.peerKeepAlive()
	conn, err := r.dialer.Dial(ctx, target)
	if err != nil {
		return nil, err
	}
	cfg := r.liteConfig(log, versions)
	if cost, ok := e.Price(); ok {
		cfg.Price = &cost
	}
	cfg.Path = u.EscapedPath()
	if u.RawQuery != "" {
		cfg.Path += "?" + u.RawQuery
	}
	sess, err := lite.Connect(ctx, conn, cfg)
	if err != nil {
		return nil, refused(err, conn)
	}
	// The peer's id decides what it may see, and whether it is ourselves (R23, C22a).
	peer, err := sess.AwaitPeer(ctx)
	if err != nil {
		return nil, refused(err, conn)
	}
	if peer.Hop == r.cfg.Hop {
		sess.Close(sessionSelf, selfReason)
		return nil, selfError(conn.Info())
	}
	return &peerSession{relay: r, entry: e, sess: sess, conn: conn, id: id, log: log, goaway: make(chan string, 1)}, nil
}

// refused recognizes a peer that answered and does not want us, or is us.
func refused(err error, conn transport.Conn) error {
	if saysSelf(err) {
		return selfError(conn.Info())
	}
	var closed *transport.SessionError
	if errors.As(err, &closed) && closed.Remote && closed.Transport == nil && closed.Code == lite.SessionUnauthorized {
		return fmt.Errorf("%w: %w", cluster.ErrRefused, err)
	}
	return err
}

// peerSession is a session that we dialed, as package cluster wants to see it.
type peerSession struct {
	relay  *Relay
	entry  cluster.Entry
	sess   *lite.Session
	conn   transport.Conn
	id     uint64
	log    *slog.Logger
	goaway chan string
}

var _ cluster.Session = (*peerSession)(nil)

// ID implements cluster.Session.
func (p *peerSession) ID() uint64 { return p.id }

// Goaway implements cluster.Session.
func (p *peerSession) Goaway() <-chan string { return p.goaway }

// Serve implements cluster.Session.
func (p *peerSession) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.sess.Close(lite.SessionNoError, "no longer a peer") })
	defer stop()
	r, info := p.relay, p.conn.Info()
	peer := origin.Peer{
		ID: p.id, Hop: p.sess.Peer().Hop, DeclaredPrice: p.sess.Peer().Price, Wire: p.sess.Wire(),
		Source: route.SourcePeer, Publish: everything, Subscribe: everything, Hidden: true, ClusterPeer: true,
		OnGoaway: func(uri string) { p.goaway <- uri },
	}
	if cost, ok := p.entry.Price(); ok {
		peer.Price = &cost
	}
	l := &live{
		protocol: p.sess, id: p.id, tier: r.cfg.PeerTier, dialed: true, peer: true, version: p.sess.Version(),
		kind: string(info.Kind), remote: addr(info.Remote), local: addr(info.Local), alpn: alpn(info),
		node: p.entry.Key(), started: time.Now(),
	}
	return refused(r.serve(p.sess, l, peer, p.log), p.conn)
}
