package peertest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/transport"
)

// openUni opens a stream, writes p and accepts it at the other end.
func openUni(t *testing.T, from, to *peertest.Conn, p []byte) (transport.SendStream, transport.ReceiveStream) {
	t.Helper()
	s, err := from.OpenUniStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(p); err != nil {
		t.Fatal(err)
	}
	r, err := to.AcceptUniStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

func wantStreamError(t *testing.T, err error, code uint64, remote bool) {
	t.Helper()
	var se *transport.StreamError
	if !errors.As(err, &se) || se.Code != code || se.Remote != remote {
		t.Errorf("got %v, want stream code 0x%x, remote %v", err, code, remote)
	}
}

func TestStreamCarriesBytesUntilFIN(t *testing.T) {
	client, server := peertest.Pair(peertest.Options{Window: 10})
	want := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	s, err := client.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = s.Write(want)
		_ = s.Close()
	}()
	r, err := server.AcceptStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v; want %d", len(got), err, len(want))
	}
	if s.Context().Err() == nil {
		t.Error("context of the stream goes on after Close")
	}
	_, _ = r.Write([]byte("back"))
	_ = r.Close()
	if got, err := io.ReadAll(s); string(got) != "back" || err != nil {
		t.Errorf("answer is %q, %v", got, err)
	}
	if n, _ := client.Streams(); n != 0 {
		t.Errorf("%d streams are still open", n)
	}
}

func TestWriteWaitsForTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := peertest.Pair(peertest.Options{Window: 4})
		s, r := openUni(t, client, server, []byte("1234"))
		written := false
		go func() {
			_, _ = s.Write([]byte("5"))
			written = true
		}()
		synctest.Wait()
		if written {
			t.Fatal("a write beyond the window did not wait")
		}
		if _, err := io.ReadFull(r, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !written {
			t.Error("the write did not go on")
		}
		client.Close(0, "")
	})
}

func TestReset(t *testing.T) {
	client, server := peertest.Pair(peertest.Options{})
	s, r := openUni(t, client, server, []byte("lost"))
	_ = s.Close()
	s.Reset(7)
	_, err := r.Read(make([]byte, 1))
	wantStreamError(t, err, 7, true)
	_, err = s.Write([]byte("x"))
	wantStreamError(t, err, 7, false)
	r.Stop(1) // after the end: nothing
	_, err = r.Read(make([]byte, 1))
	wantStreamError(t, err, 7, true)
}

func TestResetAfterTheEndWasReadDoesNothing(t *testing.T) {
	client, server := peertest.Pair(peertest.Options{})
	s, r := openUni(t, client, server, []byte("kept"))
	_ = s.Close()
	if got, err := io.ReadAll(r); string(got) != "kept" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
	s.Reset(7)
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want EOF", err)
	}
}

func TestStop(t *testing.T) {
	client, server := peertest.Pair(peertest.Options{Window: 1})
	s, r := openUni(t, client, server, []byte("1"))
	writeErr := make(chan error)
	go func() {
		_, err := s.Write([]byte("2"))
		writeErr <- err
	}()
	r.Stop(0x34)
	wantStreamError(t, <-writeErr, 0x34, true)
	wantStreamError(t, context.Cause(s.Context()), 0x34, true)
	_, err := r.Read(make([]byte, 1))
	wantStreamError(t, err, 0x34, false)
	if _, n := client.Streams(); n != 0 {
		t.Errorf("%d streams are still open", n)
	}
}

func TestPeerLearnsOfStreamsInOrderAndWhenUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := peertest.Pair(peertest.Options{})
		first, _ := client.OpenUniStream(t.Context())
		second, _ := client.OpenUniStream(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := server.AcceptUniStream(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("an unused stream was accepted: %v", err)
		}
		_, _ = second.Write([]byte("2"))
		_ = second.Close()
		for i, want := range []string{"", "2"} {
			r, err := server.AcceptUniStream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				_ = first.Close()
			}
			if got, _ := io.ReadAll(r); string(got) != want {
				t.Errorf("stream %d holds %q, want %q", i, got, want)
			}
		}
	})
}

