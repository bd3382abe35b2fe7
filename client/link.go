package client

import (
	"context"
	"sync"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// link ties one session to the client: it serves the peer from what is published locally, and carries our requests. A
// client has one link. What must outlive a session (the published broadcasts, the cache) is not in here, so that a client
// that reconnects needs another link and nothing else.
type link struct {
	local *local
	sess  *lite.Session

	done      chan struct{}   // the session has ended
	ended     context.Context // the same as a context, whose cause is why
	end       context.CancelCauseFunc
	goingAway chan struct{}

	mu     sync.Mutex
	uri    string
	goaway bool
	closed bool // by us
}

func newLink(l *local, sess *lite.Session) *link {
	k := &link{local: l, sess: sess, done: make(chan struct{}), goingAway: make(chan struct{})}
	k.ended, k.end = context.WithCancelCause(context.Background())
	return k
}

// run serves the session until it ends.
func (k *link) run(ctx context.Context) {
	err := k.sess.Run(ctx, k, nil)
	k.mu.Lock()
	if k.closed {
		err = ErrClosed
	}
	k.mu.Unlock()
	k.end(err)
	close(k.done)
}

// close ends the session.
func (k *link) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.sess.Close(lite.SessionNoError, "")
}

// err is why the session has ended; nil while it lives.
func (k *link) err() error { return context.Cause(k.ended) }

// usable is the error of requests that cannot be made any more.
func (k *link) usable() error {
	if err := k.err(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return ErrClosed
	case k.goaway:
		return ErrGoingAway
	}
	return nil
}

// cause prefers the end of the session to what a request made of it.
func (k *link) cause(err error) error {
	if ended := k.err(); ended != nil {
		return ended
	}
	return err
}

func (k *link) goawayURI() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.uri
}

// Goaway implements session.Handler.
func (k *link) Goaway(uri string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.goaway {
		k.goaway, k.uri = true, uri
		close(k.goingAway)
	}
}

// Announce, Reannounce and Withdraw implement session.Handler: a link has no interests of its own, each reader of
// announcements opens a stream for itself.
func (k *link) Announce(session.AdvertID, session.Advertisement) error { return nil }

// Reannounce implements session.Handler.
func (k *link) Reannounce(session.AdvertID, session.Advertisement) error { return nil }

// Withdraw implements session.Handler.
func (k *link) Withdraw(session.AdvertID, bool) {}

// Listen implements session.Handler.
func (k *link) Listen(prefix string, exclude route.Hop) (session.Feed, error) {
	return k.local.listen(prefix, exclude, k.sess.Version().HasCost())
}

// TrackInfo implements session.Handler.
func (k *link) TrackInfo(_ context.Context, path, track string) (media.Info, error) {
	t, err := k.local.track(path, track)
	if err != nil {
		return media.Info{}, err
	}
	return t.Info(), nil
}

// Subscribe implements session.Handler.
func (k *link) Subscribe(_ context.Context, path, track string, sub media.Subscription, w media.Waker) (session.Reader, error) {
	t, err := k.local.track(path, track)
	if err != nil {
		return nil, err
	}
	r := &reader{of: t, m: t.track.NewReader(sub, w)}
	k.local.opened(t)
	return r, nil
}

// Fetch implements session.Handler: what the cache lacks does not exist.
func (k *link) Fetch(_ context.Context, req session.FetchRequest) (*media.GroupReader, error) {
	t, err := k.local.track(req.Path, req.Track)
	if err != nil {
		return nil, err
	}
	g, missing := t.track.Fetch(req.Group, req.Frame)
	if missing != nil {
		g.Close()
		missing.Close(ErrNotFound)
		return nil, ErrNotFound
	}
	return g, nil
}

var _ session.Handler = (*link)(nil)
