package endpoint_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/transport"
)

func TestStreams(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		client, server := w.pair(t)
		exchange(t, client, server)
		exchange(t, server, client)
	})
}

// exchange uses one stream of each kind from its opening to FINs on all sides.
func exchange(t *testing.T, opener, accepter transport.Conn) {
	t.Helper()
	ctx := timeout(t)
	bidi := must(opener.OpenStream(ctx))(t)
	write(t, bidi, "request")
	peer := must(accepter.AcceptStream(ctx))(t)
	read(t, peer, "request")
	write(t, peer, "answer")
	if err := peer.Close(); err != nil {
		t.Fatal(err)
	}
	read(t, bidi, "answer")
	if err := bidi.Close(); err != nil {
		t.Fatal(err)
	}
	wantEOF(t, bidi)
	wantEOF(t, peer)

	uni := must(opener.OpenUniStream(ctx))(t)
	write(t, uni, "group")
	in := must(accepter.AcceptUniStream(ctx))(t)
	read(t, in, "group")
	if err := uni.Close(); err != nil {
		t.Fatal(err)
	}
	wantEOF(t, in)
}

func wantEOF(t *testing.T, r io.Reader) {
	t.Helper()
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Fatalf("want the end of the stream, got %q, %v", b, err)
	}
}

func TestStreamCodes(t *testing.T) {
	codes := []uint64{0, 1, 0x1d, 0x1e, 0x33, 64 + 65535, 1<<32 - 1}
	carriers(t, func(t *testing.T, w *world) {
		client, server := w.pair(t)
		ctx := timeout(t)
		for _, code := range codes {
			out := must(client.OpenUniStream(ctx))(t)
			write(t, out, "x")
			in := must(server.AcceptUniStream(ctx))(t)
			read(t, in, "x")
			out.Reset(code)
			_, err := in.Read(make([]byte, 1))
			wantStreamError(t, err, transport.StreamError{Code: code, Remote: true})

			out = must(server.OpenUniStream(ctx))(t)
			write(t, out, "x")
			in = must(client.AcceptUniStream(ctx))(t)
			in.Stop(code)
			want := transport.StreamError{Code: code, Remote: true}
			<-out.Context().Done()
			wantStreamError(t, context.Cause(out.Context()), want)
			_, err = out.Write([]byte("more"))
			wantStreamError(t, err, want)
			wantStreamError(t, out.Close(), want)

			both := must(client.OpenStream(ctx))(t)
			write(t, both, "x")
			peer := must(server.AcceptStream(ctx))(t)
			both.Reset(code)
			both.Stop(code + 1)
			for err == nil {
				_, err = peer.Read(make([]byte, 10))
			}
			<-peer.Context().Done()
			wantStreamError(t, context.Cause(peer.Context()),
				transport.StreamError{Code: min(code+1, 1<<32-1), Remote: true})
			peer.Reset(0)
		}
	})
}

func wantStreamError(t *testing.T, err error, want transport.StreamError) {
	t.Helper()
	var got *transport.StreamError
	if !errors.As(err, &got) {
		t.Fatalf("got %v (%T), want a stream error", err, err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Fatalf("stream error (-want +got):\n%s", diff)
	}
}

// The context of a stream says how it ended, whatever ended it, and derived contexts follow.
func TestStreamContext(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		client, server := w.pair(t)
		ctx := timeout(t)

		closed := must(client.OpenUniStream(ctx))(t)
		if err := closed.Context().Err(); err != nil {
			t.Fatalf("open stream: %v", err)
		}
		write(t, closed, "x")
		_ = closed.Close()
		if err := context.Cause(closed.Context()); !errors.Is(err, context.Canceled) {
			t.Fatalf("closed stream: %v", err)
		}

		reset := must(client.OpenUniStream(ctx))(t)
		reset.Reset(5)
		wantStreamError(t, context.Cause(reset.Context()), transport.StreamError{Code: 5})

		stopped := must(client.OpenUniStream(ctx))(t)
		write(t, stopped, "y")
		derived, cancel := context.WithTimeout(stopped.Context(), time.Hour)
		defer cancel()
		for range 3 { // the reset one arrives too
			in := must(server.AcceptUniStream(ctx))(t)
			if b, _ := io.ReadAll(io.LimitReader(in, 1)); string(b) == "y" {
				in.Stop(7)
			}
		}
		<-derived.Done()
		wantStreamError(t, context.Cause(derived), transport.StreamError{Code: 7, Remote: true})

		lost := must(client.OpenUniStream(ctx))(t)
		write(t, lost, "z")
		server.Close(3, "bye")
		<-lost.Context().Done()
		cause := context.Cause(lost.Context())
		var gone *transport.StreamError
		if errors.As(cause, &gone) && w.scheme == "https" {
			// The peer stopped the stream for the same reason, which was faster.
			wantStreamError(t, cause, transport.StreamError{Code: 0x170d7b68, Remote: true, Unmapped: true})
		} else {
			wantSessionEnd(t, cause, transport.SessionError{Code: 3, Reason: "bye", Remote: true})
		}
		_, err := lost.Write([]byte("z"))
		wantSessionEnd(t, err, transport.SessionError{Code: 3, Reason: "bye", Remote: true})
	})
}

