package origin

import (
	"context"
	"fmt"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// request is one request of a peer for a logical track. It is answered once, by the goroutine of the track.
type request struct {
	reply chan reply // has room for the answer
	peer  route.Hop  // who asks, of those that share the front with others; set by the owner
	// A subscription.
	sub   media.Subscription
	waker media.Waker
	// A fetch.
	fetch session.FetchRequest
}

type reply struct {
	info   media.Info
	reader *reader
	group  *media.GroupReader
	err    error
}

// discard frees what nobody is there to take.
func (r reply) discard() {
	if r.reader != nil {
		r.reader.Close()
	}
	if r.group != nil {
		r.group.Close()
	}
}

// TrackInfo implements session.Handler. The answer is that of the logical track, asked upstream once (F8).
func (s *Session) TrackInfo(ctx context.Context, path, track string) (media.Info, error) {
	req := &request{reply: make(chan reply, 1)}
	r, err := s.request(ctx, path, track, req, wantInfo{req})
	return r.info, err
}

// Subscribe implements session.Handler. It waits for the properties of the track, hence for a source, unless they are
// known. A path that nobody has announced is session.ErrUnroutable at once (R28); who wants to wait listens.
func (s *Session) Subscribe(
	ctx context.Context, path, track string, sub media.Subscription, waker media.Waker,
) (session.Reader, error) {
	req := &request{reply: make(chan reply, 1), sub: sub, waker: waker}
	r, err := s.request(ctx, path, track, req, join{req})
	if err != nil {
		return nil, err
	}
	return r.reader, nil
}

// Fetch implements session.Handler. From a source whose wire has no fetch (moq-lite before 05) only what is cached can
// be had; else the answer is ErrNotFound.
func (s *Session) Fetch(ctx context.Context, req session.FetchRequest) (*media.GroupReader, error) {
	m := &request{reply: make(chan reply, 1), fetch: req}
	r, err := s.request(ctx, req.Path, req.Track, m, fetchGroup{m})
	return r.group, err
}

// request takes a request to its track, and waits for the answer.
func (s *Session) request(ctx context.Context, path, track string, req *request, m trackMessage) (reply, error) {
	abs := paths.Join(s.peer.Root, path)
	if paths.Depth(abs) > paths.MaxSegments {
		return reply{}, fmt.Errorf("%w: %w", session.ErrUnroutable, paths.ErrTooDeep)
	}
	if !s.grant.Load().subscribe.Match(abs) {
		return reply{}, session.ErrUnauthorized
	}
	abs, ok := s.peer.Mounts.Resolve(abs)
	if !ok {
		return reply{}, fmt.Errorf("%w: %w", session.ErrUnroutable, paths.ErrTooDeep)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.cfg.RequestTimeout, session.ErrTimeout)
	defer cancel()
	for {
		res := &resolve{s: s, path: abs, track: track, req: req, first: m, reply: make(chan resolved, 1)}
		to, err := call(s.o, res.reply, res)
		if err == nil {
			err = to.err
		}
		if err != nil {
			return reply{}, err
		}
		r, answered := to.track.await(ctx, req, m, to.isNew)
		if answered {
			return r, r.err
		}
		// The track has ended meanwhile; its name is free for a new one.
	}
}

// await gives the track the message of a request, unless it has it already, and waits for the answer. It returns false
// if the track has ended without one.
func (t *track) await(ctx context.Context, req *request, m trackMessage, sent bool) (reply, bool) {
	if !sent {
		select {
		case t.inbox <- m:
		case <-t.done:
			return reply{}, false
		case <-ctx.Done():
			return reply{err: context.Cause(ctx)}, true
		}
	}
	select {
	case r := <-req.reply:
		return r, true
	case <-t.done:
		select {
		case r := <-req.reply:
			return r, true
		default:
			return reply{}, false
		}
	case <-ctx.Done():
	}
	t.post(leave{req}) // once that was taken, the answer is there or will never be
	select {
	case r := <-req.reply:
		r.discard()
	default:
	}
	return reply{err: context.Cause(ctx)}, true
}

// post gives the track a message, unless it has ended.
func (t *track) post(m trackMessage) {
	select {
	case t.inbox <- m:
	case <-t.done:
	}
}

// reader is a subscription of a peer.
type reader struct {
	t     *track
	media *media.Reader
	// Of the track's goroutine.
	sub  media.Subscription
	peer route.Hop
	open bool
}

var _ session.Reader = (*reader)(nil)

// Media implements session.Reader.
func (r *reader) Media() *media.Reader { return r.media }

// Update implements session.Reader.
func (r *reader) Update(sub media.Subscription) {
	r.media.Update(sub)
	r.t.post(change{r, sub})
}

// Close implements session.Reader. It may be called twice.
func (r *reader) Close() {
	r.media.Close()
	r.t.post(part{r})
}
