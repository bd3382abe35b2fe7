package relay

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/transport"
)

// Lease shapes admission where Config.Auth is an auth.Leaser.
type Lease struct {
	// NoRecovery refuses everybody new while nobody can be asked, also who was granted a moment ago.
	NoRecovery bool
	// StaleWindow is as in lease.Config; nil = running sessions stay up to the end of their grants.
	StaleWindow *time.Duration
}

// errNoLAN refuses what comes to the path of LAN peers and is none, before an auth server could decide about it.
var errNoLAN = &auth.Error{Status: http.StatusForbidden, Reason: "not a peer on the LAN"}

// open asks whether a session or request may come in. Its Path starts with a slash.
func (r *Relay) open(ctx context.Context, req auth.Request) (*lease.Lease, error) {
	if _, ok := isLANPath(req.Path); ok {
		return nil, errNoLAN
	}
	return r.leases.Open(ctx, req)
}

// openSession asks about an accepted session, for as long as its client is there.
func (r *Relay) openSession(sess *lite.Session, info transport.Info) (*lease.Lease, error) {
	peer := sess.Peer()
	if peer.Hop == r.cfg.Hop {
		return nil, errSelf
	}
	return r.open(sess.Conn().Context(), auth.Request{
		Transport: authTransport(string(info.Kind)), Remote: addr(info.Remote), Local: addr(info.Local), ServerName: serverName(info),
		ALPN: alpn(info), Path: "/" + strings.TrimPrefix(peer.Path, "/"), Query: peer.Query, Role: role(peer.Role),
		TLS: auth.IdentityOf(info.PeerCertificates),
	})
}

// authTransport is what admission and pages call a carrier.
func authTransport(kind string) auth.Transport {
	if kind == string(transport.KindWebSocket) {
		return auth.TransportWebSocket
	}
	return auth.TransportQUIC
}

// serverName is the SNI, else the host of the URL (auth 3).
func serverName(info transport.Info) string {
	if info.ServerName == "" && info.URL != nil {
		return strings.ToLower(info.URL.Hostname())
	}
	return info.ServerName
}

// refusal maps a refused admission to a session code (auth 5.5).
func refusal(err error) (code uint32, reason string) {
	var e *auth.Error
	switch {
	case !errors.As(err, &e), errors.Is(err, auth.ErrRefused):
		return lite.SessionUnauthorized, "unauthorized"
	case errors.Is(err, auth.ErrInvalid):
		return lite.CodeApplication + uint32(e.Status), lease.ReasonInvalid
	}
	return lite.CodeApplication + uint32(e.Status), "authorization is unavailable"
}

// holder lets a lease steer its session.
type holder struct {
	relay   *Relay
	live    *live
	session *origin.Session
	log     *slog.Logger
}

var _ lease.Holder = (*holder)(nil)

// Granted implements lease.Holder. More to publish than before is accepted at once, but asked for only with the next
// session.
func (h *holder) Granted(g auth.Grant) {
	if narrowed, err := g.For(auth.Role(h.live.role)); err == nil { // an auth server may not have been told of the role
		g = narrowed
	}
	h.log.Info("grant changed", "tier", g.Tier, "publish", g.Publish, "subscribe", g.Subscribe)
	h.relay.sessions.move(h.live, g.Tier)
	h.session.SetGrant(g.Publish, g.Subscribe)
}

// Ended implements lease.Holder.
func (h *holder) Ended(e lease.Ended) {
	level := slog.LevelInfo
	if !errors.Is(e.Kind, auth.ErrRefused) {
		level = slog.LevelWarn
	}
	h.log.Log(context.Background(), level, "lease ended", "reason", e.Reason)
	h.live.Close(endCode(e), e.Reason)
}

// endCode is the session code for the end of a lease.
func endCode(e lease.Ended) uint32 {
	if errors.Is(e.Kind, auth.ErrRefused) {
		return lite.SessionUnauthorized
	}
	return lite.CodeApplication + http.StatusBadGateway
}

// hold ties a session to its lease. The session has ended when the function that it returns is called, with why.
func (r *Relay) hold(l *live, s *origin.Session, log *slog.Logger) (release func(err error)) {
	if l.lease == nil {
		return func(error) {}
	}
	l.lease.Hold(&holder{relay: r, live: l, session: s, log: log})
	return func(err error) {
		c := l.Counters()
		l.lease.Close(r.endReason(err), c.Sent.Bytes.Load(), c.Received.Bytes.Load())
	}
}

// endReason is how the end of a session is reported, unless its lease ended it.
func (r *Relay) endReason(err error) string {
	var closed *transport.SessionError
	switch {
	case r.sessions.isDraining():
		return "shutdown"
	case errors.As(err, &closed) && closed.Transport == nil && closed.Code == lite.SessionNoError:
		return "closed"
	case err == nil:
		return "closed"
	}
	return err.Error()
}

// viewHolder lets a lease cut the body of an HTTP request.
type viewHolder struct{ cancel context.CancelFunc }

func (viewHolder) Granted(auth.Grant)  {} // what is under way goes on
func (h viewHolder) Ended(lease.Ended) { h.cancel() }

// identity is what pages show of a client certificate.
func identity(id *auth.Identity) *admin.ClientIdentity {
	if id == nil {
		return nil
	}
	return &admin.ClientIdentity{Name: id.Name, Fingerprint: id.Fingerprint, Expires: id.Expires.Unix(), Issuer: id.Issuer}
}

// authMetrics translates the counters of admission.
func authMetrics(c lease.Counters) admin.AuthMetrics {
	outcomes := func(o lease.Outcomes) map[string]uint64 {
		return map[string]uint64{"granted": o.Granted, "refused": o.Refused, "unavailable": o.Unavailable, "invalid": o.Invalid}
	}
	return admin.AuthMetrics{
		Connects: outcomes(c.Connects), Refreshes: outcomes(c.Refreshes), Recovered: c.Recovered, Stale: c.Stale,
		Ended: map[string]uint64{
			lease.ReasonExpired: c.Expired, lease.ReasonRefused: c.Refused, lease.ReasonUnavailable: c.Unavailable,
			lease.ReasonInvalid: c.Invalid, "narrowed": c.Narrowed,
		},
	}
}