func wantSessionEnd(t *testing.T, err error, want transport.SessionError) {
	t.Helper()
	var got *transport.SessionError
	if !errors.As(err, &got) {
		t.Fatalf("got %v (%T), want a session error", err, err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Fatalf("session error (-want +got):\n%s", diff)
	}
	if !errors.Is(err, net.ErrClosed) {
		t.Fatalf("%v is not net.ErrClosed", err)
	}
}

// A close reaches everything that waits on either end, with its code and reason.
func TestClose(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l, d := w.listen(t, s, nil), w.dialer(t, s, nil)
		client, server := w.connect(t, d, l, w.target(t, l))
		closeReaches(t, client, server, w.Network != nil)
		client, server = w.connect(t, d, l, w.target(t, l))
		closeReaches(t, server, client, w.Network != nil)
	})
}

func closeReaches(t *testing.T, closer, other transport.Conn, virtual bool) {
	t.Helper()
	ctx := timeout(t)
	var ours, theirs [2]transport.Stream // one to read from, one to fill
	for i := range ours {
		theirs[i] = must(other.OpenStream(ctx))(t)
		write(t, theirs[i], "x")
		ours[i] = must(closer.AcceptStream(ctx))(t)
		read(t, ours[i], "x")
	}
	local, remote := blocked(ctx, closer, ours), blocked(ctx, other, theirs)

	start := time.Now()
	closer.Close(4242, "gone fishing")
	// It waits for half a second where nobody answers. On a busy machine an answer may take longer.
	if took := time.Since(start); virtual && took > 400*time.Millisecond {
		t.Errorf("close took %v though the peer answers", took)
	}
	closer.Close(1, "ignored")

	mine := transport.SessionError{Code: 4242, Reason: "gone fishing"}
	told := mine
	told.Remote = true
	<-other.Context().Done()
	wantSessionEnd(t, context.Cause(closer.Context()), mine)
	wantSessionEnd(t, context.Cause(other.Context()), told)
	for range cap(local) {
		wantSessionEnd(t, <-local, mine)
		wantSessionEnd(t, <-remote, told)
	}
	afterClose(t, closer, mine)
	afterClose(t, other, told)
}

// TestResetsOfTheEnd has a user who gives up its streams when the session has ended: the peer must not take that for what
// happened.
func TestResetsOfTheEnd(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		client, server := w.pair(t)
		ctx := timeout(t)
		const streams = 100
		ends := make(chan error, streams)
		for range streams {
			out := must(client.OpenStream(ctx))(t)
			write(t, out, "x")
			in := must(server.AcceptStream(ctx))(t)
			read(t, in, "x")
			context.AfterFunc(client.Context(), func() { out.Reset(1); out.Stop(1) })
			go func() {
				_, err := in.Read(make([]byte, 1))
				ends <- err
			}()
		}
		client.Close(5, "over")
		for range streams {
			wantSessionEnd(t, <-ends, transport.SessionError{Code: 5, Reason: "over", Remote: true})
		}
	})
}

// blocked starts every call that can wait for the peer and yields their errors.
func blocked(ctx context.Context, c transport.Conn, s [2]transport.Stream) <-chan error {
	calls := []func() error{
		func() error { _, err := c.AcceptStream(ctx); return err },
		func() error { _, err := c.AcceptUniStream(ctx); return err },
		func() error { _, err := c.ReceiveDatagram(ctx); return err },
		func() error { _, err := s[0].Read(make([]byte, 1)); return err },
		func() error {
			p := make([]byte, 1<<20)
			for {
				if _, err := s[1].Write(p); err != nil {
					return err
				}
			}
		},
	}
	errs := make(chan error, len(calls))
	for _, call := range calls {
		go func() { errs <- call() }()
	}
	return errs
}

