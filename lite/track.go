package lite

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// serveTrack answers TRACK with TRACK_INFO (05 and later).
func (s *Session) serveTrack(r *request) {
	var m message.Track
	if !r.read(&m) {
		return
	}
	r.whileOpen(func(ctx context.Context) {
		if err := s.answerTrack(ctx, r, m); err != nil {
			s.log.Debug("track refused", "path", m.Broadcast, "track", m.Track, "cause", err)
			r.giveUp(ctx, err)
		}
	})
}

func (s *Session) answerTrack(ctx context.Context, r *request, m message.Track) error {
	if err := s.awaitSetup(ctx); err != nil {
		return err
	}
	info, err := s.handler.TrackInfo(ctx, m.Broadcast, m.Track)
	if err != nil {
		return err
	}
	b, err := message.TrackInfo{
		Priority:  info.Priority,
		MaxAge:    info.MaxAge,
		Timescale: info.Timescale,
	}.Append(nil, s.version)
	if err != nil {
		return err
	}
	if _, err := r.Write(b); err != nil {
		return err
	}
	return r.Close()
}

// TrackInfo implements session.Upstream. The peer has Config.RequestTimeout to answer. A refusal is a *RequestError.
func (s *Session) TrackInfo(ctx context.Context, path, track string) (media.Info, error) {
	if !s.version.HasTrackInfo() {
		info := media.DefaultInfo()
		info.Unstamped = !s.version.HasTimestamps()
		return info, nil
	}
	q, err := s.ask(ctx, message.StreamTrack, message.Track{Broadcast: path, Track: track})
	if err != nil {
		return media.Info{}, err
	}
	defer q.close()
	var m message.TrackInfo
	if err := message.Read(q.in, s.version, &m); err != nil {
		return media.Info{}, q.error(err)
	}
	return media.Info{Priority: m.Priority, MaxAge: m.MaxAge, Timescale: m.Timescale}, nil
}

// query is a request of ours that is answered on its stream. Its own side stays open until the answer is complete: a
// FIN would cancel it (moq-lite 4.2).
type query struct {
	*tallied
	s    *Session
	ctx  context.Context // of the caller
	in   *input
	stop func() bool
}

// ask opens a stream and writes a request. It fails with session.ErrGoingAway after the peer's GOAWAY. When ctx ends
// both sides of the stream do.
func (s *Session) ask(ctx context.Context, typ message.StreamType, m message.Encoder) (*query, error) {
	if s.leaving.Load() {
		return nil, session.ErrGoingAway
	}
	b, err := m.Append(typ.Append(nil), s.version)
	if err != nil {
		return nil, err
	}
	st, err := s.conn.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	q := &query{tallied: s.tally(st, classOf(typ)), s: s, ctx: ctx}
	if typ == message.StreamFetch { // the answer is content
		q.in = newGroupInput(st, &s.frames)
	} else {
		q.in = newGroupInput(q, &s.frames)
	}
	q.stop = context.AfterFunc(ctx, func() { refuse(st, StreamCancelled) })
	if _, err := q.Write(b); err != nil {
		defer q.close()
		return nil, q.error(err)
	}
	_ = st.SetReadDeadline(time.Now().Add(s.cfg.RequestTimeout))
	return q, nil
}

// answered takes the limit of time off.
func (q *query) answered() { _ = q.SetReadDeadline(time.Time{}) }

// error says why the answer did not come.
func (q *query) error(err error) error {
	var timeout interface{ Timeout() bool }
	switch {
	case q.ctx.Err() != nil:
		return context.Cause(q.ctx)
	case q.s.conn.Context().Err() != nil:
		return q.s.closedError()
	case errors.As(err, &timeout) && timeout.Timeout():
		return session.ErrTimeout
	case errors.Is(err, io.EOF), malformed(err):
		return errors.Join(media.ErrMalformed, err)
	}
	return peerError(err)
}

// close ends our side: cleanly after a complete answer, and the other side in any case. The query must not be used any
// more.
func (q *query) close() {
	q.stop()
	_ = q.Close()
	q.Stop(StreamCancelled)
	q.in.free()
}
