package qmux

import (
	"time"
)

// window is how far a peer may send ahead of our reading. It doubles while that limits the peer.
type window struct {
	size, max uint64
	moved     time.Time // when the limit was raised last
}

// fallbackRTT is what windows assume before anything is measured.
const fallbackRTT = 100 * time.Millisecond

// next returns the new limit after consumed bytes in all, and whether the peer has to be told: once half of the window is
// used. A window that lasts for less than four round trips is too small for the path.
func (w *window) next(consumed, limit uint64, rtt func() time.Duration) (uint64, bool) {
	if limit > consumed && limit-consumed > w.size/2 {
		return limit, false
	}
	now := time.Now()
	if w.size < w.max && !w.moved.IsZero() && now.Sub(w.moved) < 4*rtt() {
		w.size = min(2*w.size, w.max)
	}
	w.moved = now
	return consumed + w.size, true
}

// consume returns credit for n bytes that a stream's user has read, or will not. c.mu is held.
func (c *Conn) consume(s *stream, n int) {
	c.release(n)
	h := &s.recv
	h.consumed += uint64(n)
	if c.draft == Legacy {
		c.settle(s)
		return
	}
	if !h.over && !h.stopped {
		limit, moved := h.window.next(h.consumed, h.limit, c.roundTrip)
		if h.limit = limit; moved && !h.queued {
			h.queued = true
			c.queue(control{typ: frameMaxStreamData, id: s.id})
		}
	}
	c.settle(s)
}

// release returns credit of the connection. c.mu is held.
func (c *Conn) release(n int) {
	c.consumed += uint64(n)
	if c.draft == Legacy {
		if c.received-c.consumed <= c.window.max/2 {
			c.drained.wake()
		}
		return
	}
	limit, moved := c.window.next(c.consumed, c.limit, c.roundTrip)
	if c.limit = limit; moved {
		c.limitMoved = true
		c.wakeWriter()
	}
}

// roundTrip is the time that credit takes to arrive and to show.
func (c *Conn) roundTrip() time.Duration {
	if rtt := c.rtt; rtt > 0 {
		return max(rtt, time.Millisecond)
	}
	return fallbackRTT
}
