package admin_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/admin"
)

const sum = "aa11bb22cc33dd44ee55ff6600778899aa11bb22cc33dd44ee55ff6600778899"

// relay is a scripted relay behind the endpoints.
type relay struct {
	admit    func(admin.Request) error
	names    []string
	namesErr error
	// fetch answers a fetch; nil waits until ctx ends.
	fetch func(ctx context.Context, track string, group *uint64) (admin.Group, error)

	mu       sync.Mutex
	requests []admin.Request
	closed   []string // reasons
	lease    context.CancelFunc
}

func (r *relay) Admit(_ context.Context, req admin.Request) (admin.View, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req)
	if r.admit != nil {
		if err := r.admit(req); err != nil {
			return nil, err
		}
	}
	v := &view{relay: r}
	v.ctx, r.lease = context.WithCancel(context.Background())
	return v, nil
}

func (r *relay) reasons() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.closed...)
}

func (r *relay) endLease() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease()
}

func (r *relay) last() admin.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[len(r.requests)-1]
}

type view struct {
	relay *relay
	ctx   context.Context
}

func (v *view) Context() context.Context     { return v.ctx }
func (v *view) Announced() ([]string, error) { return v.relay.names, v.relay.namesErr }

func (v *view) Fetch(ctx context.Context, track string, group *uint64) (admin.Group, error) {
	if v.relay.fetch == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return v.relay.fetch(ctx, track, group)
}

func (v *view) Close(reason string) {
	v.relay.mu.Lock()
	defer v.relay.mu.Unlock()
	v.relay.closed = append(v.relay.closed, reason)
}

// group delivers frames, then err; io.EOF if that is nil. A nil frame waits until ctx ends.
type group struct {
	frames [][]byte
	err    error
	closed bool
}

func (g *group) Next(ctx context.Context) ([]byte, error) {
	if len(g.frames) == 0 {
		if g.err != nil {
			return nil, g.err
		}
		return nil, io.EOF
	}
	f := g.frames[0]
	if f == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	g.frames = g.frames[1:]
	return f, nil
}

func (g *group) Close() { g.closed = true }

func frames(texts ...string) *group {
	g := &group{}
	for _, s := range texts {
		g.frames = append(g.frames, []byte(s))
	}
	return g
}

func handler(r *relay) http.Handler {
	return admin.Public(admin.PublicConfig{Admit: r, Fingerprint: func() string { return sum }})
}

