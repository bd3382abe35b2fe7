package lite

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/wire"
)

// run reads the answers until the subscription is over.
func (u *upstream) run() {
	in := newInput(u.st, controlBuffer)
	err := u.accepted(in)
	for err == nil {
		var m message.Response
		if m, err = readResponse(in, u.s.version); err == nil {
			err = u.apply(m)
		}
	}
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, io.EOF):
		err = u.drain()
	case u.s.conn.Context().Err() != nil:
		err = u.s.closedError()
	case errors.As(err, &timeout) && timeout.Timeout():
		err = session.ErrTimeout
	case errors.Is(err, errPastEnd):
		u.fail(err)
	case malformed(err):
		err = fmt.Errorf("%w: %w", media.ErrMalformed, err)
	default:
		err = peerError(err)
	}
	u.finish(err)
	u.st.Stop(StreamCancelled)
}

// maxResponse is the longest body of an answer to SUBSCRIBE, in bytes; all have a few numbers.
const maxResponse = 8 * wire.MaxVarintLen

// readResponse reads one answer as message.ReadResponse does, with a limit of its own.
func readResponse(in *input, v message.Version) (message.Response, error) {
	var typ uint64
	if v.HasTypedResponses() {
		var err error
		if typ, err = wire.ReadVarint(in); err != nil {
			return nil, err
		}
	}
	body, err := wire.ReadBody(in, maxResponse)
	if err != nil {
		if v.HasTypedResponses() && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return message.DecodeResponse(typ, body, v)
}

// accepted waits for SUBSCRIBE_OK where there is one; its contents are ignored.
func (u *upstream) accepted(in *input) error {
	if !u.s.version.HasSubscribeOK() {
		return nil
	}
	u.setDeadline(time.Now().Add(u.s.cfg.RequestTimeout))
	for {
		m, err := readResponse(in, u.s.version)
		switch {
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if _, ok := m.(message.SubscribeOK); ok {
			u.setDeadline(time.Time{})
			return nil
		}
		if err := u.apply(m); err != nil {
			return err
		}
	}
}

// setDeadline limits reading of answers, unless the subscription is over: finish has set a limit then.
func (u *upstream) setDeadline(t time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.over {
		_ = u.st.SetReadDeadline(t)
	}
}

// apply carries out one answer.
func (u *upstream) apply(m message.Response) error {
	switch m := m.(type) {
	case message.SubscribeStart:
		if err := u.setStart(m.Group); err != nil {
			return err
		}
		u.copy.Start(m.Group)
		u.knowStart()
	case message.SubscribeEnd:
		end, err := u.setEnd(m.Group)
		if err != nil {
			return err
		}
		u.copy.End(end)
	case message.SubscribeDrop:
		if m.Start > m.End {
			return fmt.Errorf("%w: inverted SUBSCRIBE_DROP", media.ErrMalformed)
		}
		u.mu.Lock()
		u.seen.add(m.Start, m.End)
		u.mu.Unlock()
		u.copy.Drop(m.Start, m.End)
	default:
		return fmt.Errorf("%w: unexpected answer", media.ErrMalformed)
	}
	return nil
}

func (u *upstream) setStart(group uint64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.started {
		return fmt.Errorf("%w: second SUBSCRIBE_START", media.ErrMalformed)
	}
	u.started, u.start = true, group
	return nil
}

// setEnd records where the track ends. At or below a group that has arrived it is a violation on 06; on 05 some old
// peers mean the last group, so it is advisory then (moq-lite 5.9).
func (u *upstream) setEnd(group uint64) (uint64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.ended:
		return 0, fmt.Errorf("%w: second SUBSCRIBE_END", media.ErrMalformed)
	case !u.begun || group > u.highest:
	case u.s.version.HasFloor():
		return 0, errPastEnd
	default:
		group = u.highest + 1
	}
	u.ended, u.end = true, group
	return group, nil
}

// admit accounts for a sequence that has arrived. It fails if the subscription is over or the sequence is at or past
// the end.
func (u *upstream) admit(sequence uint64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.admitLocked(sequence)
}

func (u *upstream) admitLocked(sequence uint64) error {
	switch {
	case u.over:
		return media.ErrCancelled
	case u.ended && sequence >= u.end:
		return errPastEnd
	}
	u.seen.add(sequence, sequence)
	if !u.begun || sequence > u.highest {
		u.highest, u.begun = sequence, true
	}
	return nil
}

// datagram passes a datagram on.
func (u *upstream) datagram(m message.Datagram) {
	if u.admit(m.Sequence) != nil {
		u.received.staleDatagrams(1, uint64(len(m.Payload)))
		return
	}
	u.received.datagram(len(m.Payload))
	u.copy.Datagram(m.Sequence, m.Timestamp, m.Payload)
	u.settle()
}

// drain waits, after the peer's FIN, for groups in flight (moq-lite 4.3): until every sequence between start and end is
// accounted for and over, or nothing has happened for a while. It returns nil if that was a clean end.
func (u *upstream) drain() error {
	u.mu.Lock()
	u.closeLocked()
	noEnd := u.s.version.HasSubscribeStartEnd() && !u.ended
	wait := u.graceLocked()
	u.mu.Unlock()
	if noEnd {
		return errNoEnd
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	progress := u.progress.Load()
	for !u.complete() {
		select {
		case <-u.settled:
		case <-timer.C:
			now := u.progress.Load()
			if now == progress || !u.isOpen() {
				return nil
			}
			progress = now
			timer.Reset(wait)
		case <-u.s.conn.Context().Done():
			if !u.s.version.HasSubscribeStartEnd() && !u.isOpen() {
				return nil // the FIN was the end, and nothing more can come
			}
			return u.s.closedError()
		}
	}
	return nil
}

// graceLocked is how long groups in flight are waited for. Where no end is announced, only what has overtaken the FIN
// inside this process can be missing.
func (u *upstream) graceLocked() time.Duration {
	if !u.s.version.HasSubscribeStartEnd() || u.sub.MaxAge == 0 {
		return grace
	}
	return min(u.sub.MaxAge, maxGrace)
}

// complete reports whether nothing more is to come.
func (u *upstream) complete() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.over:
		return true
	case u.isOpenLocked() || !u.ended:
		return false
	case !u.started: // the start precedes the first group
		return true
	}
	return u.start >= u.end || u.seen.covers(u.start, u.end-1)
}

func (u *upstream) isOpen() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.isOpenLocked()
}

func (u *upstream) isOpenLocked() bool { return len(u.groups) > 0 || u.opening > 0 }
