package config

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
)

// finish puts together what several keys say, and checks what must hold between them.
func (l *loader) finish() {
	l.numbers()
	l.certificates()
	l.clientTLS()
	l.authRules()
	l.clusterPeers()
	l.lanDiscovery()
	l.cacheDuration()
	l.advise()
}

// fail reports a rule between keys, at the place of the first of them that is set.
func (l *loader) fail(reason string, names ...string) {
	k := keysByName[names[0]]
	for _, name := range names {
		if from, ok := l.origins[name]; ok {
			l.errs.add(from.source, name, "%s", reason)
			return
		}
	}
	l.errs.add("", k.name+" (--"+k.flag+")", "%s", reason)
}

// numbers narrows what is checked to be in range.
func (l *loader) numbers() {
	l.QUIC.MaxStreams = int64(l.maxStreams)
	l.Cluster.MaxHops = int(l.maxHops)
	l.Stats.Interval = time.Duration(l.statsInterval) * time.Second
	l.Stats.Depth = int(l.statsDepth)
}

// certificates pairs the files of the listeners.
func (l *loader) certificates() {
	const uneven = "certificates and keys must be of the same number"
	if len(l.certs) != len(l.certKeys) {
		l.fail(uneven, "listen.tls.key", "listen.tls.cert")
		return
	}
	l.Listen.TLS.Pairs = pairUp(l.certs, l.certKeys)
	if len(l.certs) == 0 && len(l.Listen.TLS.Generate) == 0 {
		l.fail("QUIC needs a certificate: give listen.tls.cert and listen.tls.key, or listen.tls.generate for development", "listen.tls.cert", "listen.tls.generate")
	}
	switch {
	case len(l.webCerts) != len(l.webCertKeys):
		l.fail(uneven, "web.https.key", "web.https.cert")
	case l.Web.HTTPSListen != "" && len(l.webCerts) == 0:
		l.fail("HTTPS needs web.https.cert and web.https.key", "web.https.listen")
	case l.Web.HTTPSListen == "" && len(l.webCerts) > 0:
		l.warn(l.origins["web.https.cert"].source, "web.https.cert", "without effect, since web.https.listen is unset")
	}
	if l.Web.HTTPSListen == "" && len(l.Web.HTTPSRoots) > 0 {
		l.warn(l.origins["web.https.root"].source, "web.https.root", "without effect, since web.https.listen is unset")
	}
	l.Web.HTTPSPairs = pairUp(l.webCerts, l.webCertKeys)
}

func pairUp(certs, keys []string) (out []CertPair) {
	for i := range min(len(certs), len(keys)) {
		out = append(out, CertPair{certs[i], keys[i]})
	}
	return out
}

// clientTLS works out whom dials trust.
func (l *loader) clientTLS() {
	t := &l.Connect.TLS
	if !l.has("connect.tls.system_roots") {
		t.SystemRoots = len(t.Roots) == 0
	}
	if !t.SystemRoots && len(t.Roots) == 0 && len(t.Fingerprints) == 0 && !t.Insecure {
		l.fail("no certificate would be trusted: give connect.tls.root or connect.tls.fingerprint", "connect.tls.system_roots")
	}
	if (t.Cert == "") != (t.Key == "") {
		l.fail("connect.tls.cert and connect.tls.key go together", "connect.tls.cert", "connect.tls.key")
	}
}

// clusterPeers reads the peers with our own address at hand, and the token file.
func (l *loader) clusterPeers() {
	if l.node != "" {
		l.Cluster.Node, _ = cluster.ParseNode(l.node) // checked when it was set
	}
	list, _ := cluster.Parse(l.peers, cluster.Options{Self: l.Cluster.Node}) // checked as well
	l.Cluster.Peers = list.Entries
	if list.Self {
		l.warn(l.origins["cluster.connect"].source, "cluster.connect", "our own address (cluster.node) is in the list and is not dialed")
	}
	if l.peerList != "" {
		l.Cluster.PeerList, _ = peerlist.ParseSource(l.peerList) // checked as well
	}
	if t := l.Connect.TLS; l.Cluster.PeerList.Secure() && !t.SystemRoots && len(t.Roots) == 0 && !t.Insecure {
		l.fail("nobody is trusted to send the list over https: give connect.tls.root or connect.tls.system_roots", "cluster.connect_api")
	}
	if l.token == "" {
		return
	}
	file, err := cluster.OpenTokenFile(l.token)
	if err != nil {
		l.fail("the token cannot be read: "+withoutPath(err).Error(), "cluster.token")
	}
	l.Cluster.TokenFile = file
}

// withoutPath drops the name of the file: somebody might have put the token itself in its place.
func withoutPath(err error) error {
	if bad, ok := errors.AsType[*fs.PathError](err); ok {
		return bad.Err
	}
	return err
}

const defaultIdle = 30 * time.Second

// cacheDuration lets one key mean two limits, of which only one has a default.
func (l *loader) cacheDuration() {
	if l.has("cache.duration") {
		l.Cache.MaxAge = l.Cache.Idle
	} else {
		l.Cache.Idle = defaultIdle
	}
}

// advise warns of what works but is hardly meant.
func (l *loader) advise() {
	if l.QUIC.KeepAlive == 0 && (len(l.Cluster.Peers) > 0 || !l.Cluster.PeerList.IsZero() || l.Cluster.LAN.Enabled) {
		l.warn(l.origins["quic.keep_alive"].source, "quic.keep_alive", "0s: sessions with peers are lost when nothing happens for quic.idle_timeout (%s)", formatDuration(l.QUIC.IdleTimeout))
	}
	if l.QUIC.KeepAlive >= l.QUIC.IdleTimeout {
		l.warn(l.origins["quic.keep_alive"].source, "quic.keep_alive", "%s is not below quic.idle_timeout (%s): idle connections will be lost",
			formatDuration(l.QUIC.KeepAlive), formatDuration(l.QUIC.IdleTimeout))
	}
	if l.Cluster.Hedge >= l.QUIC.IdleTimeout {
		l.warn(l.origins["cluster.hedge"].source, "cluster.hedge", "%s is not below quic.idle_timeout (%s): nothing is ever hedged",
			formatDuration(l.Cluster.Hedge), formatDuration(l.QUIC.IdleTimeout))
	}
	if l.Cluster.ID >= 1<<53 {
		l.warn(l.origins["cluster.id"].source, "cluster.id", "2^53 or more: browsers lose digits of it")
	}
	if l.Internal.Listen != "" && !private(l.Internal.Listen) {
		l.warn(l.origins["internal.listen"].source, "internal.listen", "%s is not a loopback or private address, and the internal endpoints ask for no authentication", l.Internal.Listen)
	}
	if l.Connect.TLS.Insecure {
		l.warn(l.origins["connect.tls.insecure"].source, "connect.tls.insecure", "every certificate of a peer is trusted")
	}
}

// private reports whether an address cannot be reached from everywhere.
func private(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && (addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast())
}
