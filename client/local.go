package client

import (
	"sync"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// maxFeeds bounds the announce streams that a peer may have open.
const maxFeeds = 1000

// local is what this client publishes. It belongs to no session, so that another one can serve it too.
type local struct {
	hop   route.Hop
	cache *media.Cache

	mu         sync.Mutex
	closed     bool
	broadcasts map[string]*Broadcast
	feeds      map[*feed]struct{}
	readers    int           // subscriptions being served
	unread     chan struct{} // closed while readers is 0
	served     bool          // there were readers
}

func newLocal(hop route.Hop, cache *media.Cache) *local {
	unread := make(chan struct{})
	close(unread)
	return &local{
		hop: hop, cache: cache, unread: unread,
		broadcasts: make(map[string]*Broadcast),
		feeds:      make(map[*feed]struct{}),
	}
}

// publish reserves a path.
func (l *local) publish(path string) (*Broadcast, error) {
	path, err := paths.Clean(path)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrClosed
	case l.broadcasts[path] != nil:
		return nil, ErrPublished
	}
	b := &Broadcast{of: l, path: path, tracks: make(map[string]*TrackWriter)}
	l.broadcasts[path] = b
	return b, nil
}

// listen opens a feed. changes says whether its wire can re-price an announcement.
func (l *local) listen(prefix string, exclude route.Hop, changes bool) (*feed, error) {
	f := newFeed(l, prefix, changes)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.feeds) >= maxFeeds {
		return nil, ErrNoCapacity
	}
	l.feeds[f] = struct{}{}
	if exclude == l.hop {
		return f, nil // everything of ours passes through ourselves
	}
	f.live = true
	for path, b := range l.broadcasts {
		if b.announced {
			f.set(path, b.cost, true)
		}
	}
	return f, nil
}

func (l *local) forget(f *feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, f)
}

// tell passes a change of b on; l.mu is held.
func (l *local) tell(b *Broadcast) {
	for f := range l.feeds {
		f.set(b.path, b.cost, b.announced)
	}
}

// track finds what a request names.
func (l *local) track(path, name string) (*TrackWriter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.broadcasts[path]
	if b == nil {
		return nil, ErrUnroutable
	}
	t := b.tracks[name]
	if t == nil {
		return nil, ErrNotFound
	}
	return t, nil
}

// opened and done count the subscriptions being served.
func (l *local) opened(t *TrackWriter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.served = true
	if l.readers == 0 {
		l.unread = make(chan struct{})
	}
	l.readers++
	if t.readers++; t.readers == 1 {
		close(t.wanted)
	}
}

func (l *local) done(t *TrackWriter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers--; l.readers == 0 {
		close(l.unread)
	}
	if t.readers--; t.readers == 0 {
		t.wanted = make(chan struct{})
	}
}

// idle is closed while no subscription is being served.
func (l *local) idle() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread
}

func (l *local) everServed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.served
}

// close withdraws everything; finish ends the tracks cleanly, else they end with ErrClosed.
func (l *local) close(finish bool) {
	l.mu.Lock()
	l.closed = true
	all := make([]*Broadcast, 0, len(l.broadcasts))
	for _, b := range l.broadcasts {
		all = append(all, b)
	}
	l.mu.Unlock()
	for _, b := range all {
		b.close(finish)
	}
}

// reader is a subscription of the peer to one of our tracks.
type reader struct {
	of   *TrackWriter
	m    *media.Reader
	once sync.Once
}

// Media implements session.Reader.
func (r *reader) Media() *media.Reader { return r.m }

// Update implements session.Reader.
func (r *reader) Update(sub media.Subscription) { r.m.Update(sub) }

// Close implements session.Reader.
func (r *reader) Close() {
	r.once.Do(func() {
		r.m.Close()
		r.of.of.of.done(r.of)
	})
}

var (
	_ session.Reader = (*reader)(nil)
	_ session.Feed   = (*feed)(nil)
)
