package lite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// serveFetch answers FETCH with the frames of one group (05 and later).
func (s *Session) serveFetch(r *request) {
	var m message.Fetch
	if !r.read(&m) {
		return
	}
	s.counters.Sent.Fetches.Add(1)
	r.whileOpen(func(ctx context.Context) {
		if err := s.answerFetch(ctx, r, m); err != nil {
			s.log.Debug("fetch refused", "path", m.Broadcast, "track", m.Track, "group", m.Group, "cause", err)
			r.giveUp(ctx, err)
		}
	})
}

func (s *Session) answerFetch(ctx context.Context, r *request, m message.Fetch) error {
	if err := s.awaitSetup(ctx); err != nil {
		return err
	}
	req := session.FetchRequest{
		Path: m.Broadcast, Track: m.Track, Priority: m.Priority, Group: m.Group, Frame: m.StartFrame,
	}
	if m.EndFrame.Set {
		end := m.EndFrame.Value + 1
		req.End = &end
	}
	g, err := s.handler.Fetch(ctx, req)
	if err != nil {
		return err
	}
	defer g.Close()
	if g.FirstFrame() != m.StartFrame { // the answer has no header to say so
		return media.ErrTooFarBehind
	}
	if req.End != nil {
		g.Limit(*req.End)
	}
	sent := s.sent(m.Broadcast) // only now: names that do not exist are not worth counting
	if sent.own != nil {
		sent.own.Fetches.Add(1)
	}
	return writeFetch(ctx, r, g, sent)
}

// writeFetch writes the frames of g until its end.
func writeFetch(ctx context.Context, r *request, g *media.GroupReader, sent count) error {
	waiter := media.NewWaiter()
	defer context.AfterFunc(ctx, waiter.Cancel)()
	for {
		b, err := g.Next(waiter)
		if errors.Is(err, io.EOF) {
			return r.Close()
		}
		if err != nil {
			return err
		}
		if _, err := r.content().Write(b.Bytes()); err != nil {
			return err
		}
		sent.frames(b.Frames(), b.PayloadBytes())
	}
}

// Fetch implements session.Upstream. The first byte must come within Config.RequestTimeout. An end is not asked for, except
// where the version has one. A refusal is a *RequestError.
func (s *Session) Fetch(ctx context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error {
	if !s.version.HasFetch() {
		return session.ErrUnsupported
	}
	m := message.Fetch{Broadcast: req.Path, Track: req.Track, Priority: req.Priority, Group: req.Group}
	if s.version.HasFrameBounds() {
		m.StartFrame = req.Frame
		if req.End != nil && *req.End > req.Frame {
			m.EndFrame = message.Some(*req.End - 1)
		}
	}
	q, err := s.ask(ctx, message.StreamFetch, m)
	if err != nil {
		return err
	}
	defer q.close()
	received := s.received(req.Path)
	received.fetch()
	if err := q.in.fill(); err != nil && !errors.Is(err, io.EOF) {
		return q.error(err)
	}
	q.answered()
	accepted()
	err = s.readFrames(q.in, w, received, new(atomic.Uint64))
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case isFrameError(err):
		return fmt.Errorf("fetched group: %w", err)
	}
	return q.error(err)
}

// isFrameError reports whether err says what is wrong with the frames, or that they are not wanted.
func isFrameError(err error) bool {
	var bad *frameError
	return errors.As(err, &bad)
}
