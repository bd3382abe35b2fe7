package tool

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/moqmesh/moqmesh/client"
)

// settle is how long after the first group the writer of payloads waits before it begins: older ones may come later,
// since the newest go first, and so may the word of the relay on where it begins.
const settle = 300 * time.Millisecond

// arrivals hands over groups as they come; the error ends them.
type arrivals struct {
	groups chan *client.GroupReader
	err    chan error
}

// readInOrder writes the payloads of all groups in the order of their numbers. A group that is missing is waited for as
// long as the max age, then skipped: the checker has it as a gap.
func (v *viewer) readInOrder(ctx context.Context, track *client.TrackReader) error {
	in := arrivals{groups: make(chan *client.GroupReader), err: make(chan error, 1)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		in.err <- in.receive(ctx, track)
	}()
	o := &ordered{v: v, track: track, in: in, early: make(map[uint64]*client.GroupReader)}
	defer o.close()
	return o.run(ctx)
}

func (in arrivals) receive(ctx context.Context, track *client.TrackReader) error {
	for {
		g, err := track.NextGroup(ctx)
		if err != nil {
			return err
		}
		select {
		case in.groups <- g:
		case <-ctx.Done():
			g.Close()
			return context.Cause(ctx)
		}
	}
}

// ordered puts groups in order.
type ordered struct {
	v      *viewer
	track  *client.TrackReader
	in     arrivals
	early  map[uint64]*client.GroupReader // came before their turn
	begun  bool                           // next is settled
	next   uint64                         // whose turn it is
	skipAt time.Time                      // when the wait for it ends; zero while nothing waits for it
	last   error                          // no more groups come
}

func (o *ordered) run(ctx context.Context) error {
	for {
		g := o.take()
		switch {
		case g != nil:
			if err := o.v.readGroup(ctx, g); err != nil {
				return err
			}
		case o.last == nil || len(o.early) > 0:
			if err := o.wait(ctx); err != nil {
				return err
			}
		case errors.Is(o.last, io.EOF):
			return errEnded
		default:
			return o.last
		}
	}
}

// take returns the group whose turn it is, if it has come.
func (o *ordered) take() *client.GroupReader {
	g := o.early[o.next]
	if !o.begun || g == nil {
		return nil
	}
	delete(o.early, o.next)
	o.next++
	o.skipAt = time.Time{}
	return g
}

// wait takes in what comes. With the patience at its end, or when nothing more comes, the lowest group is next.
func (o *ordered) wait(ctx context.Context) error {
	skip := time.NewTimer(time.Until(o.patience(time.Now())))
	defer skip.Stop()
	if len(o.early) == 0 {
		skip.Stop() // wait for a group
	}
	select {
	case g := <-o.in.groups:
		o.receive(g)
	case o.last = <-o.in.err:
	case <-skip.C:
		o.skip()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// patience is when the wait for the next group ends.
func (o *ordered) patience(now time.Time) time.Time {
	switch {
	case o.last != nil:
		return now
	case o.skipAt.IsZero() && len(o.early) > 0 && !o.begun:
		o.skipAt = now.Add(settle)
	case o.skipAt.IsZero() && len(o.early) > 0:
		o.skipAt = now.Add(o.v.c.MaxAge)
	}
	return o.skipAt
}

func (o *ordered) receive(g *client.GroupReader) {
	o.v.begin(g)
	if o.begun && g.Sequence() < o.next { // its turn has passed
		g.Close()
		o.v.end(g.Sequence(), false)
		return
	}
	o.early[g.Sequence()] = g
}

// skip goes on with the lowest group there is; at the beginning with what the relay said, if that is lower.
func (o *ordered) skip() {
	next := slices.Min(slices.Collect(maps.Keys(o.early)))
	if start, ok := o.track.Start(); ok && !o.begun && o.last == nil {
		next = min(next, start)
	}
	o.next, o.begun, o.skipAt = next, true, time.Time{}
}

func (o *ordered) close() {
	for _, g := range o.early {
		g.Close()
	}
}
