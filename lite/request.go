package lite

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
)

// grace is how long an end that is done with a stream waits for the other to be done too.
const grace = time.Second

// How the peer can end its side of a request.
var (
	errFinished = errors.New("the peer finished its side")
	errExtra    = errors.New("the peer sent more than the request")
)

// request is a bidirectional stream that the peer opened.
type request struct {
	*tallied
	s       *Session
	in      *input
	pending slots
	started bool // the first message is complete, or will never be
}

// serve reads the type of the stream and serves it. Unknown types are refused and never fatal (moq-lite 4.1).
func (r *request) serve() {
	defer r.start()
	_ = r.SetReadDeadline(time.Now().Add(r.s.cfg.RequestTimeout))
	typ, err := message.ReadStreamType(r.in, r.s.version)
	r.is(classOf(typ))
	switch {
	case err != nil && typ == message.StreamProbe: // 01, 02
		refuse(r, StreamInternal)
	case err != nil:
		r.s.log.Debug("stream refused", "cause", err)
		refuse(r, StreamCancelled)
	case typ == message.StreamAnnounce:
		r.s.serveAnnounce(r)
	case typ == message.StreamSubscribe:
		r.s.serveSubscribe(r)
	case typ == message.StreamFetch:
		r.s.serveFetch(r)
	case typ == message.StreamTrack:
		r.s.serveTrack(r)
	case typ == message.StreamProbe:
		r.s.serveProbe(r)
	case typ == message.StreamGoaway:
		r.s.serveGoaway(r)
	}
}

// start ends the time in which the stream counts as pending.
func (r *request) start() {
	if !r.started {
		r.started = true
		_ = r.SetReadDeadline(time.Time{})
		r.pending.release()
	}
}

// read reads the message that opens the stream. If that fails the stream has been refused (moq-lite 4.2).
func (r *request) read(m message.Decoder) bool {
	err := r.in.message(r.s.version, m, r.s.cfg.Limits.RequestBytes)
	r.start()
	if err == nil {
		return true
	}
	r.s.log.Debug("request refused", "cause", err)
	refuse(r, StreamCancelled)
	return false
}

// whileOpen runs f with a context that ends as soon as the peer ends its side of the stream or sends anything on it,
// which all requests but SUBSCRIBE take as their end. The cause is errFinished, errExtra, or how the stream
// failed. f leaves the stream closed or reset; whileOpen returns when both sides are.
func (r *request) whileOpen(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancelCause(r.s.conn.Context())
	defer cancel(nil)
	done := make(chan struct{})
	if !r.s.spawn(func() {
		defer close(done)
		_, err := r.in.ReadByte()
		switch {
		case err == nil:
			err = errExtra
		case errors.Is(err, io.EOF):
			err = errFinished
		}
		cancel(err)
	}) {
		return
	}
	f(ctx)
	_ = r.SetReadDeadline(time.Now().Add(grace))
	<-done
	r.Stop(StreamInternal)
}

// giveUp resets the stream because of err, or of what ended ctx, the context of whileOpen.
func (r *request) giveUp(ctx context.Context, err error) {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var ended *transport.StreamError
	switch {
	case errors.Is(err, errExtra):
		refuse(r, StreamMalformed)
	case errors.Is(err, errFinished), errors.As(err, &ended):
		refuse(r, StreamCancelled)
	default:
		refuse(r, StreamCode(err))
	}
}

// refuse ends both halves of a stream.
func refuse(st transport.Stream, code uint64) {
	st.Reset(code)
	st.Stop(code)
}