// do sends one request to a handler.
func do(h http.Handler, method, target string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPublicEndpoints: each row of the table of public endpoints (config.md 4).
func TestPublicEndpoints(t *testing.T) {
	refused := &admin.StatusError{Status: http.StatusUnauthorized, Err: errors.New("a token SECRET")}
	outage := &admin.StatusError{Status: http.StatusBadGateway, Err: errors.New("down")}
	found := func(context.Context, string, *uint64) (admin.Group, error) { return frames("one", "", "two"), nil }
	missing := func(context.Context, string, *uint64) (admin.Group, error) { return nil, admin.ErrNotFound }
	broken := func(context.Context, string, *uint64) (admin.Group, error) { return nil, errors.New("SECRET") }
	tests := map[string]struct {
		relay  *relay
		method string
		target string
		status int
		kind   string
		body   string
		path   string // that admission sees
		reason string // that the view is closed with
	}{
		"health":                    {target: "/health", status: 200, kind: "text/plain; charset=utf-8", body: "ok\n"},
		"health, HEAD":              {method: "HEAD", target: "/health", status: 200, kind: "text/plain; charset=utf-8", body: "ok\n"},
		"health, POST":              {method: "POST", target: "/health", status: 405},
		"health and a slash":        {target: "/health/", status: 404, kind: "text/html; charset=utf-8"},
		"certificate":               {target: "/certificate.sha256", status: 200, kind: "text/plain; charset=utf-8", body: sum},
		"announced":                 {relay: &relay{names: []string{"b", "a/x"}}, target: "/announced", status: 200, kind: "text/plain; charset=utf-8", body: "a/x\nb", path: "/", reason: "done"},
		"announced and a slash":     {relay: &relay{names: []string{"b"}}, target: "/announced/", status: 200, body: "b", path: "/", reason: "done"},
		"announced, none":           {target: "/announced", status: 200, body: "", path: "/", reason: "done"},
		"announced, prefix":         {relay: &relay{names: []string{"x"}}, target: "/announced/demo/.hidden", status: 200, body: "x", path: "/demo/.hidden", reason: "done"},
		"announced, odd slashes":    {target: "/announced//demo//x/", status: 200, path: "//demo//x/", reason: "done"},
		"announced, escapes":        {target: "/announced/a%20b", status: 200, path: "/a b", reason: "done"},
		"announced, dots":           {target: "/announced/../x/%2e%2e", status: 200, path: "/../x/..", reason: "done"},
		"announced, names of lines": {relay: &relay{names: []string{"a\nb", "c", "d\r"}}, target: "/announced", status: 200, body: "c", path: "/", reason: "done"},
		"announced, refused":        {relay: &relay{admit: func(admin.Request) error { return refused }}, target: "/announced?jwt=x", status: 401, body: "unauthorized", path: "/"},
		"announced, outage":         {relay: &relay{admit: func(admin.Request) error { return outage }}, target: "/announced", status: 502, body: "bad gateway", path: "/"},
		"announced, bug":            {relay: &relay{admit: func(admin.Request) error { return errors.New("SECRET") }}, target: "/announced", status: 500, body: "internal error", path: "/"},
		"announced, failing":        {relay: &relay{namesErr: errors.New("SECRET")}, target: "/announced", status: 500, body: "internal error", path: "/", reason: "500"},
		"announced, PUT":            {method: "PUT", target: "/announced", status: 405},
		"fetch":                     {relay: &relay{fetch: found}, target: "/fetch/room/cam/video", status: 200, kind: "application/octet-stream", body: "onetwo", path: "/room/cam", reason: "done"},
		"fetch, HEAD":               {relay: &relay{fetch: found}, method: "HEAD", target: "/fetch/room/video", status: 200, kind: "application/octet-stream", path: "/room", reason: "done"},
		"fetch, odd slashes":        {relay: &relay{fetch: found}, target: "/fetch//room//video/", status: 200, body: "onetwo", path: "/room", reason: "done"},
		"fetch, escaped slash":      {relay: &relay{fetch: found}, target: "/fetch/room%2Fcam/video", status: 200, body: "onetwo", path: "/room/cam", reason: "done"},
		"fetch, dots":               {relay: &relay{fetch: found}, target: "/fetch/../%2e%2e/etc/passwd", status: 200, body: "onetwo", path: "/../../etc", reason: "done"},
		"fetch, not found":          {relay: &relay{fetch: missing}, target: "/fetch/room/video", status: 404, body: "not found", path: "/room", reason: "404"},
		"fetch, other failure":      {relay: &relay{fetch: broken}, target: "/fetch/room/video", status: 500, body: "internal error", path: "/room", reason: "500"},
		"fetch, refused":            {relay: &relay{admit: func(admin.Request) error { return refused }}, target: "/fetch/room/video?jwt=x", status: 401, body: "unauthorized", path: "/room"},
		"fetch, outage":             {relay: &relay{admit: func(admin.Request) error { return outage }}, target: "/fetch/room/video", status: 502, body: "bad gateway", path: "/room"},
		"fetch, no broadcast":       {target: "/fetch/video", status: 400, body: ""},
		"fetch, nothing":            {target: "/fetch", status: 400, body: ""},
		"fetch, slashes only":       {target: "/fetch///", status: 400, body: ""},
		"fetch, bad group":          {target: "/fetch/room/video?group=x", status: 400, body: `group must be a number or "latest"`},
		"fetch, negative group":     {target: "/fetch/room/video?group=-1", status: 400, body: `group must be a number or "latest"`},
		"fetch, empty group":        {target: "/fetch/room/video?group=", status: 400, body: `group must be a number or "latest"`},
		"fetch, two groups":         {target: "/fetch/room/video?group=1&group=2", status: 400, body: `group must be a number or "latest"`},
		"fetch, group too large":    {target: "/fetch/room/video?group=4611686018427387904", status: 400, body: `group must be a number or "latest"`},
		"root":                      {target: "/", status: 404, kind: "text/html; charset=utf-8"},
		"elsewhere":                 {target: "/announcedx", status: 404, kind: "text/html; charset=utf-8"},
		"elsewhere, POST":           {method: "POST", target: "/x", status: 404, kind: "text/html; charset=utf-8"},
		"OPTIONS, no preflight":     {method: "OPTIONS", target: "/health", status: 405},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.relay == nil {
				tt.relay = &relay{}
			}
			method := tt.method
			if method == "" {
				method = "GET"
			}
			res := do(handler(tt.relay), method, tt.target)
			got := body(t, res)
			if res.StatusCode != tt.status {
				t.Fatalf("status %d, want %d", res.StatusCode, tt.status)
			}
			if kind := res.Header.Get("Content-Type"); tt.kind != "" && kind != tt.kind {
				t.Errorf("content type %q", kind)
			}
			if got != tt.body && tt.kind != "text/html; charset=utf-8" && tt.status != 405 {
				t.Errorf("body %q, want %q", got, tt.body)
			}
			if tt.kind == "text/html; charset=utf-8" && !strings.Contains(got, "relay") {
				t.Errorf("page %q", got)
			}
			if origin := res.Header.Get("Access-Control-Allow-Origin"); (origin == "*") != (method == "GET" || method == "HEAD") {
				t.Errorf("allowed origin %q", origin)
			}
			if tt.path == "" && len(tt.relay.requests) != 0 || tt.path != "" && (len(tt.relay.requests) != 1 || tt.relay.last().Path != tt.path) {
				t.Errorf("admission saw %+v, want path %q", tt.relay.requests, tt.path)
			}
			want := []string{tt.reason}
			if tt.reason == "" {
				want = nil
			}
			if diff := cmp.Diff(want, tt.relay.reasons()); diff != "" {
				t.Errorf("reasons: %s", diff)
			}
		})
	}
}

