package endpoint

import (
	"context"
	"sync"

	"github.com/moqmesh/moqmesh/transport"
)

// carrier is what both carriers' connections are.
type carrier interface {
	transport.Conn
	// Wait returns when the connection's goroutines have ended, soon after the connection.
	Wait()
}

// registry holds the open connections of a socket or a dialer.
type registry struct {
	mu     sync.Mutex
	closed bool
	conns  map[carrier]struct{}
	wg     sync.WaitGroup // one for each connection until its goroutines have ended
}

// add keeps a connection until it ends. It returns false, and keeps nothing, after close.
func (r *registry) add(c carrier) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.conns == nil {
		r.conns = make(map[carrier]struct{})
	}
	r.conns[c] = struct{}{}
	r.wg.Add(1)
	context.AfterFunc(c.Context(), func() {
		r.mu.Lock()
		delete(r.conns, c)
		r.mu.Unlock()
		c.Wait()
		r.wg.Done()
	})
	return true
}

// close closes all connections with code 0 and waits for them.
func (r *registry) close() {
	r.mu.Lock()
	r.closed = true
	conns := make([]carrier, 0, len(r.conns))
	for c := range r.conns {
		conns = append(conns, c)
	}
	r.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() { c.Close(0, "") })
	}
	wg.Wait()
	r.wg.Wait()
}
