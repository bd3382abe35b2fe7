package route

import "time"

// timer is an entry of a queue. A timer that is not queued has no use.
type timer[T any] struct {
	due        time.Duration // since Table.base
	value      T
	prev, next *timer[T]
}

// queue holds timers of one length, so that the order of starting is the order of firing.
type queue[T any] struct{ first, last *timer[T] }

func (q *queue[T]) push(due time.Duration, value T) *timer[T] {
	t := &timer[T]{due: due, value: value, prev: q.last}
	if q.last == nil {
		q.first = t
	} else {
		q.last.next = t
	}
	q.last = t
	return t
}

// remove takes out a queued timer.
func (q *queue[T]) remove(t *timer[T]) {
	if t.prev == nil {
		q.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		q.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// due is when the first timer fires; far away if there is none.
func (q *queue[T]) due() time.Duration {
	if q.first == nil {
		return never
	}
	return q.first.due
}

const never = time.Duration(1<<63 - 1)