func TestFetchAsksForTheGroup(t *testing.T) {
	for query, want := range map[string]int64{"": -1, "?group=latest": -1, "?jwt=x&group=latest": -1, "?group=0": 0, "?group=7&x": 7, "?group=4611686018427387903": 1<<62 - 1} {
		var track string
		got := int64(-2)
		r := &relay{fetch: func(_ context.Context, name string, g *uint64) (admin.Group, error) {
			if track, got = name, -1; g != nil {
				got = int64(*g)
			}
			return frames("x"), nil
		}}
		if res := do(handler(r), "GET", "/fetch/room/video"+query); res.StatusCode != 200 || track != "video" || got != want {
			t.Errorf("%q: status %d, track %q, group %d, want %d", query, res.StatusCode, track, got, want)
		}
	}
}

func TestNoCertificate(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"none":     admin.Public(admin.PublicConfig{Fingerprint: func() string { return "" }}),
		"no store": admin.Public(admin.PublicConfig{}),
	} {
		if res := do(h, "GET", "/certificate.sha256"); res.StatusCode != 404 || body(t, res) != "no certificate" {
			t.Errorf("%s: status %d", name, res.StatusCode)
		}
	}
}

func TestPreflight(t *testing.T) {
	for _, target := range []string{"/health", "/announced/x", "/fetch/a/b", "/anything"} {
		res := do(handler(&relay{}), "OPTIONS", target, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-a, x-b")
		want := http.Header{"Access-Control-Allow-Origin": {"*"}, "Access-Control-Allow-Methods": {"GET"}, "Access-Control-Allow-Headers": {"x-a, x-b"}}
		if diff := cmp.Diff(want, res.Header); diff != "" || res.StatusCode != 200 || body(t, res) != "" {
			t.Errorf("%s: status %d %s", target, res.StatusCode, diff)
		}
	}
	res := do(handler(&relay{}), "OPTIONS", "/fetch/a/b", "Access-Control-Request-Method", "PUT")
	if res.StatusCode == 200 || res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("PUT is allowed: %d %v", res.StatusCode, res.Header)
	}
}

