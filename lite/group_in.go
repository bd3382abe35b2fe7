package lite

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/wire"
)

// frameError says that what a group stream brought cannot be used, and with which code it is stopped.
type frameError struct {
	code uint64
	err  error
}

func (e *frameError) Error() string { return e.err.Error() }
func (e *frameError) Unwrap() error { return e.err }

// receiveGroup serves a GROUP stream, whose type has been read.
func (s *Session) receiveGroup(st transport.ReceiveStream, in *input, pending slots) {
	var m message.Group
	err := in.message(s.version, &m, 4*wire.MaxVarintLen)
	pending.release()
	if err != nil {
		st.Stop(StreamMalformed)
		return
	}
	_ = st.SetReadDeadline(time.Time{})
	u := s.in.find(m.Subscribe)
	if u == nil { // over, or cancelled
		st.Stop(StreamCancelled)
		return
	}
	g, code := u.begin(st, m)
	if g == nil {
		st.Stop(code)
		return
	}
	in.stir = g.w.Stir
	u.conclude(g, s.readFrames(in, g.w, u.received, &u.progress))
}

// readFrames passes frames on, and counts them in progress, until the stream ends: io.EOF after a FIN between frames, a
// *frameError if they cannot be used, else the error of the stream.
func (s *Session) readFrames(in *input, w *media.GroupWriter, received count, progress *atomic.Uint64) error {
	var ts uint64
	stamped := s.version.HasTimestamps()
	for {
		h, err := in.frameHeader(s.version)
		if err != nil {
			return frameFault(err)
		}
		payload, err := in.payload(int(h.Size))
		if err != nil {
			return frameFault(err)
		}
		if stamped {
			var ok bool
			if ts, ok = message.NextTimestamp(ts, h.Delta); !ok {
				return &frameError{StreamMalformed, fmt.Errorf("%w: %w", media.ErrMalformed, message.ErrTimestamp)}
			}
		} else {
			ts = s.receiveTime()
		}
		if err := w.WriteFrame(ts, payload); err != nil {
			if errors.Is(err, media.ErrOld) {
				received.stale(0, 1, len(payload))
			}
			return &frameError{writeCode(err), err}
		}
		progress.Add(1)
		received.frames(1, len(payload))
	}
}

// receiveTime stands in for timestamps where the wire has none: milliseconds of the local clock.
func (s *Session) receiveTime() uint64 {
	return uint64(s.started.Add(time.Since(s.started)).UnixMilli())
}

// frameFault tells what the peer did wrong from how the stream failed.
func frameFault(err error) error {
	switch {
	case errors.Is(err, message.ErrFrameTooLarge):
		return &frameError{StreamFrameTooLarge, media.ErrFrameTooLarge}
	case errors.Is(err, message.ErrFrameTruncated):
		return &frameError{StreamMalformed, fmt.Errorf("%w: %w", media.ErrMalformed, err)}
	case errors.Is(err, errFrameBudget):
		return &frameError{StreamGroupTooLarge, fmt.Errorf("%w: %w", media.ErrGroupTooLarge, err)}
	}
	return err
}

// writeCode is the code to stop a group with that its writer takes no more of.
func writeCode(err error) uint64 {
	if errors.Is(err, media.ErrDuplicate) {
		return StreamCancelled // complete by another copy
	}
	return StreamCode(err)
}

// incoming is an open group stream of a subscription of ours.
type incoming struct {
	st       transport.ReceiveStream
	w        *media.GroupWriter
	sequence uint64
	cause    error // why we stopped it; guarded by the lock of the subscription
}

// stopLocked records that we stop the stream; it reports false if that has happened before.
func (g *incoming) stopLocked(cause error) bool {
	if g.cause != nil {
		return false
	}
	g.cause = cause
	return true
}

