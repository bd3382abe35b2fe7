package client

import (
	"context"
	"errors"

	"github.com/moqmesh/moqmesh/media"
)

// GroupReader reads the frames of one group. One goroutine may use it at a time.
type GroupReader struct {
	g      *media.GroupReader
	batch  media.Batch
	at     int           // next frame of batch
	waiter *media.Waiter // nil until it is needed
	stop   func()        // ends a fetch; nil for groups of a subscription
}

// Sequence is the number of the group.
func (g *GroupReader) Sequence() uint64 { return g.g.Sequence() }

// FirstFrame is the index of the first frame that ReadFrame returns: 0, but where a start inside the group was asked.
func (g *GroupReader) FirstFrame() uint64 { return g.g.FirstFrame() }

// ReadFrame waits for the next frame. It returns io.EOF after the last frame of a complete group, the cause when ctx
// ends, and else why the rest will not come: ErrOld if the group fell behind by more than the subscription's max age,
// ErrEvicted, or the end of the subscription or session.
func (g *GroupReader) ReadFrame(ctx context.Context) (Frame, error) {
	if g.at >= g.batch.Frames() {
		if err := g.fill(ctx); err != nil {
			return Frame{}, err
		}
	}
	f := g.batch.Frame(g.at)
	g.at++
	return f, nil
}

// fill waits for the next batch.
func (g *GroupReader) fill(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if g.waiter == nil {
		g.waiter = media.NewWaiter()
	}
	stop := context.AfterFunc(ctx, g.waiter.Cancel)
	batch, err := g.g.Next(g.waiter)
	if !stop() {
		g.waiter = nil // Cancel may come yet
	}
	switch {
	case errors.Is(err, media.ErrCancelled) && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	g.batch, g.at = batch, 0
	return nil
}

// Close says that the reader is done with the group. It may be called twice.
func (g *GroupReader) Close() {
	g.g.Close()
	if g.stop != nil {
		g.stop()
	}
}