// TestAdmissionSees: what is known of a request reaches admission.
func TestAdmissionSees(t *testing.T) {
	r := &relay{}
	req := httptest.NewRequest("GET", "/announced/room?jwt=x&y", nil)
	req.Host, req.RemoteAddr = "Relay.Example:8443", "192.0.2.1:9"
	req.TLS = &tls.ConnectionState{NegotiatedProtocol: "h2"}
	req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 443})))
	handler(r).ServeHTTP(httptest.NewRecorder(), req)
	want := admin.Request{Path: "/room", Query: "jwt=x&y", Remote: "192.0.2.1:9", Local: "192.0.2.2:443", ServerName: "relay.example", ALPN: "h2"}
	if diff := cmp.Diff(want, r.last()); diff != "" {
		t.Error(diff)
	}
	for host, want := range map[string]string{"A": "a", "[::1]:80": "::1", "[::1]": "::1", "": ""} {
		req := httptest.NewRequest("GET", "/announced", nil)
		req.Host = host
		handler(r).ServeHTTP(httptest.NewRecorder(), req)
		if got := r.last().ServerName; got != want {
			t.Errorf("host %q: server name %q", host, got)
		}
	}
}

// TestFetchTimeout: broadcast and group are waited for together, 30 s at most.
func TestFetchTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &relay{}
		start := time.Now()
		res := do(handler(r), "GET", "/fetch/room/video")
		if res.StatusCode != 504 || time.Since(start) != 30*time.Second {
			t.Errorf("status %d after %v", res.StatusCode, time.Since(start))
		}
		if diff := cmp.Diff([]string{"timeout"}, r.reasons()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestFetchOutlivesTheTimeout: once the group is there it is streamed for as long as it lasts.
func TestFetchOutlivesTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan []byte)
		r := &relay{fetch: func(context.Context, string, *uint64) (admin.Group, error) { return channelGroup(slow), nil }}
		go func() {
			for range 3 {
				time.Sleep(29 * time.Second)
				slow <- []byte("x")
			}
			close(slow)
		}()
		if res := do(handler(r), "GET", "/fetch/room/video"); res.StatusCode != 200 || body(t, res) != "xxx" {
			t.Errorf("status %d", res.StatusCode)
		}
	})
}

// channelGroup delivers what comes through a channel.
type channelGroup chan []byte

