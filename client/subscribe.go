package client

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// Subscription says what of a track is wanted; see package media. The zero value is the live edge: the newest group,
// then each newer one as long as the reader keeps up.
type Subscription = media.Subscription

// Info are the properties of a track.
type Info = media.Info

// Position is a place in a track.
type Position = media.Position

// Frame is one frame. Its payload is shared: read only, and valid as long as it is referenced.
type Frame = media.Frame

// Datagram is a group of one frame that came as a datagram.
type Datagram = media.Datagram

// TrackInfo asks for the properties of a track. Wires before moq-lite 05 carry none; there the answer is the defaults,
// and the track may not exist.
func (c *Client) TrackInfo(ctx context.Context, path, track string) (Info, error) {
	info, err := c.trackInfo(ctx, path, track)
	if err != nil {
		return info, &RequestError{Op: "track info", Path: path, Track: track, Err: err}
	}
	return info, nil
}

func (c *Client) trackInfo(ctx context.Context, path, track string) (Info, error) {
	if err := c.link.usable(); err != nil {
		return Info{}, err
	}
	info, err := c.link.sess.TrackInfo(ctx, path, track)
	if err != nil {
		return Info{}, c.link.cause(err)
	}
	return info, nil
}

// Subscribe asks for a track of the broadcast at path, whether it is announced or not. It returns once the peer has
// told the properties of the track and the request is on its way; ctx bounds that alone. A later refusal is the error of
// NextGroup. The caller closes the reader.
func (c *Client) Subscribe(ctx context.Context, path, track string, sub Subscription) (*TrackReader, error) {
	r, err := c.subscribe(ctx, path, track, sub)
	if err != nil {
		return nil, &RequestError{Op: "subscribe", Path: path, Track: track, Err: err}
	}
	return r, nil
}

func (c *Client) subscribe(ctx context.Context, path, track string, sub Subscription) (*TrackReader, error) {
	info, err := c.trackInfo(ctx, path, track)
	if err != nil {
		return nil, err
	}
	r := &TrackReader{
		link: c.link, path: path, name: track, groups: newBell(), datagrams: newBell(), over: make(chan struct{}),
	}
	r.track = c.cache.NewTrack(info)
	r.copy = r.track.NewCopy(nil)
	r.reader = r.track.NewReader(unfloored(sub), r)
	req := session.SubscribeRequest{Path: path, Track: track, Subscription: sub, Info: info}
	r.up, err = c.link.sess.Subscribe(ctx, req, r.copy)
	if err != nil {
		r.reader.Close()
		r.copy.Close()
		r.track.Close(err)
		return nil, c.link.cause(err)
	}
	if !c.start(r.follow) {
		r.up.Cancel()
		r.follow()
		return nil, ErrClosed
	}
	return r, nil
}

// unfloored is sub for the reader on this side: without a start it takes all that comes, since the publisher decides where
// delivery begins and its streams overtake each other.
func unfloored(sub Subscription) Subscription {
	sub.Latest = false
	if sub.Start == nil {
		sub.Start = &Position{}
	}
	return sub
}

// TrackReader reads one subscription. Its methods may be called concurrently.
type TrackReader struct {
	link       *link
	path, name string

	track  *media.Track
	copy   *media.Copy
	up     session.Subscription
	reader *media.Reader

	groups, datagrams bell
	over              chan struct{} // follow has ended

	mu     sync.Mutex // around the use of reader
	closed bool
}

// Wake implements media.Waker for the reader's own use.
func (r *TrackReader) Wake() {
	r.groups.ring()
	r.datagrams.ring()
}

// follow ends the track when the subscription does. Close makes it end.
func (r *TrackReader) follow() {
	defer r.Wake()
	defer close(r.over)
	<-r.up.Done()
	err := r.up.Err()
	state := r.copy.State()
	r.copy.Close()
	switch {
	case err != nil:
		r.track.Close(r.link.cause(err))
	case state.Ended:
		r.track.End(state.End)
	case state.Begun:
		r.track.End(state.Newest + 1)
	default:
		r.track.End(0)
	}
}

// Info are the properties of the track.
func (r *TrackReader) Info() Info { return r.track.Info() }

// Start is the first group that will be delivered, once the publisher has said so: nothing below is coming. Wires before
// moq-lite 05 never say it.
func (r *TrackReader) Start() (group uint64, ok bool) {
	state := r.copy.State()
	return state.Start, state.Started
}

// End is the end of the track, exclusive, as soon as it is known.
func (r *TrackReader) End() (group uint64, ok bool) { return r.reader.End() }

// NextGroup waits for the next group as groups arrive, which is not always in their order. It returns io.EOF after the
// clean end of the track, once all groups were handed out, ErrClosed after Close, the cause when ctx ends, and else a
// *RequestError: the refusal, what ended the track, or the end of the session. The caller closes the group.
func (r *TrackReader) NextGroup(ctx context.Context) (*GroupReader, error) {
	for {
		g, err := r.takeGroup()
		if g != nil || err != nil {
			return g, err
		}
		if err := r.groups.wait(ctx); err != nil {
			return nil, err
		}
	}
}

func (r *TrackReader) takeGroup() (*GroupReader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.groups.ring() // for others who wait
		return nil, ErrClosed
	}
	g, err := r.reader.Next()
	if g == nil && err == nil {
		return nil, nil
	}
	r.groups.ring() // there may be more, and others who wait
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, r.failed(err)
	}
	return &GroupReader{g: g}, nil
}

// failed says what has failed.
func (r *TrackReader) failed(err error) error {
	return &RequestError{Op: "subscribe", Path: r.path, Track: r.name, Err: r.link.cause(err)}
}

// NextDatagram waits for the next datagram; up to 64 that nobody takes are kept. It ends as NextGroup does.
func (r *TrackReader) NextDatagram(ctx context.Context) (Datagram, error) {
	for {
		d, ok, err := r.takeDatagram()
		if ok || err != nil {
			return d, err
		}
		if err := r.datagrams.wait(ctx); err != nil {
			return Datagram{}, err
		}
	}
}

func (r *TrackReader) takeDatagram() (Datagram, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.datagrams.ring()
		return Datagram{}, false, ErrClosed
	}
	if d, ok := r.reader.NextDatagram(); ok {
		r.datagrams.ring()
		return d, true, nil
	}
	select {
	case <-r.over:
	default:
		return Datagram{}, false, nil
	}
	r.datagrams.ring()
	if err := r.up.Err(); err != nil {
		return Datagram{}, false, r.failed(err)
	}
	return Datagram{}, false, io.EOF
}

// Update replaces what is wanted, here and, on wires that can say so (moq-lite 03 and later), at the peer.
func (r *TrackReader) Update(sub Subscription) error {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return ErrClosed
	}
	r.reader.Update(unfloored(sub))
	if !r.link.sess.Caps().Update {
		return nil
	}
	if err := r.up.Update(sub); err != nil {
		return r.failed(err)
	}
	return nil
}

// Close unsubscribes. Groups that were handed out and are complete can be read on. It may be called twice.
func (r *TrackReader) Close() {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	r.mu.Unlock()
	if first {
		r.up.Cancel()
		<-r.over
		r.reader.Close()
		r.Wake()
	}
	<-r.over
}
