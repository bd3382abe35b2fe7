package qmux

import (
	"math"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// control is a frame about a stream that waits to be sent, before all data.
type control struct {
	typ             uint64
	id, code, value uint64
}

// What waits of them is bounded by the streams that a peer may have open, as long as it reads: the largest is where it does
// not.
const controlsPerStream, controlsBeside = 8, 1024

// queue has the writer send a frame. A peer that makes us say more and more, and reads none of it, ends the connection: the
// limit on streams does not hold it, as streams that are over count no more. c.mu is held.
func (c *Conn) queue(f control) {
	most := int(min(c.cfg.MaxStreams, math.MaxInt32))*controlsPerStream + controlsBeside
	if len(c.control) < most {
		c.control = append(c.control, f)
		c.wakeWriter()
		return
	}
	if !c.unread {
		c.unread = true
		c.wg.Go(func() { c.fail(violation("%d frames are left unread", most)) })
	}
}

const (
	// maxSend keeps a record and what a WebSocket puts in front of it within one record of TLS, in bytes.
	maxSend = maxFrame00 - 16
	// maxControl is more than any control frame but parameters takes, in bytes.
	maxControl = 40
	// tuneEvery is how often the system's buffer is fitted to the path, while there is something to send.
	tuneEvery = 100 * time.Millisecond
	// batchRecords is how many records go out together where the carrier takes several in one write.
	batchRecords = 4
)

// batches are what the writers of all connections write from; an idle one holds none.
var batches = sync.Pool{New: func() any { return new(batch) }}

// wakeWriter tells the writer that there is something to do.
func (c *Conn) wakeWriter() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// work is what the writer has to do beside sending a batch.
type work struct {
	over   bool // say farewell
	ping   bool // of the carrier
	pong   bool
	answer string
}

// write is the writer. It ends when the connection is over and the peer has been told so.
func (c *Conn) write() {
	defer close(c.sent)
	tuned := c.started
	var others yielding
	for {
		b := batches.Get().(*batch)
		todo := c.collect(b)
		idle := todo == work{} && len(b.ends) == 0
		err := c.perform(b, todo)
		batches.Put(b)
		if now := time.Now(); !idle && now.Sub(tuned) >= tuneEvery {
			tuned = now
			retune(c.carrier.conn(), now, &others)
		}
		switch {
		case err != nil:
			c.writeFailed(err)
			return
		case todo.over:
			return
		case idle:
			<-c.wakeup // the end of the connection wakes, too
		}
	}
}

func (c *Conn) perform(b *batch, todo work) error {
	if todo.over {
		if len(b.ends) > 0 {
			_ = c.carrier.send(b) // if it fails the peer will see the end of the carrier
		}
		c.carrier.finish()
		return nil
	}
	if ws, ok := c.carrier.(*webSocket); ok && todo.pong {
		if err := ws.pong(todo.answer); err != nil {
			return err
		}
	}
	if todo.ping {
		if err := c.carrier.ping(); err != nil {
			return err
		}
	}
	if len(b.ends) == 0 {
		return nil
	}
	size := len(b.b) - prefix*len(b.ends)
	if err := c.carrier.send(b); err != nil {
		return err
	}
	c.recordsOut.Add(uint64(len(b.ends)))
	c.bytesOut.Add(uint64(size))
	return nil
}

// writeFailed ends the connection because of the carrier. The reader goes first: the peer may have said why.
func (c *Conn) writeFailed(err error) {
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-c.quiet:
	case <-c.ctx.Done():
	case <-timer.C:
	}
	c.end(&transport.SessionError{Transport: dropped(err)}, nil)
}

// collect fills the batch with what is to be sent next.
func (c *Conn) collect(b *batch) work {
	b.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		if c.farewell != nil {
			start := b.begin()
			b.b = append(b.b, c.farewell...)
			b.end(start)
		}
		return work{over: true}
	}
	todo := work{ping: c.carrierPing, pong: c.answerDue, answer: c.answer}
	c.carrierPing, c.answerDue, c.answer = false, false, ""
	most := batchRecords
	if c.carrier.pings() {
		most = 1 // so that a ping waits for no more than a record
	}
	for range most {
		start := b.begin()
		b.b = c.fill(b.b, start)
		if !b.end(start) || len(c.control) == 0 && !c.schedule.any() {
			break
		}
	}
	return todo
}

