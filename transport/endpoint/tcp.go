package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/qmux"
)

// WebSocketIdleTimeout ends a session over WebSocket on which nothing arrives.
const WebSocketIdleTimeout = qmux.DefaultIdleTimeout

// overTCP connects as qmux over WebSocket.
func (d *Dialer) overTCP(ctx context.Context, p *plan, addr netip.AddrPort) (carrier, error) {
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	if d.cfg.Congestion != "" {
		if err := qmux.SetCongestion(nc, d.cfg.Congestion); err != nil {
			d.noCongestion.Do(func() {
				if d.cfg.Logger != nil {
					d.cfg.Logger.Warn("the system's congestion control is used", "wanted", d.cfg.Congestion, "err", err)
				}
			})
		}
	}
	cfg := p.settings.qmux(p.keepAlive)
	if p.scheme == "wss" {
		secure := tls.Client(nc, p.tls.TLS(p.host, []string{"http/1.1"}))
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = nc.Close()
			return nil, err
		}
		nc = secure
		state := secure.ConnectionState()
		cfg.Info.ServerName = state.ServerName
		if p.pinned() {
			cfg.Info.PeerCertificates = state.PeerCertificates[:1] // a server always has one
		}
	}
	return carried(qmux.Connect(ctx, nc, p.url, p.protocols, cfg))
}

// qmux is what applies beyond QUIC. Pings and the time without them are qmux's own (C14), but for an interval that is asked
// for.
func (c QUIC) qmux(keepAlive time.Duration) qmux.Config {
	return qmux.Config{
		MaxStreams: c.MaxStreams, ReceiveWindow: c.ReceiveWindow, StreamReceiveWindow: c.StreamReceiveWindow, KeepAlive: keepAlive,
	}
}

// SetCongestion sets the congestion control of a connection that has TCP below, and reports whether it has.
func SetCongestion(c transport.Conn, name string) (applies bool, err error) {
	if q, ok := c.(*qmux.Conn); ok {
		return true, qmux.SetCongestion(q.NetConn(), name)
	}
	return false, nil
}
