package relay

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// watchEvery is how often the watchdog looks.
const watchEvery = 250 * time.Millisecond

// knockEvery is how often a peer that we dialed and that has fallen silent is knocked at, see lite.Session.Knock: if it
// has restarted in between, we learn so now and not at the idle timeout.
const knockEvery = time.Second

// watchdog closes sessions on which no packet has arrived for the idle timeout, or up to watchEvery less (C14). The carrier
// alone would take up to a keep-alive longer, since it restarts its idle timer with the first packet that it sends after
// the last one received; and it goes silently, so that a peer who hears us but is not heard would have to wait for its own
// timeout after ours.
//
// Every session is watched, whatever it is allowed: a relay that was let in by a public rule, or that speaks a version
// without SETUP, looks like any client, and the routes through it are as dead as those through a peer that is known for one.
//
// Looks are counted instead of reading the clock: a machine that was suspended then reads what has arrived before it judges.
type watchdog struct {
	mu      sync.Mutex
	watched map[*watched]struct{}
}

// watched is a session under watch. Only the watching goroutine touches last and quiet.
type watched struct {
	sess   *lite.Session
	origin *origin.Session
	limit  time.Duration // of silence
	knock  time.Duration // of silence until it is knocked at; 0 = never
	last   uint64        // packets received so far
	quiet  time.Duration // looks without a new one, as time
}

func (w *watchdog) init() { w.watched = make(map[*watched]struct{}) }

func (w *watchdog) add(s *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[s] = struct{}{}
}

func (w *watchdog) remove(s *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, s)
}

func (w *watchdog) appendTo(list []*watched) []*watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.AppendSeq(list, maps.Keys(w.watched))
}

// watch puts a session under watch until the function that it returns is called.
func (r *Relay) watch(sess *lite.Session, h *origin.Session, dialed bool) (stop func()) {
	s := &watched{sess: sess, origin: h, limit: r.cfg.Listen.QUIC.IdleTimeout}
	if dialed {
		s.limit = r.cfg.Dial.QUIC.IdleTimeout
		s.knock = max(knockEvery, 2*r.usualSilence())
	}
	if s.limit == 0 {
		s.limit = endpoint.DefaultIdleTimeout
	}
	if sess.Conn().Info().Kind == transport.KindWebSocket {
		s.limit = endpoint.WebSocketIdleTimeout // whatever holds for QUIC (C14)
	}
	r.watchdog.add(s)
	return func() { r.watchdog.remove(s) }
}

// usualSilence is how long nothing arrives from an idle peer that we dialed.
func (r *Relay) usualSilence() time.Duration {
	if often := r.peerKeepAlive(); often > 0 {
		return often
	}
	if usual := r.cfg.Dial.QUIC.KeepAlive; usual != 0 {
		return max(usual, 0)
	}
	return endpoint.DefaultKeepAlive
}

// watchSessions looks at the sessions under watch until the relay closes.
func (r *Relay) watchSessions() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var list []*watched // kept, so that a look allocates nothing
	for {
		select {
		case <-tick.C:
		case <-r.life.Done():
			return
		}
		list = r.watchdog.appendTo(list[:0])
		for _, s := range list {
			if s.look() {
				r.watchdog.remove(s)
				r.wg.Go(s.end)
			}
		}
		clear(list)
	}
}

// look reports whether the session is dead, and knocks at a silent peer.
func (s *watched) look() bool {
	now := s.sess.Conn().Stats().PacketsReceived
	if now != s.last {
		s.last, s.quiet = now, 0
		return false
	}
	if now == 0 {
		return false // a carrier that does not count packets watches for itself
	}
	s.quiet += watchEvery
	if s.knock > 0 && s.quiet >= s.knock && s.quiet%knockEvery == 0 {
		s.sess.Knock()
	}
	return s.quiet >= s.limit-watchEvery
}

// end closes a dead session.
func (s *watched) end() {
	err := fmt.Errorf("nothing arrived for %v", s.limit)
	s.origin.Close(err) // first: closing a connection that nobody answers on may take half a second
	s.sess.Close(lite.SessionControlTimeout, err.Error())
}
