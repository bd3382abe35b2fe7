package qmux

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/moqmesh/moqmesh/transport"
)

// StatusError is the refusal of a server to upgrade to WebSocket.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("WebSocket refused with HTTP status %d", e.Status)
}

// Why a WebSocket cannot be had.
var (
	ErrNotWebSocket = errors.New("the server does not speak WebSocket")
	ErrProtocol     = errors.New("the server chose a protocol that was not offered")
	// ErrNoProtocol is a client that offers protocols of which none is ours: answered with status 400.
	ErrNoProtocol = errors.New("no protocol in common")
)

// IsUpgrade reports whether a request asks for a WebSocket.
func IsUpgrade(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Choose returns the token for a request: the first of ours, see Tokens, that the client offers. A client that offers nothing
// gets the legacy format.
func Choose(r *http.Request, protocols []string) (token string, err error) {
	offered := websocket.Subprotocols(r)
	if len(offered) == 0 {
		return "", nil
	}
	token, ok := choose(Tokens(protocols, true), offered)
	if !ok {
		return "", ErrNoProtocol
	}
	return token, nil
}

// Upgrade answers a request that IsUpgrade, whatever its origin, with the token that Choose returned, and starts the
// connection. If it fails the request has been answered. It may block for as long as the client takes to read the answer,
// at most wait.
func Upgrade(w http.ResponseWriter, r *http.Request, token string, wait time.Duration, cfg Config) (*Conn, error) {
	up := websocket.Upgrader{
		HandshakeTimeout: wait, WriteBufferSize: webSocketBuffer, WriteBufferPool: &writeBuffers,
		CheckOrigin: func(*http.Request) bool { return true },
	}
	if token != "" {
		up.Subprotocols = []string{token}
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil, err
	}
	u := *r.URL
	u.Scheme, u.Host = "ws", r.Host
	if r.TLS != nil {
		u.Scheme = "wss"
	}
	cfg.Info.URL = &u
	return startWebSocket(ws, token, cfg), nil
}

func startWebSocket(ws *websocket.Conn, token string, cfg Config) *Conn {
	draft, protocol := ParseToken(token)
	cfg.Info.Kind, cfg.Info.Protocol, cfg.Protocols = transport.KindWebSocket, protocol, nil
	if t, ok := ws.NetConn().(*tls.Conn); ok {
		state := t.ConnectionState()
		if cfg.Info.ServerName == "" {
			cfg.Info.ServerName = state.ServerName
		}
		if len(cfg.Info.PeerCertificates) == 0 && len(state.VerifiedChains) > 0 {
			cfg.Info.PeerCertificates = state.VerifiedChains[0]
		}
	}
	tune(ws.NetConn())
	return start(newWebSocket(ws, draft), draft, cfg)
}

// Connect asks for a WebSocket at u, ws or wss, on a connection that leads there, TLS included, and starts a qmux
// connection with one of the protocols. It owns nc. A server that refuses is a *StatusError.
func Connect(ctx context.Context, nc net.Conn, u *url.URL, protocols []string, cfg Config) (*Conn, error) {
	target := *u
	target.User, target.Fragment, target.RawFragment = nil, "", ""
	offer := Tokens(protocols, true)
	given := func(context.Context, string, string) (net.Conn, error) { return nc, nil }
	dialer := websocket.Dialer{
		NetDialContext: given, NetDialTLSContext: given, Subprotocols: offer,
		WriteBufferSize: webSocketBuffer, WriteBufferPool: &writeBuffers,
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	ws, res, err := dialer.DialContext(ctx, target.String(), nil)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		_ = nc.Close()
		return nil, refusal(res, err)
	}
	token := ws.Subprotocol()
	if token != "" && !slices.Contains(offer, token) {
		_ = nc.Close()
		return nil, ErrProtocol
	}
	cfg.Info.Dialed, cfg.Info.URL = true, &target
	return startWebSocket(ws, token, cfg), nil
}

// refusal tells a server that says no from one that fails.
func refusal(res *http.Response, err error) error {
	switch {
	case res == nil || !errors.Is(err, websocket.ErrBadHandshake):
		return err
	case res.StatusCode == http.StatusSwitchingProtocols || res.StatusCode < 300:
		return ErrNotWebSocket
	default:
		return &StatusError{Status: res.StatusCode}
	}
}
