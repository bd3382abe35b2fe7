package qmux

import (
	"io"
	"math"
	"os"
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// recvHalf is what a stream receives.
type recvHalf struct {
	waiter
	buf      []byte // received and not yet read, from off on
	off      int
	dst      []byte // of the Read that waits
	got      int    // how much of it is filled
	received uint64
	consumed uint64
	limit    uint64 // ours for the peer
	window   window
	queued   bool  // MAX_STREAM_DATA is on its way
	stopped  bool  // we do not want the rest
	fin      bool  // after what is in buf
	over     bool  // FIN or RESET_STREAM has arrived
	err      error // why nothing can be read any more
}

// Read implements transport.ReceiveStream.
func (s *stream) Read(p []byte) (int, error) {
	c, h := s.c, &s.recv
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case h.err != nil:
			return 0, h.err
		case h.off < len(h.buf) && len(p) > 0 && !h.expired():
			n := copy(p, h.buf[h.off:])
			if h.off += n; h.off == len(h.buf) {
				h.release()
			}
			c.consume(s, n)
			return n, nil
		case h.fin && h.off == len(h.buf):
			return 0, io.EOF
		case h.expired():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		}
		h.dst, h.got = p, 0
		c.wait(&h.waiter)
		h.dst = nil
		if h.got > 0 {
			return h.got, nil
		}
	}
}

// keepBuffer is the largest buffer that a stream keeps when it is empty, in bytes.
const keepBuffer = 16 << 10

func (h *recvHalf) release() {
	h.off = 0
	if h.buf = h.buf[:0]; cap(h.buf) > keepBuffer {
		h.buf = nil
	}
}

// deliver takes over data that has arrived: what a Read waits for goes there at once. It returns how much was consumed.
func (h *recvHalf) deliver(data []byte) (consumed int) {
	if h.dst != nil && h.got == 0 && h.off == len(h.buf) {
		consumed = copy(h.dst, data)
		h.got, h.dst = consumed, nil
		data = data[consumed:]
	}
	if len(data) > 0 {
		if h.off > len(h.buf)/2 {
			h.buf, h.off = h.buf[:copy(h.buf, h.buf[h.off:])], 0
		}
		h.buf = append(h.buf, data...)
	}
	h.wake()
	return consumed
}

// Stop implements transport.ReceiveStream.
func (s *stream) Stop(code uint64) {
	c, h := s.c, &s.recv
	code = min(code, math.MaxUint32)
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.stopped || h.err != nil {
		return
	}
	left := len(h.buf) - h.off
	h.stopped, h.buf, h.off = true, nil, 0
	h.err = &transport.StreamError{Code: code}
	c.consume(s, left)
	if !h.over {
		c.queue(control{typ: frameStop, id: s.id, code: code})
	}
	h.wake()
}

// SetReadDeadline implements transport.ReceiveStream.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.recv.deadline = t
	s.recv.wake()
	return nil
}
