package webtransport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	other "github.com/quic-go/webtransport-go"

	"github.com/moqmesh/moqmesh/transport"
)

// These tests talk to another implementation, webtransport-go.

func TestOtherClient(t *testing.T) {
	l := listen(t, nil)
	d := other.Transport{ApplicationProtocols: []string{"moqt-17", "moql", "moq-lite-06"}}
	defer func() { _ = d.Close() }()
	for _, byUs := range []bool{true, false} {
		// Not with Transport.Dial, which closes the connection before the session's end is sent.
		conn := must(d.NewClientConn(dialH3(t, l, quicConfig)))(t)
		_, session, err := conn.Dial(timeout(t), "https://"+l.Addr().String()+"/room", http.Header{"Origin": {"https://elsewhere.example"}})
		if err != nil {
			t.Fatal(err)
		}
		server := must(l.Accept(timeout(t)))(t)
		if got := server.Info().Protocol; got != "moql" || session.SessionState().ApplicationProtocol != got {
			t.Errorf("we have %q, the client %q", got, session.SessionState().ApplicationProtocol)
		}
		talk(t, server, session)
		end(t, server, session, byUs)
	}
}

func TestOtherServer(t *testing.T) {
	sessions := make(chan *other.Session, 1)
	for _, byUs := range []bool{true, false} {
		addr := rawServer(t, func(q *quic.Conn) {
			s := &other.Server{H3: &http3.Server{}, ApplicationProtocols: []string{"moql"}}
			s.H3.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if session, err := s.Upgrade(w, r); err == nil {
					sessions <- session
				} else {
					t.Errorf("upgrade: %v", err)
				}
			})
			_ = s.ServeQUICConn(q)
			_ = s.Close()
		})
		c := must(dial(t, addr))(t)
		if got := c.Info().Protocol; got != "moql" {
			t.Errorf("protocol %q", got)
		}
		session := <-sessions
		talk(t, c, session)
		end(t, c, session, byUs)
	}
}

// talk uses everything of a session in both directions.
func talk(t *testing.T, us transport.Conn, them *other.Session) {
	t.Helper()
	ctx := timeout(t)
	if err := us.SendDatagram([]byte("one")); err != nil {
		t.Fatal(err)
	}
	if got := must(them.ReceiveDatagram(ctx))(t); string(got) != "one" {
		t.Errorf("datagram %q", got)
	}
	if err := them.SendDatagram([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if got := must(us.ReceiveDatagram(ctx))(t); string(got) != "two" {
		t.Errorf("datagram %q", got)
	}

	ask(t, must(us.OpenStream(ctx))(t), func() io.ReadWriteCloser { return must(them.AcceptStream(ctx))(t) })
	ask(t, must(them.OpenStream())(t), func() io.ReadWriteCloser { return must(us.AcceptStream(ctx))(t) })

	out := must(us.OpenUniStream(ctx))(t)
	out.SetPriority(6)
	must(out.Write([]byte("x")))(t)
	in := must(them.AcceptUniStream(ctx))(t)
	must(in.Read(make([]byte, 1)))(t)
	out.Reset(1 << 20)
	_, err := in.Read(make([]byte, 1))
	if want := (&other.StreamError{ErrorCode: 1 << 20, Remote: true}); !errors.Is(err, want) {
		t.Errorf("they got %v", err)
	}

	back := must(them.OpenUniStream())(t)
	must(back.Write([]byte("x")))(t)
	ours := must(us.AcceptUniStream(ctx))(t)
	ours.Stop(77)
	<-back.Context().Done()
	if _, err = back.Write([]byte("y")); !errors.Is(err, &other.StreamError{ErrorCode: 77, Remote: true}) {
		t.Errorf("they got %v", err)
	}
}

func ask(t *testing.T, opened io.ReadWriteCloser, accept func() io.ReadWriteCloser) {
	t.Helper()
	must(opened.Write([]byte("question")))(t)
	_ = opened.Close()
	accepted := accept()
	question := must(io.ReadAll(accepted))(t)
	must(accepted.Write(append(question, "?"...)))(t)
	_ = accepted.Close()
	if got := string(must(io.ReadAll(opened))(t)); got != "question?" {
		t.Errorf("got %q", got)
	}
}

func end(t *testing.T, us transport.Conn, them *other.Session, byUs bool) {
	t.Helper()
	if !byUs {
		_ = them.CloseWithError(4242, "bye")
		wantEnd(t, us, transport.SessionError{Code: 4242, Reason: "bye", Remote: true})
		return
	}
	us.Close(4242, "bye")
	_, err := them.AcceptStream(context.Background())
	var got *other.SessionError
	if !errors.As(err, &got) {
		t.Fatalf("they got %v", err)
	}
	if diff := cmp.Diff(other.SessionError{Remote: true, ErrorCode: 4242, Message: "bye"}, *got); diff != "" {
		t.Errorf("they got (-want +got):\n%s", diff)
	}
}