func (g channelGroup) Next(ctx context.Context) ([]byte, error) {
	select {
	case f, ok := <-g:
		if !ok {
			return nil, io.EOF
		}
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g channelGroup) Close() {}

// TestFetchStreams over a real connection: each frame arrives before the next one is there.
func TestFetchStreams(t *testing.T) {
	next := make(chan []byte)
	r := &relay{fetch: func(context.Context, string, *uint64) (admin.Group, error) { return channelGroup(next), nil }}
	res := get(t, serve(t, handler(r)), "/fetch/room/video")
	in := bufio.NewReader(res.Body)
	for _, frame := range []string{"first", "second"} {
		next <- []byte(frame)
		got := make([]byte, len(frame))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != frame {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	close(next)
	if rest, err := io.ReadAll(in); err != nil || len(rest) != 0 {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// TestFetchThatFailsIsNotComplete: a group or lease that ends early cuts the body, so that nobody takes it for whole.
func TestFetchThatFailsIsNotComplete(t *testing.T) {
	for name, tt := range map[string]struct {
		group  *group
		end    func(*relay)
		reason string
	}{
		"group aborted": {&group{frames: [][]byte{[]byte("first")}, err: errors.New("evicted")}, func(*relay) {}, "aborted"},
		"lease ended":   {&group{frames: [][]byte{[]byte("first"), nil}}, (*relay).endLease, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &relay{fetch: func(context.Context, string, *uint64) (admin.Group, error) { return tt.group, nil }}
			server := serve(t, handler(r))
			res := get(t, server, "/fetch/room/video")
			first := make([]byte, len("first"))
			if _, err := io.ReadFull(res.Body, first); err != nil {
				t.Fatal(err)
			}
			tt.end(r)
			if rest, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("the body ended cleanly with %q", rest)
			}
			server.Close() // waits for the handler
			if diff := cmp.Diff([]string{tt.reason}, r.reasons()); diff != "" || !tt.group.closed {
				t.Errorf("group closed %v: %s", tt.group.closed, diff)
			}
		})
	}
}

// TestLeaseEndsWhileWaiting: nothing is served any more.
func TestLeaseEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &relay{}
		time.AfterFunc(5*time.Second, r.endLease)
		start := time.Now()
		if res := do(handler(r), "GET", "/fetch/room/video"); res.StatusCode != 503 || time.Since(start) != 5*time.Second {
			t.Errorf("status %d after %v", res.StatusCode, time.Since(start))
		}
	})
}

// TestClientLeaves: a request ends with its client, waiting or streaming.
func TestClientLeaves(t *testing.T) {
	for name, fetch := range map[string]func(context.Context, string, *uint64) (admin.Group, error){
		"waiting":   nil,
		"streaming": func(context.Context, string, *uint64) (admin.Group, error) { return &group{frames: [][]byte{nil}}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &relay{fetch: fetch}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(3*time.Second, cancel)
				var log strings.Builder
				public := admin.Public(admin.PublicConfig{
					Admit: r, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo})),
				})
				func() {
					defer func() { _ = recover() }() // http.ErrAbortHandler
					public.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/fetch/room/video", nil).WithContext(ctx))
				}()
				if got := r.reasons(); len(got) != 1 || got[0] == "done" {
					t.Errorf("reasons %v", got)
				}
				if log.Len() > 0 {
					t.Errorf("logged: %s", &log)
				}
			})
		})
	}
}

// TestSlowClientIsCut: a client that reads nothing holds a group for the time of the timeout only.
func TestSlowClientIsCut(t *testing.T) {
	closed := make(chan struct{})
	endless := &endlessGroup{closed: closed}
	r := &relay{fetch: func(context.Context, string, *uint64) (admin.Group, error) { return endless, nil }}
	server := serve(t, admin.Public(admin.PublicConfig{Admit: r, FetchTimeout: 200 * time.Millisecond}))
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET /fetch/room/video HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("the group is still held")
	}
}

type endlessGroup struct {
	closed chan struct{}
}

var chunk = make([]byte, 64<<10)

func (g *endlessGroup) Next(context.Context) ([]byte, error) { return chunk, nil }
func (g *endlessGroup) Close()                               { close(g.closed) }

// TestServerLimits: headers must come in time and in moderation.
func TestServerLimits(t *testing.T) {
	s := admin.Server(handler(&relay{}), 100*time.Millisecond)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ln)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	for name, text := range map[string]string{
		"slow":  "GET /health HTTP/1.1\r\nHost: x\r\nX: ",
		"large": "GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = io.WriteString(conn, text) // the large one may be refused while it is written
		answer, err := io.ReadAll(conn)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() || strings.Contains(string(answer), "200 OK") {
			t.Errorf("%s: answer %q, %v", name, answer, err)
		}
		_ = conn.Close()
	}
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, s *httptest.Server, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
