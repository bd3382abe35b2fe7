package media

import "sync/atomic"

// Waiter lets one goroutine block in GroupReader.Next. It is meant to be kept: one per goroutine that sends groups,
// used for one group after the other, so that waiting allocates nothing.
type Waiter struct {
	ch        chan struct{} // capacity 1; a token means: look again
	cancelled atomic.Bool
	// passed is false while the waiter is in a list. Whoever takes it off the list sets it, and does not touch the
	// links afterwards.
	passed atomic.Bool
	// The links belong to the lock of the group's track until the list is taken, then to the goroutine that took it.
	prev, next *Waiter
	round      uint64
}

// NewWaiter makes a waiter.
func NewWaiter() *Waiter { return &Waiter{ch: make(chan struct{}, 1)} }

// Cancel ends the current and all later waits with ErrCancelled, until Reset. Any goroutine may call it.
func (w *Waiter) Cancel() {
	w.cancelled.Store(true)
	w.signal()
}

// Reset makes a cancelled waiter usable again. The goroutine that waits calls it, while it does not wait.
func (w *Waiter) Reset() { w.cancelled.Store(false) }

// signal leaves a token unless there is one.
func (w *Waiter) signal() {
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// waitList is the list of those who wait for one group. The lock of its track guards it.
type waitList struct {
	head  *Waiter
	round uint64 // how often the list was taken; a waiter of an earlier round is not in it
}

// push adds w.
func (l *waitList) push(w *Waiter) {
	w.passed.Store(false)
	w.prev, w.next, w.round = nil, l.head, l.round
	if l.head != nil {
		l.head.prev = w
	}
	l.head = w
}

// drop takes w off the list; false means that the list was taken with w in it.
func (l *waitList) drop(w *Waiter) bool {
	if w.round != l.round {
		return false
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.passed.Store(true)
	return true
}

// take empties the list. The caller must wake what it returns, outside of the lock.
func (l *waitList) take() *Waiter {
	head := l.head
	if head != nil {
		l.head = nil
		l.round++
	}
	return head
}

// wakeAll wakes a list that was taken.
func wakeAll(w *Waiter) {
	for w != nil {
		next := w.next
		w.next, w.prev = nil, nil
		w.passed.Store(true)
		w.signal()
		w = next
	}
}
