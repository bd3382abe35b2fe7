package relay

import (
	"runtime/debug"
	"strconv"
	"time"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lite"
)

// overview collects what operators see first.
func (r *Relay) overview() admin.Overview {
	all := r.sessions.list()
	_, peers := r.linked()
	return admin.Overview{
		Time: time.Now().UTC(), Node: r.cfg.Node, Hop: uint64(r.cfg.Hop), Version: buildVersion(), Started: r.started.UTC(),
		Draining: r.sessions.isDraining(), Totals: r.overviewTotals(),
		Peers: peers, Accepted: acceptedPeers(all), List: r.overviewList(),
		Sessions: r.acceptedSessions(all), Routes: r.overviewRoutes(), Tracks: r.overviewTracks(),
	}
}

func (r *Relay) overviewTotals() admin.Totals {
	m := state{r}.Metrics()
	t := admin.Totals{
		Sessions: m.Own.Sessions, Routes: m.Own.Routes, HoldsPending: m.Own.HoldsPending, Tracks: m.Own.Tracks,
		Readers: m.Own.Readers, UpstreamSubscriptions: m.Own.UpstreamSubscriptions, Failovers: m.Own.Failovers,
		CacheBytes: m.Own.CacheBytes, CacheCapacity: m.Own.CacheCapacity,
	}
	for _, tier := range m.Tiers {
		t.Sent += tier.Publisher.Bytes
		t.Received += tier.Subscriber.Bytes
	}
	return t
}

// linked describes the peers that we dial, as the cluster sees them and with their live sessions.
func (r *Relay) linked() (status []cluster.Status, out []admin.Peer) {
	status = r.Peers()
	byID := make(map[uint64]*live)
	for _, l := range r.sessions.list() {
		byID[l.id] = l
	}
	out = make([]admin.Peer, 0, len(status))
	for _, s := range status {
		p := admin.Peer{
			Key: s.Key, Source: s.Source.String(), State: string(s.State), Since: s.Since, Attempts: s.Attempts,
			LastError: s.LastError, LastErrorAt: s.LastErrorAt, NextDial: s.NextDial, Links: []admin.Link{},
		}
		if s.Source == cluster.SourceLAN {
			p.Key = s.Name // never a path (C7)
		}
		for _, id := range s.Sessions {
			if l := byID[id]; l != nil {
				p.Links = append(p.Links, l.link(s.Cost))
			}
		}
		out = append(out, p)
	}
	return status, out
}

// acceptedPeers are the sessions that relays of the cluster have dialed.
func acceptedPeers(all []*live) []admin.Link {
	out := []admin.Link{}
	for _, l := range all {
		if l.peer && !l.dialed {
			out = append(out, l.link(cluster.DefaultCost))
		}
	}
	return out
}

// link describes a session with a peer, for which we charge a cost.
func (l *live) link(cost uint64) admin.Link {
	out := admin.Link{
		Session: l.id, Version: l.version.String(), Transport: l.kind, Remote: l.remote, Cost: cost, PeerCost: cluster.DefaultCost,
		Sent: l.Counters().Sent.Bytes.Load(), Received: l.Counters().Received.Bytes.Load(), Since: l.started.UTC(),
	}
	s, ok := l.protocol.(*lite.Session)
	if !ok {
		return out
	}
	peer, stats := s.Peer(), s.Conn().Stats()
	out.Hop = uint64(peer.Hop)
	if peer.Price != nil {
		out.PeerCost = *peer.Price
	}
	out.RTT = milliseconds(stats.RTT)
	out.Loss = float64(stats.PacketsLost) / float64(max(1, stats.PacketsSent))
	return out
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// acceptedSessions describes who has connected, the oldest first. The ids are those of log lines. LAN peers are not among
// them (L12).
func (r *Relay) acceptedSessions(all []*live) []admin.Session {
	out := []admin.Session{}
	for _, l := range all {
		if l.dialed || l.lan || len(out) == admin.ListLimit {
			continue
		}
		s := admin.Session{
			ID: strconv.FormatUint(l.id, 10), Transport: l.kind, Remote: l.remote, ServerName: l.name, ALPN: l.alpn, Path: l.path,
			Role: l.role, Started: l.started.Unix(),
		}
		r.detail(l, &s)
		out = append(out, s)
	}
	return out
}

// detail fills in what only we tell of a session.
func (r *Relay) detail(l *live, s *admin.Session) {
	s.Version, s.Tier, s.Peer = l.version.String(), r.sessions.tierOf(l), l.peer
	s.Sent, s.Received = l.Counters().Sent.Bytes.Load(), l.Counters().Received.Bytes.Load()
	if p, ok := l.protocol.(*lite.Session); ok {
		s.RTT, s.Hop = milliseconds(p.Conn().Stats().RTT), uint64(p.Peer().Hop)
	}
}

func (r *Relay) overviewList() *admin.PeerList {
	l := r.peerList.Load()
	if l == nil {
		return nil
	}
	s := l.Status()
	return &admin.PeerList{Source: s.Source, Peers: s.Peers, Changed: s.Changed, Checked: s.Checked, Error: s.Error}
}

func (r *Relay) overviewRoutes() []admin.RouteEntry {
	all := r.origin.Routes()
	out := make([]admin.RouteEntry, 0, min(len(all), admin.ListLimit))
	for _, a := range all[:cap(out)] {
		e := admin.RouteEntry{
			Prefix: a.Prefix, Hops: make([]uint64, len(a.Hops)), Cost: a.Warm, Session: a.Session, Source: a.Source, Live: a.Live,
			Goaway: a.Goaway, Step: a.Step,
		}
		for i, h := range a.Hops {
			e.Hops[i] = uint64(h)
		}
		out = append(out, e)
	}
	return out
}

func (r *Relay) overviewTracks() []admin.TrackEntry {
	all := r.origin.Tracks()
	out := make([]admin.TrackEntry, 0, min(len(all), admin.ListLimit))
	for _, a := range all[:cap(out)] {
		out = append(out, admin.TrackEntry{
			Path: a.Path, Track: a.Track, Session: a.Session, Copies: a.Copies, Readers: a.Readers, Groups: a.Groups, Bytes: a.Bytes,
		})
	}
	return out
}

// buildVersion is the version of the program that the relay is part of.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value[:min(12, len(s.Value))]
		}
	}
	if revision == "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return revision
}
