package relay

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// newPeerList prepares to follow cluster.connect_api; nil if there is none.
func (r *Relay) newPeerList(c *cluster.Cluster) *peerlist.Watch {
	if r.cfg.PeerList.IsZero() {
		return nil
	}
	return peerlist.New(peerlist.Config{
		Source: r.cfg.PeerList, Self: r.cfg.Self, Client: listClient(r.cfg.Dial.TLS), Logger: r.log,
		Apply: func(list []cluster.Entry) { c.Set(cluster.SourceAPI, list) },
	})
}

// listClient makes the requests for peer lists: like a dial to a peer it presents our certificate and trusts the
// configured roots (C15). Pins and the expected name are those of peers, so they do not count here.
func listClient(trust tlsconf.ClientConfig) *http.Client {
	trust.Fingerprints, trust.ServerName = nil, ""
	return &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader, MaxIdleConns: 1, IdleConnTimeout: 10 * time.Second,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			conf := trust.TLS(host, []string{"h2", "http/1.1"}) // with the files as they are now
			conf.MinVersion = tls.VersionTLS12
			d := tls.Dialer{Config: conf}
			return d.DialContext(ctx, network, address)
		},
	}}
}

// clusterPage is what operators see of the cluster.
func (r *Relay) clusterPage() any {
	type peer struct {
		cluster.Status
		Links []admin.Link `json:"links"`
	}
	page := struct {
		Peers    []peer          `json:"peers"`
		Accepted []admin.Link    `json:"accepted"`       // sessions that peers have dialed
		List     *admin.PeerList `json:"list,omitempty"` // of cluster.connect_api
	}{Peers: []peer{}, Accepted: acceptedPeers(r.sessions.list()), List: r.overviewList()}
	status, shown := r.linked()
	for i, s := range status {
		s.Key = shown[i].Key
		page.Peers = append(page.Peers, peer{s, shown[i].Links})
	}
	return page
}
