package webtransport

import (
	"context"
	"sync"
)

// queue holds the peer's streams until they are accepted. QUIC's stream limit bounds it.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	wake   chan struct{} // holds a token while there may be items
}

func newQueue[T any]() *queue[T] { return &queue[T]{wake: make(chan struct{}, 1)} }

// push returns false if the queue is closed.
func (q *queue[T]) push(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.items = append(q.items, item)
	q.signal()
	return true
}

func (q *queue[T]) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop waits for an item. It returns false when ctx or done has ended, whatever is queued.
func (q *queue[T]) pop(ctx context.Context, done <-chan struct{}) (item T, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return item, false
		case <-done:
			return item, false
		case <-q.wake:
		}
		if item, ok = q.take(); ok {
			return item, true
		}
	}
}

func (q *queue[T]) take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item, false
	}
	var zero T
	item, q.items[0] = q.items[0], zero
	q.items = q.items[1:]
	if len(q.items) > 0 {
		q.signal()
	}
	return item, true
}

// close returns what nobody has accepted.
func (q *queue[T]) close() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	items := q.items
	q.items = nil
	return items
}
