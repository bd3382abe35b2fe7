package qmux

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// The kinds of streams, as they are in their ids, and who opened them.
const (
	kindBidi = 0
	kindUni  = 1
	kinds    = 2
)

func initiator(id uint64) uint64 { return id & 1 }
func kindOf(id uint64) int       { return int(id >> 1 & 1) }

// stream is a stream of either kind; of a unidirectional one half is never used. All fields are guarded by the lock of the
// connection.
type stream struct {
	c        *Conn
	id       uint64
	accepted bool // or ours
	send     sendHalf
	recv     recvHalf
}

var _ transport.Stream = (*stream)(nil)

// waiter is where one goroutine waits for its half of a stream.
type waiter struct {
	ch       chan struct{} // capacity 1; nil until somebody has waited
	deadline time.Time
}

func (w *waiter) wake() {
	if w.ch == nil {
		return
	}
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// expired reports whether the deadline has passed.
func (w *waiter) expired() bool { return !w.deadline.IsZero() && !time.Now().Before(w.deadline) }

// wait waits until it is woken or the deadline has passed. c.mu is held, but not while it waits.
func (c *Conn) wait(w *waiter) {
	if w.ch == nil {
		w.ch = make(chan struct{}, 1)
	}
	ch := w.ch
	var late <-chan time.Time
	if !w.deadline.IsZero() {
		timer := time.NewTimer(time.Until(w.deadline))
		defer timer.Stop()
		late = timer.C
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-ch:
	case <-late:
	}
}

// copyLimit is how much a stream keeps of short writes so that they need not wait for the writer; maxCopied bounds that for
// all streams of a connection together. In bytes.
const (
	copyLimit = 8 << 10
	maxCopied = 256 << 10
)

// copies are the buffers for that.
var copies = sync.Pool{New: func() any { b := make([]byte, 0, copyLimit); return &b }}

var (
	errStreamClosed = errors.New("write on a closed stream")
	errNoHalf       = errors.New("the stream goes the other way")
)

// sendHalf is what a stream sends.
type sendHalf struct {
	waiter
	urgency int
	queued  bool
	copied  *[]byte // of short writes, to be sent before data; nil if there is nothing
	taken   int     // of copied
	data    []byte  // of the Write that waits
	offset  uint64  // sent so far
	limit   uint64  // of the peer for the stream
	fin     bool    // after what is left
	over    bool    // FIN or RESET_STREAM is sent, or to be sent with nothing to stop it
	err     error   // why nothing can be written any more
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// pending is how much there is to send.
func (h *sendHalf) pending() int {
	n := len(h.data)
	if h.copied != nil {
		n += len(*h.copied) - h.taken
	}
	return n
}

// ready reports whether there is something to send that the peer's limit for the stream allows.
func (h *sendHalf) ready() bool {
	if h.over {
		return false
	}
	if h.pending() == 0 {
		return h.fin
	}
	return h.offset < h.limit
}

// Write implements transport.SendStream.
func (s *stream) Write(p []byte) (int, error) {
	c, h := s.c, &s.send
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case h.err != nil:
		return 0, h.err
	case h.fin:
		return 0, errStreamClosed
	case h.expired():
		return 0, os.ErrDeadlineExceeded
	case len(p) == 0:
		return 0, nil
	}
	if c.keep(h, p) {
		c.offer(s)
		return len(p), nil
	}
	h.data = p
	defer func() { h.data = nil }()
	c.offer(s)
	for len(h.data) > 0 && h.err == nil {
		if h.expired() {
			n := len(p) - len(h.data)
			if h.data = nil; !h.ready() {
				c.schedule.remove(s)
			}
			return n, os.ErrDeadlineExceeded
		}
		c.wait(&h.waiter)
	}
	return len(p) - len(h.data), h.err
}

// keep copies a short write. It reports false if the caller has to wait for the writer instead.
func (c *Conn) keep(h *sendHalf, p []byte) bool {
	have := 0
	if h.copied != nil {
		have = len(*h.copied)
	}
	if have+len(p) > copyLimit || c.copied+len(p) > maxCopied {
		return false
	}
	if h.copied == nil {
		h.copied = copies.Get().(*[]byte)
	}
	*h.copied = append(*h.copied, p...)
	c.copied += len(p)
	return true
}

// take appends up to n bytes to b. c.mu is held.
func (c *Conn) take(h *sendHalf, b []byte, n int) []byte {
	if h.copied != nil {
		m := min(n, len(*h.copied)-h.taken)
		b = append(b, (*h.copied)[h.taken:h.taken+m]...)
		n -= m
		if h.taken += m; h.taken == len(*h.copied) {
			c.dropCopied(h)
		}
	}
	if m := min(n, len(h.data)); m > 0 {
		b = append(b, h.data[:m]...)
		if h.data = h.data[m:]; len(h.data) == 0 {
			h.wake()
		}
	}
	return b
}

func (c *Conn) dropCopied(h *sendHalf) {
	if h.copied == nil {
		return
	}
	c.copied -= len(*h.copied)
	*h.copied = (*h.copied)[:0]
	copies.Put(h.copied)
	h.copied, h.taken = nil, 0
}

// offer puts a stream on the schedule if it has something to send, and wakes the writer. c.mu is held.
func (c *Conn) offer(s *stream) {
	if s.send.ready() {
		c.schedule.add(s)
		c.wakeWriter()
	}
}

// Close implements transport.SendStream.
func (s *stream) Close() error {
	c, h := s.c, &s.send
	c.mu.Lock()
	if h.err != nil || h.fin {
		defer c.mu.Unlock()
		return h.err
	}
	h.fin = true
	c.offer(s)
	cancel := h.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
	return nil
}

// Reset implements transport.SendStream.
func (s *stream) Reset(code uint64) {
	code = min(code, math.MaxUint32)
	why := &transport.StreamError{Code: code}
	s.c.mu.Lock()
	cancel := s.c.abandon(s, code, why)
	s.c.mu.Unlock()
	if cancel != nil {
		cancel(why)
	}
}

// abandon ends a sending half with RESET_STREAM, unless it is over. What waits is dropped. The caller ends the context, if
// there is one, when it has released c.mu.
func (c *Conn) abandon(s *stream, code uint64, why error) context.CancelCauseFunc {
	h := &s.send
	if h.over || h.err != nil {
		return nil
	}
	c.schedule.remove(s)
	c.dropCopied(h)
	h.over, h.err = true, why
	c.queue(control{typ: frameReset, id: s.id, code: code, value: h.offset})
	h.wake()
	c.settle(s)
	if h.fin { // its context has ended
		return nil
	}
	return h.cancel
}

// SetWriteDeadline implements transport.SendStream.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.send.deadline = t
	s.send.wake()
	return nil
}

// SetPriority implements transport.SendStream.
func (s *stream) SetPriority(urgency int) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	queued := s.send.queued
	s.c.schedule.remove(s)
	s.send.urgency = max(0, min(urgency, urgencies-1))
	if queued {
		s.c.schedule.add(s)
	}
}

// Context implements transport.SendStream.
func (s *stream) Context() context.Context {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	h := &s.send
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(context.Background())
		switch {
		case h.fin:
			h.cancel(nil)
		case h.err != nil:
			h.cancel(h.err)
		}
	}
	return h.ctx
}
