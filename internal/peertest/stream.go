package peertest

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// errClosed is what Write says after Close.
var errClosed = errors.New("write on a closed stream")

// Stream is one end of a stream, of either kind. It implements transport.Stream; of a unidirectional stream only one
// half exists, and the interfaces that Conn returns hide the other.
type Stream struct {
	conn *Conn
	in   *half // nil at the opener of a unidirectional stream
	out  *half // nil at its acceptor
}

var _ transport.Stream = (*Stream)(nil)

// half is one direction of a stream. Everything is guarded by the lock of the link.
type half struct {
	from, to *Conn
	opener   *Conn // whose credit the stream takes
	stream   *flight
	reader   *sync.Cond
	writer   *sync.Cond
	ctx      context.Context // of the sender
	cancel   context.CancelCauseFunc

	buf      []byte
	fin      bool
	reset    *transport.StreamError // by the sender, as it sees it
	stopped  *transport.StreamError // by the receiver, as it sees it
	read     bool                   // the receiver has read the end or the reset
	urgency  int
	deadline [2]deadline // of the reader and of the writer
}

// flight is a stream in both directions.
type flight struct {
	kind   kind
	known  bool    // to the peer
	remote *Stream // the end of the peer
	halves []*half
	over   bool
}

// deadline is when a call gives up.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

// newStream makes a stream that c opens, and returns both ends.
func newStream(c *Conn, k kind) (local, remote *Stream) {
	local, remote = &Stream{conn: c}, &Stream{conn: c.peer}
	f := &flight{kind: k, remote: remote}
	h := newHalf(c, c.peer, c, f)
	local.out, remote.in = h, h
	if k == bidi {
		h = newHalf(c.peer, c, c, f)
		local.in, remote.out = h, h
	}
	return local, remote
}

func newHalf(from, to, opener *Conn, f *flight) *half {
	h := &half{
		from: from, to: to, opener: opener, stream: f, urgency: 3,
		reader: sync.NewCond(&from.link.mu), writer: sync.NewCond(&from.link.mu),
	}
	h.ctx, h.cancel = context.WithCancelCause(from.ctx)
	f.halves = append(f.halves, h)
	from.halves[h], to.halves[h] = struct{}{}, struct{}{}
	return h
}

// Write blocks while the window is full.
func (s *Stream) Write(p []byte) (n int, err error) {
	h := s.out
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	for {
		if err := h.writeError(); err != nil {
			return n, err
		}
		if len(p) == 0 {
			return n, nil
		}
		h.announce()
		if room := h.from.link.window - len(h.buf); room > 0 {
			m := min(room, len(p))
			h.buf = append(h.buf, p[:m]...)
			h.from.stats.BytesSent += uint64(m)
			p, n = p[m:], n+m
			h.reader.Broadcast()
			continue
		}
		h.writer.Wait()
	}
}

