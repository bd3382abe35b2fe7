package qmux

import (
	"cmp"
	"context"
	"slices"
)

// urgencies is how many there are; those from sequential on are sent one stream after the other, oldest first, the others
// share.
const (
	urgencies      = 8
	sequential     = 4
	defaultUrgency = 3
)

// schedule holds the streams that have something to send and may, by urgency.
type schedule [urgencies][]*stream

// add puts a stream in, unless it is in.
func (q *schedule) add(s *stream) {
	if s.send.queued {
		return
	}
	s.send.queued = true
	line := &q[s.send.urgency]
	at := len(*line)
	if s.send.urgency >= sequential {
		at, _ = slices.BinarySearchFunc(*line, s, func(a, b *stream) int { return cmp.Compare(a.id, b.id) })
	}
	*line = slices.Insert(*line, at, s)
}

// remove takes a stream out, if it is in.
func (q *schedule) remove(s *stream) {
	if !s.send.queued {
		return
	}
	s.send.queued = false
	line := &q[s.send.urgency]
	if i := slices.Index(*line, s); i >= 0 {
		*line = slices.Delete(*line, i, i+1)
	}
}

// rotate moves the first stream of an urgency to the end, where streams share.
func (q *schedule) rotate(urgency int) {
	line := q[urgency]
	if urgency < sequential && len(line) > 1 {
		first := line[0]
		copy(line, line[1:])
		line[len(line)-1] = first
	}
}

// fifo is a queue of what has come and nobody has taken yet, with those who wait for it, or for room in it. Guarded by the
// lock of the connection.
type fifo[T any] struct {
	broadcast
	queue []T
}

// pop takes the first entry; there must be one.
func (q *fifo[T]) pop() T {
	var none T
	first := q.queue[0]
	q.queue[0] = none
	if q.queue = q.queue[1:]; len(q.queue) == 0 {
		q.queue = nil
	}
	return first
}

// takeNext waits for an entry, until ctx or the connection ends. It is taken, and handed to taken, under the lock of the
// connection; taken may be nil.
func takeNext[T any](ctx context.Context, c *Conn, q *fifo[T], taken func(T)) (T, error) {
	var none T
	for {
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			return none, c.err
		}
		if len(q.queue) > 0 {
			first := q.pop()
			if taken != nil {
				taken(first)
			}
			c.mu.Unlock()
			return first, nil
		}
		arrival := q.wait()
		c.mu.Unlock()
		select {
		case <-arrival:
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	}
}
