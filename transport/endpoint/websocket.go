package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/qmux"
)

// errNoHost refuses a request that does not say whom it is for.
var errNoHost = errors.New("the request names no host")

// IsWebSocket reports whether a request asks for a WebSocket, which Upgrade takes.
func IsWebSocket(r *http.Request) bool { return qmux.IsUpgrade(r) }

// Upgrade answers a request for a WebSocket with a connection, under the limits of the listener. allow has the last word
// before that: 0, or the HTTP status to refuse with; its ctx ends with the client or the timeout of the listener. The
// caller closes the connection; the listener does so too when it is closed. If there is an error the request has been
// answered. Accept has no part in this.
func (l *Listener) Upgrade(
	w http.ResponseWriter, r *http.Request, allow func(context.Context, transport.Info) (status int),
) (transport.Conn, error) {
	token, err := qmux.Choose(r, l.cfg.Protocols)
	if r.Host == "" {
		err = errNoHost
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil, err
	}
	life, leave := context.WithCancelCause(context.Background()) // of the connection, as far as limits are concerned
	admitted, err := l.admit(life, w, r)
	if err != nil {
		leave(err)
		return nil, err
	}
	c, err := l.upgrade(w, r, token, allow)
	if err != nil {
		leave(err)
		return nil, err
	}
	context.AfterFunc(c.Context(), func() { leave(context.Cause(c.Context())) })
	admitted.Value(ticketKey{}).(*ticket).accepted()
	return c, nil
}

// admit applies the limits to a request, and answers it if it is beyond them.
func (l *Listener) admit(life context.Context, w http.ResponseWriter, r *http.Request) (context.Context, error) {
	if l.ctx.Err() != nil {
		http.Error(w, "going away", http.StatusServiceUnavailable)
		return nil, ErrListenerClosed
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, "no address", http.StatusBadRequest)
		return nil, err
	}
	ctx, err := l.admission.admit(life, net.TCPAddrFromAddrPort(remote), time.Now())
	switch {
	case errors.Is(err, errTooManyPerAddr):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
	if err != nil {
		l.complain(r.RemoteAddr, err)
	}
	return ctx, err
}

// complain logs a refusal, once a second.
func (l *Listener) complain(remote any, err error) {
	l.complaints.Do(func() {
		l.cfg.Logger.Warn("connection refused", "remote", remote, "err", err, "refused", l.Refused())
	})
}

func (l *Listener) upgrade(
	w http.ResponseWriter, r *http.Request, token string, allow func(context.Context, transport.Info) int,
) (*qmux.Conn, error) {
	cfg := l.cfg.QUIC.qmux(0)
	if r.TLS != nil {
		cfg.Info.ServerName = r.TLS.ServerName
		if len(r.TLS.VerifiedChains) > 0 {
			cfg.Info.PeerCertificates = r.TLS.VerifiedChains[0]
		}
	}
	if err := l.ask(w, r, cfg.Info, allow); err != nil {
		return nil, err
	}
	c, err := qmux.Upgrade(w, r, token, max(l.cfg.Timeout, 0), cfg)
	if err != nil {
		return nil, err
	}
	if !l.sock.conns.add(c) {
		c.Close(0, "")
		return nil, ErrListenerClosed
	}
	return c, nil
}

// ask lets a request wait for its turn and allow decide about it, and answers it if the decision is no.
func (l *Listener) ask(
	w http.ResponseWriter, r *http.Request, info transport.Info, allow func(context.Context, transport.Info) int,
) error {
	ctx := r.Context()
	if l.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.cfg.Timeout)
		defer cancel()
	}
	if l.cfg.Pace != nil {
		turn, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
		if err := l.cfg.Pace(turn); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return err
		}
	}
	info.Kind, info.URL = transport.KindWebSocket, r.URL
	if status := allow(ctx, info); status != 0 {
		http.Error(w, http.StatusText(status), status)
		return &qmux.StatusError{Status: status}
	}
	return nil
}
