package qmux

import (
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// pinger keeps the pings of both directions. Guarded by the lock of the connection.
type pinger struct {
	due    bool      // a request of ours is to be sent
	next   uint64    // its number
	sentAt time.Time // of the last one, as long as it is not answered; else zero
	asked  time.Time // when one was due last

	answerDue bool
	answer    uint64 // the highest request of the peer that is not answered
	heard     uint64 // one more than the highest request of the peer
}

// receivePing notes a request. Answers that have not been sent merge into one.
func (c *Conn) receivePing(seq uint64) *ProtocolError {
	p := &c.ping
	if seq < p.heard && c.draft == Draft02 {
		return violation("ping %d is not above the last", seq)
	}
	if !p.answerDue || seq > p.answer {
		p.answer = seq
	}
	p.answerDue, p.heard = true, max(p.heard, seq+1)
	c.wakeWriter()
	return nil
}

// receivePong measures the round trip with the answer to the last request.
func (c *Conn) receivePong(seq uint64) *ProtocolError {
	p := &c.ping
	if seq >= p.next {
		if c.draft == Draft02 {
			return violation("answer to ping %d, which was never sent", seq)
		}
		return nil
	}
	if seq != p.next-1 || p.sentAt.IsZero() {
		return nil
	}
	rtt := max(time.Since(p.sentAt), 1)
	p.sentAt = time.Time{}
	if c.rtt == 0 {
		c.rtt, c.minRTT = rtt, rtt
	}
	c.rtt += (rtt - c.rtt) / 8
	c.minRTT = min(c.minRTT, rtt)
	return nil
}

// answerPing notes a ping of the carrier, whose answer the writer sends: the reader must not wait for the carrier to take
// it. Of several only the last is answered, as RFC 6455 5.5.3 allows.
func (c *Conn) answerPing(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer, c.answerDue = text, true
	c.wakeWriter()
}

// keptAlive reports whether there are pings of one kind or another, so that silence means something.
func (c *Conn) keptAlive() bool { return c.draft.records() || c.carrier.pings() }

// idleTimeout is in force now; 0 = none. c.mu is held.
func (c *Conn) idleTimeout() time.Duration {
	if !c.keptAlive() {
		return 0
	}
	idle := max(c.cfg.IdleTimeout, 0)
	if theirs := time.Duration(min(c.peer.idleTimeout, 1<<40)) * time.Millisecond; theirs > 0 && c.draft.records() {
		if idle == 0 || theirs < idle {
			idle = theirs
		}
	}
	return idle
}

// interval is the time between pings; 0 = none. c.mu is held.
func (c *Conn) interval() time.Duration {
	every := max(c.cfg.KeepAlive, 0)
	if idle := c.idleTimeout(); idle > 0 && every > 0 {
		every = min(every, idle/3)
	}
	return every
}

// arm sets the timer for the next tick. c.mu is held, or nobody else knows the connection yet.
func (c *Conn) arm(d time.Duration) {
	c.wg.Add(1)
	c.timer = time.AfterFunc(max(d, time.Millisecond), func() {
		defer c.wg.Done()
		c.tick(time.Now())
	})
}

// disarm stops the timer for good. c.mu is held.
func (c *Conn) disarm() {
	if c.timer.Stop() {
		c.wg.Done()
	}
}

// tick does what is due at a time: it gives up a peer that says nothing, and pings.
func (c *Conn) tick(now time.Time) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	const far = time.Hour
	next := now.Add(far)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if !c.known {
		if late := c.started.Add(c.cfg.HandshakeTimeout); now.Before(late) {
			sooner(late)
		} else {
			c.mu.Unlock()
			c.end(&transport.SessionError{Transport: ErrHandshakeTimeout},
				c.draft.closeFrame(frameConnectionClose, codeNone, ErrHandshakeTimeout.Error()))
			return
		}
	}
	if idle := c.idleTimeout(); idle > 0 {
		if late := time.Unix(0, c.heardAt.Load()).Add(idle); now.Before(late) {
			sooner(late)
		} else {
			c.mu.Unlock()
			c.end(&transport.SessionError{Transport: ErrIdleTimeout}, nil)
			return
		}
	}
	if every := c.interval(); every > 0 && c.known && c.keptAlive() {
		if now.Sub(c.ping.asked) >= every {
			c.ping.asked = now
			c.ping.due, c.carrierPing = c.draft.records(), !c.draft.records()
			c.wakeWriter()
		}
		sooner(c.ping.asked.Add(every))
	}
	c.arm(next.Sub(now))
	c.mu.Unlock()
}