// writeError is why nothing can be written now, apart from a full window.
func (h *half) writeError() error {
	switch {
	case h.from.err != nil:
		return h.from.err
	case h.stopped != nil && h.reset == nil:
		return remote(h.stopped)
	case h.reset != nil:
		return h.reset
	case h.fin:
		return errClosed
	case h.deadline[1].passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Close sends FIN.
func (s *Stream) Close() error {
	h := s.out
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if h.fin {
		return nil
	}
	if err := h.writeError(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	h.announce()
	h.fin = true
	h.cancel(nil)
	h.reader.Broadcast()
	h.settle()
	return nil
}

// Reset abandons the stream. What the peer has not read is lost, after Close too: that is the harshest reading of
// "not yet acknowledged".
func (s *Stream) Reset(code uint64) {
	h := s.out
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	if h.from.err != nil || h.reset != nil || h.read {
		return
	}
	h.announce()
	h.reset = &transport.StreamError{Code: code}
	h.buf = nil
	h.cancel(nil)
	h.reader.Broadcast()
	h.writer.Broadcast()
	h.settle()
}

// SetWriteDeadline makes Write fail with os.ErrDeadlineExceeded from t on; the zero time clears it.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.out.setDeadline(1, t) }

// SetPriority is visible to the peer as Urgency.
func (s *Stream) SetPriority(urgency int) {
	s.out.from.link.mu.Lock()
	defer s.out.from.link.mu.Unlock()
	s.out.urgency = urgency
}

// Urgency is what the peer's SetPriority said last, 3 before.
func (s *Stream) Urgency() int {
	s.in.from.link.mu.Lock()
	defer s.in.from.link.mu.Unlock()
	return s.in.urgency
}

// Context ends when sending has ended.
func (s *Stream) Context() context.Context { return s.out.ctx }

// Read returns what has arrived. After a reset it discards what was not read.
func (s *Stream) Read(p []byte) (int, error) {
	h := s.in
	h.to.link.mu.Lock()
	defer h.to.link.mu.Unlock()
	for {
		switch {
		case h.to.err != nil:
			return 0, h.to.err
		case h.stopped != nil:
			return 0, h.stopped
		case h.reset != nil:
			h.finish()
			return 0, remote(h.reset)
		case h.deadline[0].passed():
			return 0, os.ErrDeadlineExceeded
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = slices.Delete(h.buf, 0, n)
			h.to.stats.BytesReceived += uint64(n)
			h.writer.Broadcast()
			return n, nil
		case h.fin:
			h.finish()
			return 0, io.EOF
		case len(p) == 0:
			return 0, nil
		}
		h.reader.Wait()
	}
}

// finish notes that the receiver knows how the stream ended.
func (h *half) finish() {
	h.read = true
	h.settle()
}

// Stop asks the peer to send no more. It does nothing once the end has been read.
func (s *Stream) Stop(code uint64) {
	h := s.in
	h.to.link.mu.Lock()
	defer h.to.link.mu.Unlock()
	if h.to.err != nil || h.stopped != nil || h.read {
		return
	}
	h.stopped = &transport.StreamError{Code: code}
	h.buf = nil
	h.cancel(remote(h.stopped))
	h.reader.Broadcast()
	h.writer.Broadcast()
	h.settle()
}

// SetReadDeadline makes Read fail with os.ErrDeadlineExceeded from t on; the zero time clears it.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.in.setDeadline(0, t) }

func (h *half) setDeadline(side int, t time.Time) error {
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	d := &h.deadline[side]
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), h.wake)
	}
	h.reader.Broadcast()
	h.writer.Broadcast()
	return nil
}

// wake makes both sides look again.
func (h *half) wake() {
	h.from.link.mu.Lock()
	defer h.from.link.mu.Unlock()
	h.reader.Broadcast()
	h.writer.Broadcast()
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// announce tells the peer of the stream, and of the ones of its kind that were opened before.
func (h *half) announce() {
	f := h.stream
	if f.known || h.from != h.opener {
		return
	}
	c := h.from
	n := slices.Index(c.silent[f.kind], f.remote) + 1
	for _, s := range c.silent[f.kind][:n] {
		s.in.stream.known = true
	}
	c.peer.accept[f.kind] = append(c.peer.accept[f.kind], c.silent[f.kind][:n]...)
	c.silent[f.kind] = slices.Delete(c.silent[f.kind], 0, n)
	c.peer.changed.Broadcast()
}

// settle gives the credit of the stream back once its acceptor is done with all of it: it has read the end, read the
// reset or stopped what it receives, and has ended what it sends.
func (h *half) settle() {
	f := h.stream
	if f.over {
		return
	}
	for _, h := range f.halves {
		received := h.read || h.stopped != nil
		sent := h.fin || h.reset != nil || h.stopped != nil
		if h.from == h.opener && !received || h.from != h.opener && !sent {
			return
		}
	}
	f.over = true
	h.opener.open[f.kind]--
	h.opener.changed.Broadcast()
	for _, h := range f.halves {
		delete(h.from.halves, h)
		delete(h.to.halves, h)
	}
}

// remote is err as the other end sees it.
func remote(err *transport.StreamError) *transport.StreamError {
	return &transport.StreamError{Code: err.Code, Remote: true}
}
