package lite_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// FuzzSession sends anything on streams of both kinds and as a datagram, to a session that serves a track and subscribes
// to one. It must neither panic nor hang, and end the session only with a code that says why: a violation, or the end of
// what the fuzzer was given as the ANNOUNCE and session streams of the session.
func FuzzSession(f *testing.F) {
	for v := message.Lite01; v <= message.Lite06; v++ {
		for typ, m := range requests(v) {
			b, err := m.Append(typ.Append(nil), v)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(v), b, []byte{0, 2, 0, 1, 1, 'x'}, []byte{0, 1, 2, 'x'}, []byte{0, 1, 7})
		}
	}
	f.Fuzz(func(t *testing.T, version uint8, bidi, uni, datagram, answer []byte) {
		v := message.Version(version%uint8(message.Lite06) + 1)
		if len(bidi)+len(uni)+len(answer) > 4096 {
			return // windows of the test connection
		}
		synctest.Test(t, func(t *testing.T) { fuzzSession(t, v, bidi, uni, datagram, answer) })
	})
}

func fuzzSession(t *testing.T, v message.Version, bidi, uni, datagram, answer []byte) {
	p := newPair(t, v, options{})
	p.server.run(t, []string{""})
	track := p.publish(p.server, "video", media.DefaultInfo())
	track.add(t, 0, "a", "b")
	// The client session is only the handshake: its connection is the fuzzer's.
	conn := p.client.conn
	local := p.cache.NewTrack(media.DefaultInfo())
	copied := local.NewCopy(nil)
	sub, err := p.server.Subscribe(t.Context(), session.SubscribeRequest{Path: room, Track: "theirs", Info: media.DefaultInfo()}, copied)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // ANNOUNCE and SUBSCRIBE of the session
		if st, err := conn.AcceptStream(t.Context()); err == nil {
			write(st, answer)
		}
	}
	if st, err := conn.OpenStream(t.Context()); err == nil {
		write(st, bidi)
	}
	if st, err := conn.OpenUniStream(t.Context()); err == nil {
		write(st, uni)
	}
	if len(datagram) <= peertest.DefaultDatagramSize {
		_ = conn.SendDatagram(datagram)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	if ended, ok := howEnded(conn); ok && ended.Code != lite.SessionViolation && ended.Code != lite.SessionInternal {
		t.Errorf("the session ended with %v", ended)
	}
	conn.Close(0, "")
	<-sub.Done()
	copied.Close()
	if err := <-p.server.ended; err == nil {
		t.Error("Run does not say how the session ended")
	}
}

// write writes b and finishes the stream.
func write(st transport.SendStream, b []byte) {
	_, _ = st.Write(b)
	_ = st.Close()
}

func howEnded(conn *peertest.Conn) (*transport.SessionError, bool) {
	select {
	case <-conn.Context().Done():
	default:
		return nil, false
	}
	_, err := conn.AcceptStream(conn.Context())
	ended, ok := err.(*transport.SessionError) //nolint:errorlint // as the interface says
	return ended, ok
}
