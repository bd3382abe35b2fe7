package client

import (
	"context"
	"net"
	"sync"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// feed tells one announce stream of the peer about the broadcasts below a prefix. It holds at most one entry per name,
// however slow the peer is.
type feed struct {
	of      *local
	prefix  string // normalized
	changes bool   // the wire can re-price in place
	live    bool   // false: the peer sees nothing of ours
	bell    bell

	mu      sync.Mutex
	begun   bool
	closed  bool
	pending map[string]struct{}   // names below the prefix whose state may differ from what was told
	order   []string              // the same, in order of their first change
	told    map[string]route.Cost // what the stream says
	now     map[string]route.Cost // what it should say
}

func newFeed(of *local, prefix string, changes bool) *feed {
	return &feed{
		of: of, prefix: prefix, changes: changes, bell: newBell(),
		pending: make(map[string]struct{}),
		told:    make(map[string]route.Cost),
		now:     make(map[string]route.Cost),
	}
}

// set notes that a path is announced at a cost, or not announced. It ignores paths outside of the prefix.
func (f *feed) set(path string, cost route.Cost, announced bool) {
	name, ok := paths.Suffix(f.prefix, path)
	if !ok || !f.live {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if announced {
		f.now[name] = cost
	} else {
		delete(f.now, name)
	}
	if _, ok := f.pending[name]; !ok {
		f.pending[name] = struct{}{}
		f.order = append(f.order, name)
	}
	f.bell.ring()
}

// Next implements session.Feed. A broadcast that was withdrawn and announced again in between is told as a change of
// cost, or not at all: it is the same broadcast of the same publisher.
func (f *feed) Next(ctx context.Context) ([]session.Update, error) {
	for {
		updates, done, err := f.take()
		if err != nil || done {
			return updates, err
		}
		if err := f.bell.wait(ctx); err != nil {
			return nil, err
		}
	}
}

func (f *feed) take() (updates []session.Update, done bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, true, net.ErrClosed
	}
	for _, name := range f.order {
		now, is := f.now[name]
		told, was := f.told[name]
		switch {
		case is && !was:
			updates = append(updates, session.Update{Kind: session.UpdateNew, Name: name, Cost: now})
			f.told[name] = now
		case is && now != told && f.changes:
			updates = append(updates, session.Update{Kind: session.UpdateChange, Name: name, Cost: now})
			f.told[name] = now
		case !is && was:
			updates = append(updates, session.Update{Kind: session.UpdateGone, Name: name})
			delete(f.told, name)
		}
	}
	clear(f.pending)
	f.order = f.order[:0]
	first := !f.begun
	f.begun = true
	return updates, first || len(updates) > 0, nil
}

// Close implements session.Feed.
func (f *feed) Close() {
	f.of.forget(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.bell.ring()
}
