package relay

import (
	"time"

	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// peerKeepAlive is how often a quiet session with a peer is pinged, so that silence means something (H3); 0 leaves it at
// what is configured.
func (r *Relay) peerKeepAlive() time.Duration {
	often, usual := r.cfg.Hedge/2, r.cfg.Dial.QUIC.KeepAlive
	if usual == 0 {
		usual = endpoint.DefaultKeepAlive
	}
	if usual > 0 && often >= usual {
		return 0
	}
	return often
}
