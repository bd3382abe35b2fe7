package lite

import (
	"context"
	"time"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
)

// Goaway asks the peer to leave and connect to uri, or to where it is connected now if that is empty. It does not
// block; only the first call counts, and before 04 there is no such message. uri may hold credentials and is not logged.
func (s *Session) Goaway(uri string) {
	if !s.version.HasGoaway() || s.goaway.Swap(true) {
		return
	}
	s.spawn(func() {
		if err := s.sendGoaway(uri); err != nil {
			s.log.Debug("GOAWAY not sent", "cause", err)
		}
	})
}

func (s *Session) sendGoaway(uri string) error {
	b, err := message.Goaway{URI: uri}.Append(message.StreamGoaway.Append(nil), s.version)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.conn.Context(), s.cfg.RequestTimeout)
	defer cancel()
	st, err := s.conn.OpenStream(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { refuse(st, StreamCancelled) })()
	if _, err := s.tally(st, session.ControlGoaway).Write(b); err != nil {
		return err
	}
	if err := st.Close(); err != nil {
		return err
	}
	_, _ = st.Read(make([]byte, 1)) // the peer drops its side
	st.Stop(StreamCancelled)
	return nil
}

// serveGoaway passes on that the peer wants to leave. We open no requests on the session from then on; what runs goes
// on. A second GOAWAY stream ends the session; one that cannot be decoded is ignored.
func (s *Session) serveGoaway(r *request) {
	s.mu.Lock()
	second := s.gotGoaway
	s.gotGoaway = true
	s.mu.Unlock()
	if second {
		_ = s.fail(violationf("second GOAWAY stream"))
		return
	}
	var m message.Goaway
	if !r.read(&m) {
		return
	}
	s.leaving.Store(true)
	s.handler.Goaway(m.URI)
	_ = r.Close()
	_ = r.SetReadDeadline(time.Now().Add(grace))
	_, _ = r.in.ReadByte()
	r.Stop(StreamInternal)
}
