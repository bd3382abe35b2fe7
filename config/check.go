package config

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"slices"

	"github.com/moqmesh/moqmesh/cluster/peerlist"
)

// Check reads what a relay would read before it starts: certificates, trust, rules. It returns the warnings, to which
// that of a peer list is added which could not be used: the relay would start all the same. Nothing is bound, and nobody
// is asked over the network.
func (c *Config) Check() (warnings []string, err error) {
	rc, err := c.Relay(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if closer, ok := rc.Auth.(interface{ Close() }); ok {
		closer.Close()
	}
	if err := checkPairs("listen.tls.cert", c.Listen.TLS.Pairs); err != nil {
		return nil, err
	}
	if err := checkPairs("web.https.cert", c.Web.HTTPSPairs); err != nil {
		return nil, err
	}
	warnings = slices.Clone(c.Warnings)
	if !c.Cluster.PeerList.IsZero() {
		if err := peerlist.Check(c.Cluster.PeerList, c.Cluster.Node); err != nil {
			warnings = append(warnings, fmt.Sprintf("cluster.connect_api: the list in %s cannot be used: %v", c.Cluster.PeerList, err))
		}
	}
	return warnings, nil
}

// checkPairs loads the certificates that a key names.
func checkPairs(key string, pairs []CertPair) error {
	for _, p := range pairs {
		if _, err := tls.LoadX509KeyPair(p.Cert, p.Key); err != nil {
			return &Error{Key: key, Reason: fmt.Sprintf("%s: %v", p.Cert, err)}
		}
	}
	return nil
}
