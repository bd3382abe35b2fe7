package webtransport

import (
	"context"
	"sync"
)

// queue holds streams of the session that were sorted by others than those who accept: ones that came before the
// session, and ones whose header was late. QUIC's stream limit bounds it.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	// waiting ends, and is replaced, when there is an item; nil while nobody waits.
	waiting context.Context
	wake    context.CancelFunc
}

// push returns false if the queue is closed.
func (q *queue[T]) push(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.items = append(q.items, item)
	if q.waiting != nil {
		q.wake()
		q.waiting, q.wake = nil, nil
	}
	return true
}

// take returns an item. If there is none it returns a context, derived from the session's, that ends when there may be
// one.
func (q *queue[T]) take(session context.Context) (item T, waiting context.Context) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) > 0 {
		var zero T
		item, q.items[0] = q.items[0], zero
		q.items = q.items[1:]
		return item, nil
	}
	q.items = nil
	if q.waiting == nil {
		q.waiting, q.wake = context.WithCancel(session)
	}
	return item, q.waiting
}

// close returns what nobody has accepted.
func (q *queue[T]) close() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	items := q.items
	q.items = nil
	if q.wake != nil {
		q.wake()
	}
	return items
}

// next waits for the next stream of the session: one of the queue, or one that accept brings and that belongs to it. It
// returns false when ctx or the session has ended.
func next[T any](
	ctx context.Context, c *Conn, q *queue[T], accept func(context.Context) (T, error), belongs func(T) bool,
) (str T, ok bool) {
	for ctx.Err() == nil && c.ctx.Err() == nil {
		str, waiting := q.take(c.ctx)
		if waiting == nil {
			return str, true
		}
		str, err := acceptFor(ctx, c, waiting, accept)
		switch {
		case err == nil && belongs(str):
			return str, true
		case err != nil && waiting.Err() == nil && ctx.Err() == nil: // the connection has ended, and the session is about to
			<-c.ctx.Done()
		}
	}
	return str, false
}

// acceptFor accepts until ctx or waiting, which is the life of the session or a child of it, ends.
func acceptFor[T any](
	ctx context.Context, c *Conn, waiting context.Context, accept func(context.Context) (T, error),
) (T, error) {
	if ctx == c.ctx { // with which waiting ends
		return accept(waiting)
	}
	both, cancel := context.WithCancel(waiting)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return accept(both)
}
