package lite

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// inbandVersions are the versions that an in-band SETUP can negotiate, in the order in which a client prefers them.
var inbandVersions = []message.Version{message.Lite02, message.Lite01}

// acceptInband answers CLIENT_SETUP on the client's first bidirectional stream (moq-lite 1.4). All parameters are
// ignored, the path included.
func (s *Session) acceptInband(ctx context.Context) error {
	accepted, err := s.conn.AcceptStream(ctx)
	if err != nil {
		return err
	}
	st := s.tally(accepted, session.ControlSession)
	defer resetOnDone(ctx, st)()
	in := newInput(st, controlBuffer)
	hello, err := message.ReadClientSetup(in)
	if err != nil {
		return inbandError(ctx, "CLIENT_SETUP", err)
	}
	v, err := s.chooseInband(hello.Versions)
	if err != nil {
		return err
	}
	b, err := message.ServerSetup{Version: v.Code()}.Append(nil, v)
	if err != nil {
		return err
	}
	if _, err := st.Write(b); err != nil {
		return err
	}
	s.setVersion(v)
	s.inband, s.inbandIn = st, in
	return nil
}

// chooseInband takes the first of the client's versions that we speak.
func (s *Session) chooseInband(codes []uint64) (message.Version, error) {
	for _, code := range codes {
		for _, v := range inbandVersions {
			if v.Code() == code && s.cfg.allows(v) {
				return v, nil
			}
		}
	}
	return 0, &violation{SessionNoVersion, fmt.Errorf("%w: offered in band %#x", ErrNoVersion, codes)}
}

// connectInband sends CLIENT_SETUP and reads the answer. A path is not sent: servers ignore it.
func (s *Session) connectInband(ctx context.Context) error {
	var hello message.ClientSetup
	for _, v := range inbandVersions {
		if s.cfg.allows(v) {
			hello.Versions = append(hello.Versions, v.Code())
		}
	}
	if len(hello.Versions) == 0 {
		return &violation{SessionNoVersion, ErrNoVersion}
	}
	b, err := hello.Append(nil, message.Lite02)
	if err != nil {
		return err
	}
	opened, err := s.conn.OpenStream(ctx)
	if err != nil {
		return err
	}
	st := s.tally(opened, session.ControlSession)
	defer resetOnDone(ctx, st)()
	if _, err := st.Write(b); err != nil {
		return err
	}
	in := newInput(st, controlBuffer)
	answer, err := message.ReadServerSetup(in)
	if err != nil {
		return inbandError(ctx, "SERVER_SETUP", err)
	}
	v, err := s.chooseInband([]uint64{answer.Version})
	if err != nil {
		return err
	}
	s.setVersion(v)
	s.inband, s.inbandIn = st, in
	return nil
}

// resetOnDone ends both halves of st when ctx ends, until the result is called.
func resetOnDone(ctx context.Context, st transport.Stream) (stop func() bool) {
	return context.AfterFunc(ctx, func() { refuse(st, StreamCancelled) })
}

// inbandError says how reading an in-band SETUP failed.
func inbandError(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if malformed(err) || errors.Is(err, io.EOF) {
		return violationf("%s: %w", what, err)
	}
	return err
}

// watchInband reads SESSION_INFO, which is ignored, until the session stream ends; this ends the session (01, 02).
func (s *Session) watchInband() {
	for {
		var info message.SessionInfo
		err := s.inbandIn.message(s.version, &info, s.cfg.Limits.RequestBytes)
		switch {
		case err == nil:
		case malformed(err):
			_ = s.fail(violationf("SESSION_INFO: %w", err))
			return
		default:
			s.Close(SessionNoError, "session stream ended")
			return
		}
	}
}
