package lite

import (
	"context"
	"slices"
	"sync"

	"github.com/moqmesh/moqmesh/transport"
)

// opener opens the group streams of a session. While the peer grants no more streams, those that want one wait here in
// the order of their rank, not in the order in which they came: credit goes to the most urgent group (moq-lite 8). Streams
// are alike, so one of those that wait, the leader, asks the connection for a stream and gives it to whoever is first by
// then.
type opener struct {
	mu      sync.Mutex
	waiting []*opening // most urgent first; the leader is one of them
	led     bool
}

// opening waits for a stream. It can be used for one group after the other.
type opening struct {
	*ranked
	stream chan transport.SendStream // capacity 1; nil makes it the leader
}

func newOpening(e *ranked) *opening {
	return &opening{ranked: e, stream: make(chan transport.SendStream, 1)}
}

// open waits for a stream until ctx ends.
func (o *opener) open(ctx context.Context, conn transport.Conn, me *opening) (transport.SendStream, error) {
	o.mu.Lock()
	i, _ := slices.BinarySearchFunc(o.waiting, me, compareOpening)
	o.waiting = slices.Insert(o.waiting, i, me)
	lead := !o.led
	o.led = true
	o.mu.Unlock()
	if lead {
		return o.lead(ctx, conn, me)
	}
	select {
	case st := <-me.stream:
		if st != nil {
			return st, nil
		}
		return o.lead(ctx, conn, me)
	case <-ctx.Done():
		return o.leave(ctx, me)
	}
}

func compareOpening(a, b *opening) int { return a.compare(b.ranked) }

// lead opens streams for those that are ahead of me, then one for me, and makes the next one the leader.
func (o *opener) lead(ctx context.Context, conn transport.Conn, me *opening) (transport.SendStream, error) {
	for {
		st, err := conn.OpenUniStream(ctx)
		o.mu.Lock()
		if err != nil {
			o.removeLocked(me)
			o.passLocked()
			o.mu.Unlock()
			return nil, err
		}
		first := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		if first == me {
			o.passLocked()
			o.mu.Unlock()
			return st, nil
		}
		o.mu.Unlock()
		first.stream <- st
	}
}

// passLocked makes the first one of those that wait the leader.
func (o *opener) passLocked() {
	if o.led = len(o.waiting) > 0; o.led {
		o.waiting[0].stream <- nil
	}
}

// leave gives up waiting. What me was given meanwhile goes to others.
func (o *opener) leave(ctx context.Context, me *opening) (transport.SendStream, error) {
	o.mu.Lock()
	if o.removeLocked(me) {
		select {
		case <-me.stream: // the leadership
			o.passLocked()
		default:
		}
		o.mu.Unlock()
		return nil, context.Cause(ctx)
	}
	o.mu.Unlock()
	return <-me.stream, nil // it is the caller's now, whatever that is good for
}

// removeLocked reports whether me was still waiting.
func (o *opener) removeLocked(me *opening) bool {
	i := slices.Index(o.waiting, me)
	if i < 0 {
		return false
	}
	o.waiting = slices.Delete(o.waiting, i, i+1)
	return true
}
