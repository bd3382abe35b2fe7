package remote_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
)

// FuzzAnswer: whatever comes back over the connection to an auth server, status line and headers included, is a grant or
// one of the three errors; and no error repeats a credential.
func FuzzAnswer(f *testing.F) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: "
	for _, raw := range []string{
		ok + "20\r\n\r\n{\"subscribe\":[\"**\"]}", ok + "5\r\n\r\n{\"subscribe\":[\"**\"]}", ok + "99\r\n\r\n{}", ok + "-1\r\n\r\n{}",
		"HTTP/1.1 403 no\r\n\r\nnot SECRET", "HTTP/1.0 500 x\r\n\r\n", "HTTP/1.1 302 x\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n{}", "HTTP/2.0 200 OK\r\n\r\n", "\x00", "",
	} {
		f.Add([]byte(raw))
	}
	answers := make(chan []byte, 16)
	socket := filepath.Join(f.TempDir(), "s") // ports of TCP would run out
	ln, err := net.Listen("unix", socket)
	if err != nil {
		f.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(5 * time.Second))
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = c.Write(<-answers)
			}
			_ = c.Close()
		}
	}()
	f.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := remote.New(remote.Config{URL: "unix://" + socket})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for len(answers) < cap(answers) { // a connection that dies at once is tried again
			answers <- raw
		}
		defer func() {
			for {
				select {
				case <-answers:
				default:
					return
				}
			}
		}()
		g, err := c.Authorize(ctx, question)
		var e *auth.Error
		switch {
		case err == nil && g.Publish.Empty() && g.Subscribe.Empty():
			t.Fatalf("a grant of nothing: %+v", g)
		case err == nil:
		case !errors.As(err, &e):
			t.Fatalf("not an error of admission: %v", err)
		case errors.Is(err, auth.ErrRefused) && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden:
			t.Fatalf("refused with status %d", e.Status)
		case strings.Contains(err.Error(), "SECRET"):
			t.Fatalf("a credential in %v", err)
		}
	})
}
