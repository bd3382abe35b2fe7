package origin

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// upstreamFeed is the shell of one upstream copy: a goroutine that subscribes, passes updates on, and reports the end.
type upstreamFeed struct {
	cancel context.CancelFunc
	latest atomic.Pointer[media.Subscription]
	kick   chan struct{}
}

// update replaces what is to be asked; only the latest counts.
func (f *upstreamFeed) update(sub media.Subscription) {
	f.latest.Store(&sub)
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// ask starts a request for properties, which is bounded in time.
func (t *track) ask(e askInfo) {
	ctx, cancel := context.WithTimeoutCause(e.src.via.life, t.o.cfg.RequestTimeout, session.ErrTimeout)
	t.probes[e.id] = cancel
	t.running++
	t.o.counters.infos.Add(1)
	go func() {
		defer cancel()
		info, err := e.src.via.up.TrackInfo(ctx, e.src.path, t.name)
		err = causeOf(ctx, err)
		t.events <- report{last: true, then: func(t *track) {
			delete(t.probes, e.id)
			t.apply(infoAnswered{e.id, info, err})
		}}
	}()
}

// causeOf says why ctx ended where that is why a request failed.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// open starts an upstream subscription.
func (t *track) open(e openCopy) {
	ctx, cancel := context.WithCancelCause(e.src.via.life)
	f := &upstreamFeed{cancel: func() { cancel(media.ErrCancelled) }, kick: make(chan struct{}, 1)}
	t.feeds[e.id] = f
	t.running++
	go func() {
		err := t.feed(ctx, cancel, e, f)
		cancel(nil)
		t.events <- report{last: true, then: func(t *track) {
			delete(t.feeds, e.id)
			t.apply(copyDone{e.id, err})
		}}
	}()
}

// feed subscribes and stays until the subscription is over.
func (t *track) feed(ctx context.Context, cancel context.CancelCauseFunc, e openCopy, f *upstreamFeed) error {
	late := time.AfterFunc(t.o.cfg.RequestTimeout, func() { cancel(session.ErrTimeout) })
	sub, err := e.src.via.up.Subscribe(ctx, session.SubscribeRequest{
		Path: e.src.path, Track: t.name, Subscription: e.sub, Info: e.info,
	}, e.media)
	inTime := late.Stop()
	if err != nil {
		return causeOf(ctx, err)
	}
	n := &t.o.counters
	n.subscriptions.Add(1)
	n.copies.Add(1)
	defer n.copies.Add(-1)
	stop := context.AfterFunc(ctx, sub.Cancel) // also while an update is stuck
	defer stop()
	if inTime {
		t.events <- report{then: func(t *track) { t.apply(copyOpened{e.id}) }}
	}
	for {
		select {
		case <-sub.Done():
			return causeOf(ctx, sub.Err())
		case <-f.kick:
			// A failed update leaves the subscription as it is, or ends it; then Done tells.
			if err := sub.Update(*f.latest.Load()); err != nil {
				t.o.log.Debug("subscription not updated", "path", t.key.path, "track", t.name, "error", err)
			}
		case <-e.src.via.life.Done():
			sub.Cancel() // the session need not be over for its owner
			return net.ErrClosed
		}
	}
}
