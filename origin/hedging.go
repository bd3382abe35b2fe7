package origin

import (
	"cmp"
	"slices"
	"time"

	"github.com/moqmesh/moqmesh/session"
)

// The shell of hedged failover: what arrives on sessions is looked at here, and the owner lets tracks start their
// hedges and tells them of a session that is suspect.

// DefaultHedge is the usual Config.Hedge.
const DefaultHedge = 500 * time.Millisecond

// beatEvery is how often arrivals are looked at: a small part of the shortest silence that counts.
func beatEvery(floor time.Duration) time.Duration {
	return min(max(floor/10, 5*time.Millisecond), 250*time.Millisecond)
}

// beat stamps what arrives, at tracks and on peer sessions, in a goroutine of its own until the function it returns is
// called. Stamps are late by up to a beat, so that no silence counts as longer than it was. A process that was stopped makes
// no beats, and finds what has arrived meanwhile before it takes that for silence.
func (w *owner) beat() (stop func()) {
	every := beatEvery(w.o.cfg.Hedge)
	end, ended := make(chan struct{}), make(chan struct{})
	w.o.cfg.Cache.Beat(time.Now().Add(every))
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				w.o.cfg.Cache.Beat(now.Add(every))
				if peers := w.o.heard.Load(); peers != nil {
					for _, s := range *peers {
						s.listen(now)
					}
				}
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// quietFor is how long a session counts as answering after a silence that was longer than the floor, and not its end.
const quietFor = time.Minute

// hearing is what the beat knows of a session.
type hearing struct {
	packets uint64    // that had arrived when they were last counted
	at      time.Time // when something last did
	quiet   time.Time // when a silence longer than the floor has ended
}

// listen looks whether something has arrived since the last time. Silence means something only where the peer is never
// silent for long while it lives: one who dialed us may ping less often than we would, and the way may be long. Such a
// session counts as answering (H3).
func (s *Session) listen(now time.Time) {
	h := &s.hearing
	n := s.up.(session.Heard).Heard()
	if n == h.packets {
		return
	}
	if !h.at.IsZero() && now.Sub(h.at) > s.o.cfg.Hedge {
		h.quiet = now
	}
	h.packets, h.at = n, now
	if h.quiet.IsZero() || now.Sub(h.quiet) > quietFor {
		s.link.hear(now)
	} else {
		s.link.unhear()
	}
}

// hearable says whether silence of a session means something (H3).
func (s *Session) hearable() bool {
	_, ok := s.up.(session.Heard)
	return ok && s.peer.ClusterPeer && s.o.cfg.Hedge > 0
}

// listHeard publishes the sessions to listen to after one has come or gone.
func (w *owner) listHeard(changed *Session) {
	if !changed.hearable() {
		return
	}
	var list []*Session
	for _, s := range w.sessions {
		if s.hearable() {
			list = append(list, s)
		}
	}
	w.o.heard.Store(&list)
}

// What tracks tell the owner of hedges.
type (
	// hedgeAsked asks for a place, or gives it back.
	hedgeAsked struct {
		t        *track
		priority uint8
		wanted   bool
	}
	// sessionSuspected says that a track was hedged because nothing arrives on a session.
	sessionSuspected struct{ s *Session }
)

func (m hedgeAsked) handle(w *owner) {
	if m.wanted {
		w.gate.ask(m.t, m.priority)
	} else {
		w.gate.forget(m.t)
	}
	w.admitHedges(time.Now())
}

// admitHedges lets tracks start their hedges.
func (w *owner) admitHedges(now time.Time) {
	for _, t := range w.gate.admit(now) {
		t.granted.Store(true)
		t.poke()
	}
}

// handle has the tracks of the session look at once, and those that wait for their first source (H11).
func (m sessionSuspected) handle(w *owner) {
	var on []*track
	for t := range w.actors {
		if src := t.source.Load(); src == nil || src.via == m.s {
			on = append(on, t)
		}
	}
	slices.SortFunc(on, func(a, b *track) int { return cmp.Compare(b.priority.Load(), a.priority.Load()) })
	for _, t := range on {
		t.alarmed.Store(true)
		t.poke()
	}
}

// hedged counts.
func (n *counters) hedged(what hedgeOutcome) {
	switch what {
	case hedgeStarted:
		n.hedges.Add(1)
	case hedgeWon:
		n.hedgesWon.Add(1)
	case hedgeNeedless:
		n.hedgesNeedless.Add(1)
	case hedgeRefused:
		n.hedgesRefused.Add(1)
	}
}
