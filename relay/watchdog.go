package relay

import (
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// watchEvery is how often the watchdog looks.
const watchEvery = 250 * time.Millisecond

// knockEvery is how often a peer that we dialed and that has fallen silent is knocked at, see lite.Session.Knock: if it
// has restarted in between, we learn so now and not at the idle timeout.
const knockEvery = time.Second

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

// watchdog closes a peer session on which no packet has arrived for the idle timeout, or up to watchEvery less, until the
// function that it returns is called (C14). The carrier alone would take up to a keep-alive longer, since it restarts its
// idle timer with the first packet that it sends after the last one received; and it goes silently, so that a peer who
// hears us but is not heard would have to wait for its own timeout after ours. Looks are counted instead of reading the
// clock: a machine that was suspended then reads what has arrived before it judges.
func (r *Relay) watchdog(sess *lite.Session, h *origin.Session, l *live) (stop func()) {
	limit := r.cfg.Listen.QUIC.IdleTimeout
	if l.dialed {
		limit = r.cfg.Dial.QUIC.IdleTimeout
	}
	if limit == 0 {
		limit = endpoint.DefaultIdleTimeout
	}
	knock := max(knockEvery, 2*r.usualSilence())
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		var last uint64
		for quiet := time.Duration(0); quiet < limit-watchEvery; {
			select {
			case <-tick.C:
			case <-end:
				return
			}
			quiet += watchEvery
			if now := sess.Conn().Stats().PacketsReceived; now != last {
				last, quiet = now, 0
			}
			if l.dialed && quiet >= knock && quiet%knockEvery == 0 {
				sess.Knock()
			}
		}
		err := fmt.Errorf("nothing arrived for %v", limit)
		h.Close(err) // first: closing a connection that nobody answers on may take half a second
		sess.Close(lite.SessionControlTimeout, err.Error())
	}()
	return func() {
		close(end)
		<-ended
	}
}
