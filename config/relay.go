package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/relay"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Relay turns the settings into what a relay takes: files of trust are read, patterns compiled, sizes worked out. The
// configuration itself does not live on in the relay.
func (c *Config) Relay(logger *slog.Logger) (relay.Config, error) {
	admit, err := c.authorizer(logger)
	if err != nil {
		return relay.Config{}, err
	}
	clients, err := clientCAs("listen.tls.root", c.Listen.TLS.Roots, logger)
	if err != nil {
		return relay.Config{}, err
	}
	webClients, err := clientCAs("web.https.root", c.Web.HTTPSRoots, logger)
	if err != nil {
		return relay.Config{}, err
	}
	trust, err := c.Connect.TLS.client(logger)
	if err != nil {
		return relay.Config{}, err
	}
	capacity, err := c.Cache.Capacity.Resolve()
	if err != nil {
		return relay.Config{}, fmt.Errorf("cache.capacity: %w", err)
	}
	limit, err := c.Limits.memory()
	if err != nil {
		return relay.Config{}, err
	}
	quic := c.QUIC.endpoint()
	return relay.Config{
		Hop: route.Hop(c.Cluster.ID), MaxHops: c.Cluster.MaxHops, Node: cmp.Or(c.Stats.Node, c.Cluster.Node.Key()), Self: c.Cluster.Node,
		Listen:       c.Limits.listener(endpoint.Config{Addr: c.Listen.Bind, QUIC: quic}),
		Limits:       c.Limits.session(),
		AnnounceRate: int(c.Limits.AnnounceRate),
		Certificates: tlsconf.Config{Pairs: pairs(c.Listen.TLS.Pairs), Generate: c.Listen.TLS.Generate},
		Versions:     c.Listen.Versions,
		Handshake:    orNever(c.Listen.Timeout),
		Dial: endpoint.DialConfig{
			Addr: c.Connect.Bind, TLS: trust, Race: c.Connect.Race, ResolutionDelay: c.Connect.ResolutionDelay,
			Timeout: c.Connect.Timeout, QUIC: quic,
		},
		DialVersions: c.Connect.Versions,
		Peers:        c.Cluster.Peers,
		PeerList:     c.Cluster.PeerList,
		Cluster: cluster.Config{
			Token:   c.Cluster.TokenFile,
			Backoff: c.Connect.Backoff.policy(),
			Timeout: c.Connect.Timeout, Redirect: c.Connect.Redirect, Handover: c.Connect.HandoverDuration,
		},
		LAN: relay.LAN{
			Enabled: c.Cluster.LAN.Enabled, App: c.Cluster.LAN.App, Secret: c.Cluster.LAN.Secret, Node: c.Cluster.LAN.Node,
		},
		PeerTier: c.Cluster.Tier, Congestion: c.Cluster.congestion(),
		Hedge: c.Cluster.Hedge,
		Auth:  admit, Lease: c.Auth.lease(), ClientRoots: clients,
		Web: relay.Web{
			HTTP: c.Web.HTTPListen, HTTPS: c.Web.HTTPSListen,
			Certificates: tlsconf.Config{Pairs: pairs(c.Web.HTTPSPairs)}, ClientRoots: webClients, NoWebSocket: !c.Web.WebSocket,
		},
		Internal: c.Internal.Listen,
		Stats: relay.Stats{
			Enabled: c.Stats.Enabled, Prefix: c.Stats.Prefix, Node: c.Stats.Node, Depth: c.Stats.Depth,
			Interval: c.Stats.Interval, Linger: c.Stats.Linger,
		},
		CacheHeadroom: int64(c.Cache.Headroom), Lateness: c.Limits.Lateness, Memory: limit,
		Cache:  media.CacheConfig{Capacity: capacity, Idle: c.Cache.Idle, MaxAge: c.Cache.MaxAge},
		Logger: logger,
	}, nil
}

// congestion is empty where the system decides.
func (c Cluster) congestion() string {
	if c.Congestion == systemCongestion {
		return ""
	}
	return c.Congestion
}

// never is a time limit that no handshake reaches.
const never = 100 * 365 * 24 * time.Hour

// orNever reads 0 as no limit.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return never
	}
	return d
}

func (q QUIC) endpoint() endpoint.QUIC {
	keepAlive := q.KeepAlive
	if keepAlive == 0 {
		keepAlive = -1 // off
	}
	return endpoint.QUIC{
		IdleTimeout: q.IdleTimeout, KeepAlive: keepAlive, MaxStreams: q.MaxStreams,
		ReceiveWindow: q.ReceiveWindow, StreamReceiveWindow: q.StreamReceiveWindow,
	}
}

func pairs(in []CertPair) []tlsconf.Pair {
	out := make([]tlsconf.Pair, 0, len(in))
	for _, p := range in {
		out = append(out, tlsconf.Pair{Cert: p.Cert, Key: p.Key})
	}
	return out
}

// client opens the files that say whom a dial trusts and what it presents; they are read again when they change.
func (c ClientTLS) client(logger *slog.Logger) (tlsconf.ClientConfig, error) {
	out := tlsconf.ClientConfig{Insecure: c.Insecure, ServerName: c.HostName}
	for _, text := range c.Fingerprints {
		f, err := tlsconf.ParseFingerprint(text)
		if err != nil {
			return out, fmt.Errorf("connect.tls.fingerprint: %w", err)
		}
		out.Fingerprints = append(out.Fingerprints, f)
	}
	var err error
	if len(c.Roots) > 0 {
		out.RootFiles, err = tlsconf.OpenRoots("connect.tls.root", c.Roots, c.SystemRoots, logger)
	}
	if c.Cert != "" && err == nil {
		out.KeyPair, err = tlsconf.OpenKeyPair("connect.tls.cert", tlsconf.Pair{Cert: c.Cert, Key: c.Key}, logger)
	}
	return out, err
}
