package origin

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// feed is what one announce stream has not been told yet. The owner puts changes in, the stream's goroutine takes
// them out; a consumer that does not take costs one entry per name, whatever happens to the name meanwhile.
type feed struct {
	detach func() // tells the owner that nobody reads any more
	wake   chan struct{}
	gone   chan struct{}

	mu      sync.Mutex
	pending pending
	started bool // the initial set was taken
	err     error
}

func newFeed(detach func()) *feed {
	return &feed{detach: detach, wake: make(chan struct{}, 1), gone: make(chan struct{})}
}

// put adds one change. It never blocks.
func (f *feed) put(u session.Update) {
	f.mu.Lock()
	f.pending.put(u)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// end closes the feed with err, which Next returns from now on; the first end counts.
func (f *feed) end(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false
	}
	f.err = err
	f.pending = pending{}
	close(f.gone)
	return true
}

func (f *feed) take() ([]session.Update, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, false, f.err
	}
	us := f.pending.take()
	first := !f.started
	f.started = true
	return us, first || len(us) > 0, nil
}

// Next implements session.Feed. The initial set was put in before the feed was handed out.
func (f *feed) Next(ctx context.Context) ([]session.Update, error) {
	for {
		us, ready, err := f.take()
		if ready || err != nil {
			return us, err
		}
		select {
		case <-f.wake:
		case <-f.gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close implements session.Feed.
func (f *feed) Close() {
	if f.end(net.ErrClosed) {
		f.detach()
	}
}

// pending merges changes by name, in the order in which the names changed first.
type pending struct {
	names       map[string]*pendingName
	first, last *pendingName
}

// pendingName is all that a consumer must still hear about a name: a retraction, an announcement or update, or
// one after the other.
type pendingName struct {
	name       string
	retract    bool // the consumer holds the name and must lose it first
	show       bool
	kind       session.UpdateKind // of show: UpdateNew or UpdateChange
	hops       []route.Hop
	cost       route.Cost
	prev, next *pendingName
}

func (p *pending) put(u session.Update) {
	e := p.names[u.Name]
	if e == nil {
		e = p.add(u.Name)
	}
	switch u.Kind {
	case session.UpdateGone:
		if !e.show || e.kind == session.UpdateChange {
			e.retract = true
		}
		e.show, e.hops = false, nil
		if !e.retract { // came and went unseen
			p.remove(e)
		}
	case session.UpdateNew, session.UpdateChange:
		if !e.show {
			e.show, e.kind = true, u.Kind
		}
		e.hops, e.cost = u.Hops, u.Cost
	}
}

func (p *pending) add(name string) *pendingName {
	if p.names == nil {
		p.names = make(map[string]*pendingName)
	}
	e := &pendingName{name: name, prev: p.last}
	if p.last != nil {
		p.last.next = e
	} else {
		p.first = e
	}
	p.last = e
	p.names[name] = e
	return e
}

func (p *pending) remove(e *pendingName) {
	delete(p.names, e.name)
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		p.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		p.last = e.prev
	}
}

// take empties p.
func (p *pending) take() []session.Update {
	if p.first == nil {
		return nil
	}
	us := make([]session.Update, 0, len(p.names))
	for e := p.first; e != nil; e = e.next {
		if e.retract {
			us = append(us, session.Update{Kind: session.UpdateGone, Name: e.name})
		}
		if e.show {
			us = append(us, session.Update{Kind: e.kind, Name: e.name, Hops: slices.Clone(e.hops), Cost: e.cost})
		}
	}
	*p = pending{}
	return us
}