func afterClose(t *testing.T, c transport.Conn, want transport.SessionError) {
	t.Helper()
	ctx := timeout(t)
	_, err := c.OpenStream(ctx)
	wantSessionEnd(t, err, want)
	_, err = c.OpenUniStream(ctx)
	wantSessionEnd(t, err, want)
	_, err = c.AcceptStream(ctx)
	wantSessionEnd(t, err, want)
	wantSessionEnd(t, c.SendDatagram([]byte("x")), want)
}

func TestDatagrams(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		client, server := w.pair(t)
		ctx := timeout(t)
		for _, ends := range [][2]transport.Conn{{client, server}, {server, client}} {
			from, to := ends[0], ends[1]
			if err := from.SendDatagram([]byte("small")); err != nil {
				t.Fatal(err)
			}
			if got := must(to.ReceiveDatagram(ctx))(t); string(got) != "small" {
				t.Fatalf("got %q", got)
			}
			size := from.MaxDatagramSize()
			if tcp := w.overTCP(); size < 1150 || !tcp && size > 1500 || tcp && size < 16_000 {
				t.Fatalf("largest datagram: %d bytes", size)
			}
			if err := from.SendDatagram(make([]byte, size)); err != nil {
				t.Fatalf("largest datagram: %v", err)
			}
			if got := must(to.ReceiveDatagram(ctx))(t); len(got) != size {
				t.Fatalf("largest datagram: %d of %d bytes arrived", len(got), size)
			}
			if err := from.SendDatagram(make([]byte, max(1500, size+1))); !errors.Is(err, transport.ErrDatagramTooLarge) {
				t.Fatalf("too large: %v", err)
			}
		}
		ended, cancel := context.WithCancelCause(ctx)
		cancel(io.ErrNoProgress)
		if _, err := client.ReceiveDatagram(ended); !errors.Is(err, io.ErrNoProgress) {
			t.Fatalf("with an ended context: %v", err)
		}
	})
}

func TestInfo(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l, d := w.listen(t, s, nil), w.dialer(t, s, nil)
		_, port, _ := net.SplitHostPort(w.at(l))
		host := net.JoinHostPort("localhost", port)
		client, server := w.connect(t, d, l, target(t, w.scheme+"://user@"+host+"/a/b%2Fc?jwt=x#frag"))

		kind, url := transport.KindQUIC, ""
		switch w.scheme {
		case "https":
			kind, url = transport.KindWebTransport, "https://"+host+"/a/b%2Fc?jwt=x"
		case "ws", "wss":
			kind, url = transport.KindWebSocket, w.scheme+"://"+host+"/a/b%2Fc?jwt=x"
		}
		name := "localhost"
		if w.scheme == "ws" {
			name = ""
		}
		for _, c := range []transport.Conn{client, server} {
			info := c.Info()
			got := ""
			if info.URL != nil {
				got = info.URL.String()
			}
			if info.Kind != kind || got != url || info.Protocol != tokens[0] || info.ServerName != name {
				t.Errorf("%+v, URL %q", info, got)
			}
			if info.Dialed != (c == client) || (len(info.PeerCertificates) > 0) != (c == client && w.scheme != "ws") {
				t.Errorf("dialed %v with %d certificates", info.Dialed, len(info.PeerCertificates))
			}
		}
		if client.Info().Local.String() != server.Info().Remote.String() {
			t.Errorf("addresses: %v, %v", client.Info().Local, server.Info().Remote)
		}
		exchange(t, client, server)
		stats := client.Stats()
		if stats.PacketsSent == 0 || stats.BytesReceived == 0 || stats.RTT == 0 || stats.CongestionWindow == 0 {
			t.Errorf("stats: %+v", stats)
		}
	})
}

// Deadlines and contexts stay what they are; they do not look like an end of the session.
func TestWaitsEnd(t *testing.T) {
	carriers(t, func(t *testing.T, w *world) {
		client, server := w.pair(t)
		str := must(client.OpenStream(timeout(t)))(t)
		write(t, str, "x")
		_ = str.SetReadDeadline(time.Now())
		_ = str.SetWriteDeadline(time.Now().Add(-time.Second))
		_, err := str.Read(make([]byte, 1))
		var timeoutErr net.Error
		if !errors.As(err, &timeoutErr) || !timeoutErr.Timeout() || errors.Is(err, net.ErrClosed) {
			t.Errorf("read after deadline: %v", err)
		}
		if _, err = str.Write([]byte("y")); !errors.As(err, &timeoutErr) || !timeoutErr.Timeout() {
			t.Errorf("write after deadline: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := server.AcceptUniStream(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("accept: %v", err)
		}
	})
}