// begin takes up a group stream, or says with which code to stop it.
func (u *upstream) begin(st transport.ReceiveStream, m message.Group) (*incoming, uint64) {
	if err := u.admitGroup(m.Sequence); err != nil {
		if errors.Is(err, errPastEnd) && u.s.version.HasFloor() { // 06: the track fails
			u.fail(err)
			return nil, StreamSessionClosed
		}
		return nil, StreamCancelled
	}
	defer u.opened()
	u.awaitStart()
	w, err := u.copy.Group(m.Sequence, m.StartFrame)
	switch {
	case errors.Is(err, media.ErrDuplicate):
		return nil, StreamInternal // (moq-lite 10)
	case errors.Is(err, media.ErrOld):
		return nil, StreamOld
	case err != nil:
		return nil, StreamCancelled
	}
	g := &incoming{st: st, w: w, sequence: m.Sequence}
	if !u.enter(g) {
		w.Abort(media.ErrCancelled)
		return nil, StreamCancelled
	}
	u.received.group()
	return g, 0
}

// startPatience is how long the first groups of a subscription wait for the SUBSCRIBE_START that they have overtaken.
const startPatience = 100 * time.Millisecond

// awaitStart holds back a group that has overtaken SUBSCRIBE_START: a reader without a floor begins with the lowest
// group that can be served when the first one arrives, and would never get those below that are still on their way
// (F5); with a floor, what was cached before would pass for stale (F16). Peers need not send a START, hence the limit.
func (u *upstream) awaitStart() {
	select {
	case <-u.startKnown:
		return
	default:
	}
	timer := time.NewTimer(startPatience)
	defer timer.Stop()
	select {
	case <-u.startKnown:
	case <-timer.C:
		u.knowStart() // it is not waited for again
	}
}

// knowStart lets groups in: SUBSCRIBE_START has come, or is not waited for.
func (u *upstream) knowStart() { u.startOnce.Do(func() { close(u.startKnown) }) }

// admitGroup is admit for a group that will be open: until opened is called it counts as such, so that a subscription that
// ends meanwhile waits for it.
func (u *upstream) admitGroup(sequence uint64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.admitLocked(sequence)
	if err == nil {
		u.opening++
	}
	return err
}

// opened says that a group that was admitted is registered, or is over already.
func (u *upstream) opened() {
	u.mu.Lock()
	u.opening--
	u.mu.Unlock()
	u.settle()
}

// enter registers an open group. If there are too many, the lowest sequence gives way. It reports false if the
// subscription is over.
func (u *upstream) enter(g *incoming) bool {
	u.mu.Lock()
	if u.over {
		u.mu.Unlock()
		return false
	}
	u.groups[g] = struct{}{}
	var lowest *incoming
	if len(u.groups) > u.s.cfg.Limits.IncomingGroups {
		for o := range u.groups {
			if o.cause == nil && (lowest == nil || o.sequence < lowest.sequence) {
				lowest = o
			}
		}
		lowest.stopLocked(media.ErrOld)
	}
	u.mu.Unlock()
	if lowest != nil {
		u.received.stale(1, 0, 0)
		lowest.st.Stop(StreamOld)
	}
	return true
}

// leave forgets a group that has ended.
func (u *upstream) leave(g *incoming) {
	u.mu.Lock()
	delete(u.groups, g)
	last := u.over && len(u.groups) == 0
	u.mu.Unlock()
	if last {
		close(u.done)
	}
	u.settle()
}

// stopCause is why we stopped the group, nil if we did not.
func (u *upstream) stopCause(g *incoming) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return g.cause
}

// conclude tells the copy how a group ended, and stops its stream if that is not over.
func (u *upstream) conclude(g *incoming, err error) {
	var bad *frameError
	cause := u.stopCause(g)
	switch {
	case errors.Is(err, io.EOF):
		g.w.Finish()
	case cause != nil:
		g.w.Abort(cause)
	case errors.As(err, &bad):
		u.s.log.Debug("group stopped", "group", g.sequence, "cause", err)
		g.w.Abort(bad.err)
		g.st.Stop(bad.code)
	default:
		err = peerError(err)
		if errors.Is(err, media.ErrOld) {
			u.received.stale(1, 0, 0)
		}
		g.w.Abort(err)
	}
	u.leave(g)
}
