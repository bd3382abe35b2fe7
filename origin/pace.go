package origin

import (
	"context"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/route"
)

// DefaultAnnounceRate is the default of Config.AnnounceRate.
const DefaultAnnounceRate = 1000

const (
	// paceBurst is how much of its rate a session may use at once.
	paceBurst = 10 * time.Second
	// peerPace is how much faster a relay of the cluster may announce than a client: it passes on what many do.
	peerPace = 10
)

// pace bounds how often one session changes what it announces. Each change costs every consumer that may hear of it, so
// that the effort of the whole relay would be the session's to choose. Changes that come faster wait, and with them their
// stream: the peer finds it full, and a relay then merges what it has to say by name.
//
// What makes a session announce more at the same time than it ever did is free: how much that can become is limited
// elsewhere, and what a publisher or a neighbour starts with must be there at once. Withdrawals are free as well: there is
// one for each announcement, and nothing dead may stay.
type pace struct {
	every time.Duration // between two changes; 0 = as they come

	mu         sync.Mutex
	due        time.Time // when all changes so far would have come at that distance
	live, most int       // announcements now, and at any time
	slowed     bool
}

// announced counts an announcement and returns how long it has to wait, and whether that is the first time.
func (p *pace) announced(now time.Time) (wait time.Duration, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live++
	if p.live > p.most {
		p.most = p.live
		return 0, false
	}
	return p.take(now)
}

// changed is announced for an update in place.
func (p *pace) changed(now time.Time) (wait time.Duration, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.take(now)
}

func (p *pace) withdrawn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
}

// take uses the next place. p.mu is held.
func (p *pace) take(now time.Time) (wait time.Duration, first bool) {
	if p.every == 0 {
		return 0, false
	}
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(p.every)
	wait = p.due.Sub(now) - paceBurst
	if wait <= 0 {
		return 0, false
	}
	first, p.slowed = !p.slowed, true
	return wait, first
}

// paceOf is how far apart the changes of a peer are kept.
func (o *Origin) paceOf(p *Peer) time.Duration {
	rate := o.cfg.AnnounceRate
	switch {
	case p.Wire == route.WireLocal: // it is ourselves
		return 0
	case p.ClusterPeer:
		rate *= peerPace
	}
	return time.Second / time.Duration(rate)
}

// await has a change wait its turn. It fails if the session ends before.
func (s *Session) await(wait time.Duration, first bool) error {
	if wait <= 0 {
		return nil
	}
	s.o.counters.paced.Add(1)
	if first {
		s.o.log.Warn("announcements slowed", "session", s.peer.ID, "interval", s.pace.every)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.life.Done():
		return context.Cause(s.life)
	}
}
