package qmux_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/qmux"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const protocol = "moq-lite-06"

// ways are the carriers and wire formats.
var ways = map[string]func(*testing.T, qmux.Config) (client, server *qmux.Conn){
	"webtransport": func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) { return overWebSocket(t, c, "webtransport") },
	"ws/qmux-00":   func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) { return overWebSocket(t, c, "qmux-00."+protocol) },
	"ws/qmux-01":   func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) { return overWebSocket(t, c, "qmux-01."+protocol) },
	"ws/qmux-02":   func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) { return overWebSocket(t, c, "qmux-02."+protocol) },
	"tcp":          func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) { return overStream(t, c, "tcp", "127.0.0.1:0", "") },
	"unix": func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) {
		return overStream(t, c, "unix", filepath.Join(t.TempDir(), "s"), "")
	},
	"stream/qmux-00": func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) {
		return overStream(t, c, "tcp", "127.0.0.1:0", "qmux-00."+protocol)
	},
	"stream/qmux-02": func(t *testing.T, c qmux.Config) (_, _ *qmux.Conn) {
		return overStream(t, c, "tcp", "127.0.0.1:0", "qmux-02."+protocol)
	},
}

func overStream(t *testing.T, cfg qmux.Config, network, addr, token string) (client, server *qmux.Conn) {
	t.Helper()
	l := must(net.Listen(network, addr))(t)
	defer l.Close()
	cfg.Protocols = []string{protocol, "moql"}
	accepted := make(chan *qmux.Conn, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		c, err := qmux.NewStream(context.Background(), nc, token, cfg)
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	nc := must(net.Dial(network, l.Addr().String()))(t)
	dialed := cfg
	dialed.Info.Dialed = true
	client = must(qmux.NewStream(t.Context(), nc, token, dialed))(t)
	server = <-accepted
	cleanup(t, client, server)
	return client, server
}

func overWebSocket(t *testing.T, cfg qmux.Config, token string) (client, server *qmux.Conn) {
	t.Helper()
	accepted := make(chan *qmux.Conn, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chosen, err := qmux.Choose(r, []string{protocol})
		if err != nil || !qmux.IsUpgrade(r) {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		if only, ok := strings.CutPrefix(r.URL.RawQuery, "token="); ok {
			chosen = only
		}
		c, err := qmux.Upgrade(w, r, chosen, time.Second, cfg)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}))
	t.Cleanup(srv.Close)
	u := must(url.Parse("ws" + strings.TrimPrefix(srv.URL, "http") + "/room?token=" + token))(t)
	nc := must(net.Dial("tcp", u.Host))(t)
	client = must(qmux.Connect(t.Context(), nc, u, []string{protocol}, cfg))(t)
	server = <-accepted
	cleanup(t, client, server)
	return client, server
}

func cleanup(t *testing.T, conns ...*qmux.Conn) {
	t.Cleanup(func() {
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Go(func() { c.Close(0, "") })
		}
		wg.Wait()
	})
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// Bytes in both directions, on many streams at a time, more than any window.
func TestBulk(t *testing.T) {
	small := qmux.Config{ReceiveWindow: 256 << 10, StreamReceiveWindow: 128 << 10}
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t, small)
			var wg sync.WaitGroup
			defer wg.Wait()
			for i := range 8 {
				from, to := client, server
				if i%2 == 1 {
					from, to = server, client
				}
				wg.Go(func() { send(t, from, uint64(i), 1<<20) })
				wg.Go(func() { receive(t, to, 1<<20) })
			}
		})
	}
}

