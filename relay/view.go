package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/lease"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// admitter lets one-shot HTTP requests in by the same rules as sessions (A12).
type admitter struct{ relay *Relay }

// Admit implements admin.Admitter.
func (a admitter) Admit(ctx context.Context, req admin.Request) (admin.View, error) {
	r := a.relay
	if err := r.pressure.admit(false); err != nil {
		return nil, &admin.StatusError{Status: http.StatusServiceUnavailable, Err: err}
	}
	admitted, err := r.open(ctx, auth.Request{
		Transport: auth.TransportHTTP, Remote: req.Remote, Local: req.Local, ServerName: req.ServerName,
		ALPN: req.ALPN, Path: req.Path, Query: req.Query, Role: auth.RoleSubscriber, TLS: auth.IdentityOf(req.Certificates),
	})
	if err != nil {
		r.refusals.tell(r.log.With("remote", req.Remote, "transport", "http"), req.Path, err)
		return nil, statusOf(err)
	}
	viewCtx, cancel := context.WithCancel(r.life)
	grant := admitted.Grant()
	v := &view{ctx: viewCtx, cancel: cancel, relay: r, lease: admitted}
	v.session = r.origin.Attach(origin.Peer{
		ID: r.ids.Add(1), Wire: route.WireLocal, Root: grant.Root, Publish: grant.Publish, Subscribe: grant.Subscribe,
		Mounts: grant.Mounts,
	}, nil)
	admitted.Hold(viewHolder{cancel})
	return v, nil
}

// statusOf gives a refused admission its HTTP status.
func statusOf(err error) error {
	if e, ok := errors.AsType[*auth.Error](err); ok {
		return &admin.StatusError{Status: e.Status, Err: err}
	}
	return &admin.StatusError{Status: http.StatusServiceUnavailable, Err: err}
}

// view is what one HTTP request sees.
type view struct {
	session *origin.Session
	ctx     context.Context // of the admission, not of one call: it ends with the relay
	cancel  context.CancelFunc
	relay   *Relay
	lease   *lease.Lease
	sent    atomic.Uint64 // bytes of payload
}

// Context implements admin.View.
func (v *view) Context() context.Context { return v.ctx }

// Close implements admin.View.
func (v *view) Close(reason string) {
	if v.relay.life.Err() != nil {
		reason = "shutdown"
	}
	v.cancel()
	v.session.Close(nil)
	v.lease.Close(reason, v.sent.Load(), 0)
}

// Announced implements admin.View.
func (v *view) Announced() ([]string, error) {
	feed, err := v.session.Listen("", 0)
	if err != nil {
		return nil, err
	}
	defer feed.Close()
	updates, err := feed.Next(v.ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(updates))
	for _, u := range updates {
		names = append(names, u.Name)
	}
	slices.Sort(names)
	return names, nil
}

// Fetch implements admin.View.
func (v *view) Fetch(ctx context.Context, track string, group *uint64) (admin.Group, error) {
	if err := v.await(ctx); err != nil {
		return nil, err
	}
	if group != nil {
		g, err := v.session.Fetch(ctx, session.FetchRequest{Track: track, Group: *group, Priority: media.DefaultPriority})
		if err != nil {
			return nil, notFound(err)
		}
		return &fetched{view: v, group: g, waiter: media.NewWaiter(), done: func() {}}, nil
	}
	return v.latest(ctx, track)
}

// await waits until the broadcast at the root is there.
func (v *view) await(ctx context.Context) error {
	feed, err := v.session.Listen("", 0)
	if err != nil {
		return err
	}
	defer feed.Close()
	for {
		updates, err := feed.Next(ctx)
		if err != nil {
			return err
		}
		for _, u := range updates {
			if u.Name == "" && u.Kind != session.UpdateGone {
				return nil
			}
		}
	}
}

// latest opens the newest group of a track by subscribing to it.
func (v *view) latest(ctx context.Context, track string) (admin.Group, error) {
	wake := make(waker, 1)
	reader, err := v.session.Subscribe(ctx, "", track, media.Subscription{Priority: media.DefaultPriority, Latest: true}, wake)
	if err != nil {
		return nil, notFound(err)
	}
	for {
		g, err := reader.Media().Next()
		switch {
		case errors.Is(err, io.EOF):
			err = admin.ErrNotFound // the track ended without a group
			fallthrough
		case err != nil:
			reader.Close()
			return nil, notFound(err)
		case g != nil:
			return &fetched{view: v, group: g, waiter: media.NewWaiter(), done: reader.Close}, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			reader.Close()
			return nil, context.Cause(ctx)
		}
	}
}

// notFound translates what the origin says when there is no such thing.
func notFound(err error) error {
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrUnroutable) {
		return admin.ErrNotFound
	}
	if errors.Is(err, session.ErrUnauthorized) {
		return &admin.StatusError{Status: http.StatusUnauthorized, Err: err}
	}
	return err
}

type waker chan struct{}

// Wake implements media.Waker.
func (w waker) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// fetched is one group on its way into an HTTP body.
type fetched struct {
	view   *view
	group  *media.GroupReader
	waiter *media.Waiter
	done   func()
}

// Next implements admin.Group.
func (f *fetched) Next(ctx context.Context) ([]byte, error) {
	stop := context.AfterFunc(ctx, f.waiter.Cancel)
	defer stop()
	frame, err := f.group.ReadFrame(f.waiter)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f.view.sent.Add(uint64(len(frame.Payload)))
	return frame.Payload, err
}

// Close implements admin.Group.
func (f *fetched) Close() {
	f.group.Close()
	f.done()
}
