package relay

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// webSockets takes the requests for a WebSocket, at any path, and leaves the others to h.
func (r *Relay) webSockets(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case !endpoint.IsWebSocket(req):
			h.ServeHTTP(w, req)
		case r.web.enter():
			defer r.web.upgrades.Done()
			r.upgrade(w, req)
		default:
			http.Error(w, "going away", http.StatusServiceUnavailable)
		}
	})
}

// upgrade admits a client before it answers, so that a refusal is a status, and then brings the session through its
// handshake.
func (r *Relay) upgrade(w http.ResponseWriter, req *http.Request) {
	id := r.ids.Add(1)
	log := r.log.With("session", id, "remote", req.RemoteAddr)
	var admitted *lease.Lease
	conn, err := r.listener.Upgrade(w, req, func(ctx context.Context, info transport.Info) int {
		var err error
		if admitted, err = r.openWebSocket(ctx, req, info); err != nil {
			r.refusals.tell(log, req.URL.EscapedPath(), err)
			return httpStatus(err)
		}
		if err := r.pressure.admit(admitted.Grant().Peer); err != nil {
			r.refusals.tell(log, req.URL.EscapedPath(), err)
			return http.StatusServiceUnavailable
		}
		return 0
	})
	if err == nil && r.greet(id, conn, admitted, log) {
		return
	}
	if err != nil {
		log.Debug("no WebSocket", "error", err)
	}
	if admitted != nil {
		admitted.Close(lease.ReasonDropped, 0, 0)
	}
}

// openWebSocket asks about a request for a session. Its role is not known yet.
func (r *Relay) openWebSocket(ctx context.Context, req *http.Request, info transport.Info) (*lease.Lease, error) {
	info.URL.Host = req.Host
	return r.open(ctx, auth.Request{
		Transport: auth.TransportWebSocket, Remote: req.RemoteAddr, ServerName: serverName(info),
		Path: "/" + strings.TrimPrefix(req.URL.EscapedPath(), "/"), Query: req.URL.RawQuery,
		TLS: auth.IdentityOf(info.PeerCertificates),
	})
}

// httpStatus is how a request is refused.
func httpStatus(err error) int {
	if e, ok := errors.AsType[*admin.StatusError](statusOf(err)); ok {
		return e.Status
	}
	return http.StatusServiceUnavailable
}

// greet does the handshake of an admitted client. It reports true if the session is served now, by a goroutine that has the
// lease.
func (r *Relay) greet(id uint64, conn transport.Conn, admitted *lease.Lease, log *slog.Logger) bool {
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Handshake)
	defer cancel()
	sess, err := lite.Accept(ctx, conn, r.liteConfig(log, r.cfg.Versions))
	if err != nil {
		r.noHandshake(err, log)
		return false
	}
	info, peer := conn.Info(), sess.Peer()
	if peer.Path != info.URL.EscapedPath() || peer.Query != info.URL.RawQuery {
		// SETUP has the last word on where the session belongs, and nobody was asked about that.
		admitted.Close(lease.ReasonDropped, 0, 0)
		if admitted, err = r.openSession(sess, info); err != nil {
			r.refuse(sess, info, log, err)
			return true // there is no lease to close
		}
	}
	grant, err := admitted.Grant().For(role(peer.Role))
	if peer.Hop == r.cfg.Hop {
		err = errSelf
	}
	if err != nil {
		r.refuse(sess, info, log, err)
		return false
	}
	r.begin(id, sess, info, admitted, grant, log)
	return true
}
