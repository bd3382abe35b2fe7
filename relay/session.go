package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// admit brings an accepted connection through handshake and admission, and leaves it to a goroutine of its own that serves
// it until it ends: the stack that cryptography and decoding have grown is not kept for as long as the session lasts.
func (r *Relay) admit(conn transport.Conn) {
	info := conn.Info()
	id := r.ids.Add(1)
	log := r.log.With("session", id, "remote", addr(info.Remote))
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Handshake)
	defer cancel()
	sess, err := lite.Accept(ctx, conn, r.liteConfig(log, r.cfg.Versions))
	if err != nil {
		r.noHandshake(err, log)
		return
	}
	if credential, ok := isLANPath(sess.Peer().Path); ok && sess.Peer().Hop != r.cfg.Hop {
		r.admitLAN(id, sess, info, credential, log)
		return
	}
	admitted, err := r.openSession(sess, info)
	if err != nil {
		r.refuse(sess, info, log, err)
		return
	}
	r.begin(id, sess, info, admitted, admitted.Grant(), log)
}

// noHandshake notes why a connection has not become a session.
func (r *Relay) noHandshake(err error, log *slog.Logger) {
	if errors.Is(err, context.DeadlineExceeded) {
		r.timeouts.Add(1)
	}
	log.Debug("handshake failed", "error", err)
}

// refuse closes a session that is not admitted.
func (r *Relay) refuse(sess *lite.Session, info transport.Info, log *slog.Logger, err error) {
	if errors.Is(err, errSelf) {
		r.selves.tell(log, info)
		sess.Close(sessionSelf, selfReason)
		return
	}
	r.refusals.tell(log, sess.Peer().Path, err)
	code, reason := refusal(err)
	sess.Close(code, reason)
}

// begin leaves an admitted session to a goroutine that serves it.
func (r *Relay) begin(id uint64, sess *lite.Session, info transport.Info, admitted *lease.Lease, grant auth.Grant, log *slog.Logger) {
	if err := r.pressure.admit(grant.Peer); err != nil {
		r.refusals.tell(log, sess.Peer().Path, err)
		admitted.Close(err.Error(), 0, 0)
		sess.Close(lite.CodeApplication+http.StatusServiceUnavailable, err.Error())
		return
	}
	if grant.Peer {
		r.setCongestion(sess.Conn())
	}
	peer := origin.Peer{
		ID: id, Hop: sess.Peer().Hop, DeclaredPrice: sess.Peer().Price, Wire: sess.Wire(), Source: source(grant.Peer),
		Root: grant.Root, Publish: grant.Publish, Subscribe: grant.Subscribe, Mounts: grant.Mounts, Hidden: grant.Peer,
		ClusterPeer: grant.Peer,
	}
	l := r.describe(id, sess, info, admitted)
	r.wg.Go(func() { _ = r.serve(sess, l, peer, log) })
}

// setCongestion gives an accepted peer the congestion control of those that we dial.
func (r *Relay) setCongestion(conn transport.Conn) {
	if r.cfg.Congestion == "" {
		return
	}
	if _, err := endpoint.SetCongestion(conn, r.cfg.Congestion); err != nil {
		r.slow.Do(func() { r.log.Warn("the system's congestion control is used", "wanted", r.cfg.Congestion, "err", err) })
	}
}

func (r *Relay) liteConfig(log *slog.Logger, versions []message.Version) lite.Config {
	return lite.Config{Hop: r.cfg.Hop, Versions: versions, Logger: log, HandshakeTimeout: r.cfg.Handshake, Limits: r.cfg.Limits, Limited: &r.limited}
}

// source says where routes of a session count as having entered (R36).
func source(peer bool) route.Source {
	if peer {
		return route.SourcePeer
	}
	return route.SourceLocal
}

func role(r message.Role) auth.Role {
	switch r {
	case message.RolePublisher:
		return auth.RolePublisher
	case message.RoleSubscriber:
		return auth.RoleSubscriber
	default:
		return auth.RoleBoth
	}
}

func addr(a fmt.Stringer) string {
	if a == nil {
		return ""
	}
	return a.String()
}

func alpn(info transport.Info) string {
	if info.Kind == transport.KindWebTransport {
		return "h3"
	}
	return info.Protocol
}

// describe collects what pages and log lines say of an accepted session.
func (r *Relay) describe(id uint64, sess *lite.Session, info transport.Info, admitted *lease.Lease) *live {
	grant := admitted.Grant()
	return &live{
		protocol: sess, id: id, tier: grant.Tier, peer: grant.Peer, version: sess.Version(), kind: string(info.Kind),
		remote: addr(info.Remote), local: addr(info.Local), name: serverName(info), alpn: alpn(info),
		path: "/" + strings.Trim(sess.Peer().Path, "/"), role: string(role(sess.Peer().Role)), started: time.Now(),
		lease: admitted, tls: auth.IdentityOf(info.PeerCertificates),
	}
}

// serve runs an admitted session until it ends, and returns why.
func (r *Relay) serve(sess *lite.Session, l *live, peer origin.Peer, log *slog.Logger) error {
	how := "session accepted"
	if l.dialed {
		how = "session established"
	}
	log.Info(how, "transport", l.kind, "version", l.version.String(), "role", l.role, "tier", l.tier,
		"root", peer.Root, "publish", peer.Publish, "subscribe", peer.Subscribe)
	h := r.origin.Attach(peer, sess)
	r.sessions.add(l)
	defer r.watch(sess, h, l.dialed)()
	release := r.hold(l, h, log)
	ended := r.countBroadcasts(sess, l, peer.Root)
	err := sess.Run(context.Background(), h, h.Interests())
	h.Close(err)
	release(err)
	ended()
	r.sessions.remove(l)
	sent, received := &l.Counters().Sent, &l.Counters().Received
	log.Info("session closed", "cause", err, "lasted", time.Since(l.started).Round(time.Millisecond),
		"sent", sent.Bytes.Load(), "received", received.Bytes.Load())
	return err
}
