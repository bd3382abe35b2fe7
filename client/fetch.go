package client

import (
	"context"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// FetchRequest names a group, or part of it.
type FetchRequest = session.FetchRequest

// Fetch asks for one group, past or current, and returns once the peer has begun to answer; ctx bounds that alone. The
// group is read as it arrives. Wires before moq-lite 05 have no fetch: ErrUnsupported. A peer that does not have the
// group, or the frame it should begin with, answers ErrNotFound or the like. The caller closes the reader, which ends the
// request.
func (c *Client) Fetch(ctx context.Context, req FetchRequest) (*GroupReader, error) {
	g, err := c.fetch(ctx, req)
	if err != nil {
		return nil, &RequestError{Op: "fetch", Path: req.Path, Track: req.Track, Err: err}
	}
	return g, nil
}

func (c *Client) fetch(ctx context.Context, req FetchRequest) (*GroupReader, error) {
	caps := c.link.sess.Caps()
	if !caps.Fetch {
		return nil, ErrUnsupported
	}
	info, err := c.trackInfo(ctx, req.Path, req.Track)
	if err != nil {
		return nil, err
	}
	group, asked := c.cache.NewTrack(info).Fetch(req.Group, req.Frame)
	if asked == nil { // no group can have that number
		group.Close()
		return nil, ErrNotFound
	}
	if req.End != nil {
		group.Limit(*req.End)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &fetch{link: c.link, req: req, accepted: make(chan struct{}), done: make(chan struct{})}
	run := func() { f.run(life, asked, caps.FrameBounds) }
	if !c.start(run) {
		cancel()
		asked.Close(ErrClosed)
		group.Close()
		return nil, ErrClosed
	}
	stop := func() {
		cancel()
		<-f.done
	}
	select {
	case <-f.accepted:
	case <-f.done:
		err = f.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		return &GroupReader{g: group, stop: stop}, nil
	}
	group.Close()
	stop()
	return nil, err
}

// fetch is one request under way.
type fetch struct {
	link     *link
	req      FetchRequest
	accepted chan struct{}
	done     chan struct{} // run has ended
	err      error         // valid once done
}

func (f *fetch) run(ctx context.Context, asked *media.Fetch, bounds bool) {
	defer close(f.done)
	first := uint64(0)
	if bounds {
		first = f.req.Frame
	}
	w := asked.Writer(first)
	f.err = f.link.sess.Fetch(ctx, f.req, w, func() { close(f.accepted) })
	if f.err != nil {
		f.err = f.link.cause(f.err)
		w.Abort(f.err)
		asked.Close(f.err)
		return
	}
	w.Finish()
	asked.Close(nil)
}