// fill appends frames for one record that begins at start, most urgent first. c.mu is held.
func (c *Conn) fill(b []byte, start int) []byte {
	if !c.greeted && c.draft != Legacy {
		c.greeted = true
		b = c.ours.append(b)
	}
	if !c.full(b, start) {
		b = c.fillControl(b, start)
	}
	if !c.full(b, start) {
		b = c.fillDatagrams(b, start)
	}
	if !c.full(b, start) {
		b = c.fillStreams(b, start)
	}
	return b
}

// full reports whether nothing more fits: any one frame in the formats without records.
func (c *Conn) full(b []byte, start int) bool {
	return len(b) > start && (!c.draft.records() || len(b)-start > maxSend-maxControl)
}

func (c *Conn) fillControl(b []byte, start int) []byte {
	p := &c.ping
	if p.answerDue {
		p.answerDue = false
		b = appendLimit(b, framePong, p.answer)
	}
	if p.due {
		p.due, p.sentAt = false, time.Now()
		b = appendLimit(b, framePing, p.next)
		p.next++
	}
	for kind := range c.allowedMoved {
		if c.allowedMoved[kind] && !c.full(b, start) {
			c.allowedMoved[kind] = false
			b = appendLimit(b, frameMaxStreamsBidi+uint64(kind), c.allowed[kind])
		}
	}
	if c.limitMoved && !c.full(b, start) {
		c.limitMoved = false
		b = appendLimit(b, frameMaxData, c.limit)
	}
	for len(c.control) > 0 && !c.full(b, start) {
		b = c.appendControl(b, c.control[0])
		if c.control = c.control[1:]; len(c.control) == 0 {
			c.control = nil
		}
	}
	return b
}

func (c *Conn) appendControl(b []byte, f control) []byte {
	switch f.typ {
	case frameReset:
		return c.draft.appendReset(b, f.id, f.code, f.value)
	case frameStop:
		return appendStop(b, f.id, f.code)
	default: // MAX_STREAM_DATA, with the limit of this moment
		s := c.streams[f.id]
		if s == nil {
			return b
		}
		s.recv.queued = false
		return appendMaxStreamData(b, f.id, s.recv.limit)
	}
}

func (c *Conn) fillDatagrams(b []byte, start int) []byte {
	d := &c.outgoing
	for len(d.queue) > 0 {
		size := len(d.queue[0]) + datagramOverhead
		if len(b) > start && len(b)-start+size > maxSend {
			break
		}
		b = appendDatagram(b, d.pop())
		d.wake()
	}
	return b
}

// any reports whether a stream has something to send.
func (q *schedule) any() bool {
	for _, line := range q {
		if len(line) > 0 {
			return true
		}
	}
	return false
}

func (c *Conn) fillStreams(b []byte, start int) []byte {
	for urgency := range c.schedule {
		for len(c.schedule[urgency]) > 0 {
			s := c.schedule[urgency][0]
			room := maxSend - (len(b) - start) - maxStreamHeader
			if room <= 0 || len(b) > start && !c.draft.records() {
				return b
			}
			var sent bool
			if b, sent = c.fillStream(b, s, min(room, maxPayload)); !sent {
				return b // the connection has no credit left
			}
		}
	}
	return b
}

// fillStream appends a frame of a stream with up to room bytes. It reports false if there is no credit for it.
func (c *Conn) fillStream(b []byte, s *stream, room int) (_ []byte, sent bool) {
	h := &s.send
	pending := h.pending()
	n := int(min(uint64(pending), h.limit-h.offset, c.sendLimit-c.written, uint64(room)))
	fin := h.fin && n == pending
	if n == 0 && !fin {
		return b, false
	}
	b = c.draft.appendStream(b, s.id, h.offset, n, fin)
	b = c.take(h, b, n)
	h.offset += uint64(n)
	c.written += uint64(n)
	if fin {
		h.over = true
	}
	if h.ready() {
		c.schedule.rotate(h.urgency)
	} else {
		c.schedule.remove(s)
	}
	if fin {
		c.settle(s)
	}
	return b, true
}