func send(t *testing.T, c *qmux.Conn, seed uint64, size int) {
	s, err := c.OpenUniStream(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	sum := sha256.Sum256(b)
	for p := append(sum[:], b...); len(p) > 0; {
		n := min(len(p), 1+rng.IntN(60_000))
		if rng.IntN(2) == 0 {
			n = min(n, 100)
		}
		if _, err := s.Write(p[:n]); err != nil {
			t.Error(err)
			return
		}
		p = p[n:]
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func receive(t *testing.T, c *qmux.Conn, size int) {
	s, err := c.AcceptUniStream(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	b, err := io.ReadAll(s)
	if err != nil || len(b) != sha256.Size+size {
		t.Errorf("%d bytes, %v", len(b), err)
		return
	}
	if sum := sha256.Sum256(b[sha256.Size:]); !bytes.Equal(sum[:], b[:sha256.Size]) {
		t.Error("bytes have changed on the way")
	}
}

// A stream costs the peer's credit until it is over at both ends, and then no longer: many more can follow.
func TestManyStreams(t *testing.T) {
	for name, connect := range ways {
		t.Run(name, func(t *testing.T) {
			client, server := connect(t, qmux.Config{MaxStreams: 8})
			ctx := timeout(t)
			var wg sync.WaitGroup
			defer wg.Wait()
			const rounds = 50
			wg.Go(func() {
				for range rounds {
					s, err := server.AcceptStream(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					wg.Go(func() { _, _ = io.Copy(s, s); _ = s.Close() })
				}
			})
			for range rounds {
				s := must(client.OpenStream(ctx))(t)
				if _, err := s.Write([]byte("ping")); err != nil {
					t.Fatal(err)
				}
				_ = s.Close()
				if b, err := io.ReadAll(s); err != nil || string(b) != "ping" {
					t.Fatalf("%q, %v", b, err)
				}
			}
		})
	}
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// What a client of each kind knows of its connection.
func TestInfo(t *testing.T) {
	for name, connect := range ways {
		client, server := connect(t, qmux.Config{})
		want := protocol
		if name == "webtransport" {
			want = ""
		}
		for _, c := range []*qmux.Conn{client, server} {
			if got := c.Info(); got.Protocol != want || got.Dialed != (c == client) || got.Remote == nil {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if u := server.Info().URL; strings.Contains(name, "ws/") && (u == nil || u.Path != "/room" || u.Scheme != "ws") {
			t.Errorf("%s: URL %v", name, u)
		}
	}
}

// A server takes what it likes best of what the client offers, and refuses one that offers only what it does not know.
func TestChoose(t *testing.T) {
	for offer, want := range map[string]string{
		"":                                  "",
		"webtransport, qmux-01.moq-lite-05": "qmux-01.moq-lite-05",
		"qmux-00.moq-lite-06,qmux-02.moq-lite-05":  "qmux-00.moq-lite-06",
		"qmux-00.moq-lite-05, qmux-01.moq-lite-05": "qmux-01.moq-lite-05",
		"qmux-00, webtransport":                    "qmux-00",
		"qmux-03.moq-lite-06, chat":                "refused",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if offer != "" {
			r.Header.Set("Sec-WebSocket-Protocol", offer)
		}
		got, err := qmux.Choose(r, []string{"moq-lite-06", "moq-lite-05"})
		if errors.Is(err, qmux.ErrNoProtocol) {
			got = "refused"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", offer, got, want)
		}
	}
}

// A server that says no with a status, and one that is none.
func TestRefused(t *testing.T) {
	for status, want := range map[int]error{
		http.StatusUnauthorized: &qmux.StatusError{Status: 401},
		http.StatusOK:           qmux.ErrNotWebSocket,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		u := must(url.Parse("ws" + strings.TrimPrefix(srv.URL, "http") + "/"))(t)
		_, err := qmux.Connect(t.Context(), must(net.Dial("tcp", u.Host))(t), u, nil, qmux.Config{})
		srv.Close()
		if diff := cmp.Diff(want.Error(), err.Error()); diff != "" {
			t.Error(diff)
		}
	}
}

// Urgent data overtakes what waits.
func TestPriority(t *testing.T) {
	client, server := overStream(t, qmux.Config{}, "unix", filepath.Join(t.TempDir(), "s"), "")
	ctx := timeout(t)
	bulk := must(client.OpenUniStream(ctx))(t)
	bulk.SetPriority(7)
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		_, _ = bulk.Write(make([]byte, 64<<20))
	}()
	in := must(server.AcceptUniStream(ctx))(t)
	_ = must(io.CopyN(io.Discard, in, 1<<20))(t) // it is under way
	urgent := must(client.OpenUniStream(ctx))(t)
	urgent.SetPriority(0)
	if _, err := urgent.Write([]byte("now")); err != nil {
		t.Fatal(err)
	}
	_ = urgent.Close()
	got := must(server.AcceptUniStream(ctx))(t)
	if b, err := io.ReadAll(got); err != nil || string(b) != "now" {
		t.Fatalf("%q, %v", b, err)
	}
	select {
	case <-blocked:
		t.Error("the bulk was through before")
	default:
	}
	bulk.Reset(1)
	<-blocked
}

var _ transport.Conn = (*qmux.Conn)(nil)
