package relay

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lan"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// lanPath is where LAN peers come in; it is never an ordinary path (L12).
const lanPath = ".cluster"

// isLANPath reports whether a path is that of LAN peers, and what stands below.
func isLANPath(path string) (credential string, ok bool) {
	path = strings.Trim(path, "/")
	credential, ok = strings.CutPrefix(path, lanPath+"/")
	return credential, ok || path == lanPath
}

// pathVersions are those of vs (nil = all) that carry the path of a request on every carrier (L10).
func pathVersions(vs []message.Version) []message.Version {
	if vs == nil {
		for v := message.Lite01; v <= message.Lite06; v++ {
			vs = append(vs, v)
		}
	}
	return slices.DeleteFunc(slices.Clone(vs), func(v message.Version) bool { return !v.HasSetup() })
}

// openLAN begins to advertise the listener, if that is asked for. The network being down is no error.
func (r *Relay) openLAN() error {
	c := r.cfg.LAN
	if !c.Enabled {
		return nil
	}
	bound, ok := r.listener.Addr().(*net.UDPAddr)
	if !ok {
		return errors.New("LAN discovery: the listener has no UDP port")
	}
	at := bound.AddrPort()
	d, err := lan.Start(lan.Config{
		App: c.App, Secret: c.Secret, Node: c.Node, Fingerprint: r.lanFingerprint(),
		Port: at.Port(), Bind: at.Addr().Unmap(), Logger: r.log,
	})
	if err != nil {
		return fmt.Errorf("LAN discovery: %w", err)
	}
	r.lan.Store(d)
	r.lanCertificate() // it may have changed in between
	return nil
}

// lanFingerprint is what peers may pin: the certificate, unless it comes from files.
func (r *Relay) lanFingerprint() string {
	if len(r.cfg.Certificates.Pairs) > 0 {
		return ""
	}
	return r.certs.Fingerprint()
}

// lanCertificate advertises the certificate as it is now.
func (r *Relay) lanCertificate() {
	if d := r.lan.Load(); d != nil {
		d.SetFingerprint(r.lanFingerprint())
	}
}

// Ready is closed when the relay may be called ready: at once, or with LAN discovery when it has announced itself on an
// interface (L14). The relay serves in any case.
func (r *Relay) Ready() <-chan struct{} {
	if d := r.lan.Load(); d != nil {
		return d.Ready()
	}
	return always
}

var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// followLAN hands what discovery finds to the cluster, until the relay closes.
func (r *Relay) followLAN(d *lan.Discovery, c *cluster.Cluster) {
	refused := make(map[string]bool) // by ID: said already
	var known []lan.Peer
	for {
		peers, err := d.Next(r.life, known)
		if err != nil {
			return
		}
		known = peers
		var entries []cluster.Entry
		keys := make(map[string]bool)
		bad := make(map[string]bool)
		for _, p := range peers {
			e, err := cluster.NewFound(cluster.Found{Address: p.Address, Path: p.Path, Cost: p.Cost, Addrs: p.Addrs, Fingerprint: p.Fingerprint})
			switch {
			case err != nil:
				if bad[p.ID] = true; !refused[p.ID] {
					r.log.Warn("a peer on the LAN cannot be dialed", "peer", p, "err", err)
				}
			case !keys[e.Key()]: // two spellings of one node are one peer
				keys[e.Key()] = true
				entries = append(entries, e)
			}
		}
		refused = bad
		c.Set(cluster.SourceLAN, entries)
	}
}

// target is what to dial for a peer. One from the LAN has its own addresses and certificate, and wants a version that
// carries its credential (L9, L10).
func (r *Relay) target(e cluster.Entry) (endpoint.Target, []message.Version, error) {
	u, versions := e.URL(), r.cfg.DialVersions
	t := endpoint.Target{URL: u}
	if !e.IsFound() {
		return t, versions, nil
	}
	versions = pathVersions(versions)
	t.Addrs, t.Protocols, t.ServerName = e.Addrs(), lite.Tokens(versions), u.Hostname()
	if text := e.Fingerprint(); text != "" {
		pin, err := tlsconf.ParseFingerprint(text)
		if err != nil {
			return t, nil, err
		}
		t.Fingerprints = []tlsconf.Fingerprint{pin}
	}
	return t, versions, nil
}

// admitLAN lets in who presents the credential of our record, and refuses everybody else (L12). Neither is asked about
// nor shown: the credential is all there is to say.
func (r *Relay) admitLAN(id uint64, sess *lite.Session, info transport.Info, credential string, log *slog.Logger) {
	if d := r.lan.Load(); d == nil || !d.Admits(credential) {
		r.refusals.tell(log, "/"+lanPath, errNoLAN)
		sess.Close(lite.SessionUnauthorized, "unauthorized")
		return
	}
	peer := sess.Peer()
	l := &live{
		protocol: sess, id: id, tier: r.cfg.PeerTier, peer: true, lan: true, version: sess.Version(), kind: string(info.Kind),
		remote: addr(info.Remote), local: addr(info.Local), name: serverName(info), alpn: alpn(info),
		role: string(role(peer.Role)), started: time.Now(),
	}
	_ = r.serve(sess, l, origin.Peer{
		ID: id, Hop: peer.Hop, DeclaredPrice: peer.Price, Wire: sess.Wire(), Source: route.SourcePeer,
		Publish: everything, Subscribe: everything, Hidden: true, ClusterPeer: true,
	}, log)
}