func TestStreamCredit(t *testing.T) {
	for _, tt := range []struct {
		name string
		done func(transport.Stream) // by the acceptor
		free bool
	}{
		{"nothing", func(transport.Stream) {}, false},
		{"only received", func(s transport.Stream) { s.Stop(0) }, false},
		{"only sent", func(s transport.Stream) { _ = s.Close() }, false},
		{"stopped and closed", func(s transport.Stream) { s.Stop(0); _ = s.Close() }, true},
		{"read and reset", func(s transport.Stream) { _, _ = io.ReadAll(s); s.Reset(0) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := peertest.Pair(peertest.Options{Streams: 1})
				s, err := client.OpenStream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = s.Close()
				r, err := server.AcceptStream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				tt.done(r)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = client.OpenStream(ctx)
				if free := err == nil; free != tt.free {
					t.Errorf("next stream: %v, want one: %v", err, tt.free)
				}
			})
		})
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := peertest.Pair(peertest.Options{Window: 1})
		s, r := openUni(t, client, server, []byte("1"))
		start := time.Now()
		_ = s.SetWriteDeadline(start.Add(time.Second))
		if _, err := s.Write([]byte("2")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		_, _ = r.Read(make([]byte, 1))
		_ = r.SetReadDeadline(start.Add(3 * time.Second))
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("took %v", d)
		}
		_ = s.SetWriteDeadline(time.Time{})
		if _, err := s.Write([]byte("2")); err != nil {
			t.Errorf("write after the deadline was cleared: %v", err)
		}
	})
}

func TestCloseEndsEverythingAtBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := peertest.Pair(peertest.Options{Window: 1})
		s, r := openUni(t, client, server, []byte("1"))
		errs := make(chan error, 4)
		go func() { _, err := s.Write([]byte("2")); errs <- err }()
		go func() { _, err := client.AcceptStream(t.Context()); errs <- err }()
		go func() { _, err := client.ReceiveDatagram(t.Context()); errs <- err }()
		synctest.Wait()
		server.Close(3, "enough")
		server.Close(4, "too late")
		errs <- context.Cause(s.Context())
		want := &transport.SessionError{Code: 3, Reason: "enough", Remote: true}
		for range 4 {
			err := <-errs
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("at the client: %s", diff)
			}
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%v is not net.ErrClosed", err)
			}
		}
		want.Remote = false
		_, err := r.Read(make([]byte, 1))
		if diff := cmp.Diff(want, err); diff != "" {
			t.Errorf("at the server: %s", diff)
		}
	})
}

func TestFail(t *testing.T) {
	client, server := peertest.Pair(peertest.Options{})
	cause := errors.New("idle timeout")
	client.Fail(cause)
	for _, c := range []*peertest.Conn{client, server} {
		var se *transport.SessionError
		if err := context.Cause(c.Context()); !errors.As(err, &se) || !errors.Is(se.Transport, cause) {
			t.Errorf("got %v", err)
		}
	}
}

func TestDatagrams(t *testing.T) {
	client, server := peertest.Pair(peertest.Options{DatagramSize: 3})
	p := []byte("abc")
	if err := client.SendDatagram(p); err != nil {
		t.Fatal(err)
	}
	p[0] = 'x'
	if err := client.SendDatagram([]byte("long")); !errors.Is(err, peertest.ErrDatagramTooLarge) {
		t.Errorf("got %v", err)
	}
	if got, err := server.ReceiveDatagram(t.Context()); string(got) != "abc" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for range 1000 {
		_ = client.SendDatagram(p)
	}
	none, _ := peertest.Pair(peertest.Options{DatagramSize: -1})
	if n := none.MaxDatagramSize(); n != 0 {
		t.Errorf("size without datagrams is %d", n)
	}
}
