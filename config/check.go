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
	for _, p := range slices.Concat(c.Listen.TLS.Pairs, c.Web.HTTPSPairs) {
		if _, err := tls.LoadX509KeyPair(p.Cert, p.Key); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", p.Cert, err)
		}
	}
	warnings = slices.Clone(c.Warnings)
	if !c.Cluster.PeerList.IsZero() {
		if err := peerlist.Check(c.Cluster.PeerList, c.Cluster.Node); err != nil {
			warnings = append(warnings, fmt.Sprintf("cluster.connect_api: the list in %s cannot be used: %v", c.Cluster.PeerList, err))
		}
	}
	return warnings, nil
}
