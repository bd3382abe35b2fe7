package client

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// quiet is the pause after which the first batch of announcements counts as complete on wires that do not mark its end
// (moq-lite 03 and 04).
const quiet = 500 * time.Millisecond

// Announcement says that a path can be subscribed, or no longer.
type Announcement struct {
	// Path is complete, below the root of the session. A broadcast is announced at its own path; an announcement also
	// covers what is below.
	Path string
	// Hops is the way the announcement took, the publisher first, as far as the wire tells: ids, or zeros for hops that
	// are only counted (moq-lite 03) or unnamed. It must not be changed.
	Hops []route.Hop
	// Cost is what the peer asks, without the link to it; zero on wires that carry none (before moq-lite 06).
	Cost route.Cost
	// Active is false for a withdrawal, which has path alone.
	Active bool
	// Changed is true if the path was active already and the way or the cost is new.
	Changed bool
}

// Announcements follows what a peer announces below a prefix. Changes that are not taken yet are merged by path, so a
// slow reader misses intermediate states only. One goroutine may use it at a time, but for Close.
type Announcements struct {
	link   *link
	prefix string
	bell   bell
	cancel context.CancelFunc
	over   chan struct{}

	mu      sync.Mutex
	adverts map[session.AdvertID]string // live ones and their paths
	now     map[string]Announcement     // active paths
	told    map[string]bool             // paths that were handed out as active
	order   []string                    // paths with something to say
	pending map[string]bool             // the same
	ready   bool                        // the first batch is complete
	closed  bool
	err     error // why no more will come
}

// Announced asks for the announcements at or below prefix, the present ones first. ctx bounds nothing but the call
// itself, which does not wait. The caller closes the result.
func (c *Client) Announced(ctx context.Context, prefix string) (*Announcements, error) {
	path, err := paths.Clean(prefix)
	if err == nil {
		err = c.link.usable()
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, &RequestError{Op: "announced", Path: prefix, Err: err}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := newAnnouncements(c.link, path)
	a.cancel = cancel
	if !c.start(func() { a.run(life) }) {
		cancel()
		return nil, &RequestError{Op: "announced", Path: prefix, Err: ErrClosed}
	}
	return a, nil
}

// Prefix is what was asked for, normalized.
func (a *Announcements) Prefix() string { return a.prefix }

func newAnnouncements(link *link, prefix string) *Announcements {
	return &Announcements{
		link: link, prefix: prefix, bell: newBell(), over: make(chan struct{}),
		adverts: make(map[session.AdvertID]string),
		now:     make(map[string]Announcement),
		told:    make(map[string]bool),
		pending: make(map[string]bool),
	}
}

// run keeps the stream until it ends.
func (a *Announcements) run(ctx context.Context) {
	defer close(a.over)
	err := a.link.sess.Announced(ctx, a.prefix, announceSink{a})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.err = &RequestError{Op: "announced", Path: a.prefix, Err: a.link.cause(err)}
	} else {
		a.err = &RequestError{Op: "announced", Path: a.prefix, Err: errNoMore}
	}
	a.bell.ring()
}

var errNoMore = errors.New("the peer announces nothing more")

// Next waits for the next change. It returns the cause when ctx ends, ErrClosed after Close, and a *RequestError when the
// session or the stream has ended and everything was told.
func (a *Announcements) Next(ctx context.Context) (Announcement, error) {
	for {
		next, ok, err := a.take()
		if ok || err != nil {
			return next, err
		}
		if err := a.bell.wait(ctx); err != nil {
			return Announcement{}, err
		}
	}
}

// Initial waits until everything that is announced at present has arrived, and returns it sorted by path. Where the wire
// does not mark the end of the first batch, it ends with a pause of half a second. Next goes on from there.
func (a *Announcements) Initial(ctx context.Context) ([]Announcement, error) {
	pause := time.NewTimer(quiet)
	defer pause.Stop()
	for !a.initialDone() {
		select {
		case <-a.bell:
			pause.Reset(quiet)
		case <-pause.C:
			if !marksInitial(a.link.sess.Version()) {
				a.setReady()
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	var all []Announcement
	for {
		next, ok, err := a.take()
		switch {
		case ok:
			all = append(all, next)
		case err != nil && len(all) == 0:
			return nil, err
		default:
			slices.SortFunc(all, func(a, b Announcement) int { return cmp.Compare(a.Path, b.Path) })
			return all, nil
		}
	}
}

// marksInitial reports whether the wire says where the first batch ends.
func marksInitial(v Version) bool { return v.HasAnnounceInit() || v.HasAnnounceOK() }

func (a *Announcements) initialDone() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ready || a.closed || a.err != nil
}

// take hands out the first change that is left.
func (a *Announcements) take() (Announcement, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return Announcement{}, false, ErrClosed
	}
	for len(a.order) > 0 {
		path := a.order[0]
		a.order = a.order[1:]
		delete(a.pending, path)
		now, active := a.now[path]
		told := a.told[path]
		switch {
		case active:
			now.Changed = told
			a.told[path] = true
			return now, true, nil
		case told:
			delete(a.told, path)
			return Announcement{Path: path}, true, nil
		}
	}
	return Announcement{}, false, a.err
}

// Close ends the stream. It may be called twice.
func (a *Announcements) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
	<-a.over
	a.bell.ring()
}

// announceSink is what the session tells the announcements of one stream to.
type announceSink struct{ a *Announcements }

// Announce takes a new announcement.
func (s announceSink) Announce(id session.AdvertID, ad session.Advertisement) error {
	a := s.a
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adverts[id] = ad.Prefix
	a.set(ad)
	return nil
}

// Reannounce replaces way and cost of an announcement.
func (s announceSink) Reannounce(id session.AdvertID, ad session.Advertisement) error {
	return s.Announce(id, ad)
}

// Withdraw takes an announcement back.
func (s announceSink) Withdraw(id session.AdvertID, _ bool) {
	a := s.a
	a.mu.Lock()
	defer a.mu.Unlock()
	path, ok := a.adverts[id]
	if !ok {
		return
	}
	delete(a.adverts, id)
	delete(a.now, path)
	a.dirty(path)
}

// Ready says that the first batch is complete.
func (s announceSink) Ready() { s.a.setReady() }

func (a *Announcements) setReady() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ready = true
	a.bell.ring()
}

// set notes what is announced; a.mu is held. What we publish ourselves is none of the peer's news.
func (a *Announcements) set(ad session.Advertisement) {
	hops := ad.Hops
	if ad.HasSender {
		hops = append(slices.Clip(hops), ad.Sender)
	}
	if slices.Contains(hops, a.link.local.hop) {
		delete(a.now, ad.Prefix)
	} else {
		a.now[ad.Prefix] = Announcement{Path: ad.Prefix, Hops: hops, Cost: ad.Cost, Active: true}
	}
	a.dirty(ad.Prefix)
}

func (a *Announcements) dirty(path string) {
	if !a.pending[path] {
		a.pending[path] = true
		a.order = append(a.order, path)
	}
	a.bell.ring()
}
