package httpcache_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/httpcache"
)

// server answers in virtual time, without a network.
type server struct {
	status   int
	header   http.Header
	body     string
	requests []string // "GET", with the conditions it carried
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	line := r.Method
	for _, name := range []string{"If-None-Match", "If-Modified-Since"} {
		if v := r.Header.Get(name); v != "" {
			line += " " + v
		}
	}
	s.requests = append(s.requests, line)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	h := s.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	status := s.status
	if tag := h.Get("ETag"); status == 200 && tag != "" && r.Header.Get("If-None-Match") == tag {
		status = 304
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

func (s *server) resource() *httpcache.Resource {
	return httpcache.New(httpcache.Config{URL: "http://api.example/list?secret=S3CRET", Client: &http.Client{Transport: s}})
}

// TestFreshness: how often a URL that is looked at every 30 s for ten minutes is really asked.
func TestFreshness(t *testing.T) {
	const checks = 20 // at 0, 30, … 570 s
	date := func(d time.Duration) string {
		// The clock of a bubble starts here.
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(http.TimeFormat)
	}
	tests := map[string]struct {
		header http.Header
		want   int
	}{
		"no header":               {nil, checks},
		"max-age 60":              {http.Header{"Cache-Control": {"max-age=60"}}, 10},
		"max-age 45 rounds up":    {http.Header{"Cache-Control": {"max-age=45"}}, 10},
		"quoted, upper case":      {http.Header{"Cache-Control": {`Public , MAX-AGE="60"`}}, 10},
		"two headers":             {http.Header{"Cache-Control": {"public", "max-age=60"}}, 10},
		"first of two":            {http.Header{"Cache-Control": {"max-age=60, max-age=0"}}, 10},
		"max-age 0":               {http.Header{"Cache-Control": {"max-age=0"}}, checks},
		"negative":                {http.Header{"Cache-Control": {"max-age=-5"}}, checks},
		"not a number":            {http.Header{"Cache-Control": {"max-age=abc"}}, checks},
		"empty":                   {http.Header{"Cache-Control": {"max-age="}}, checks},
		"no-cache":                {http.Header{"Cache-Control": {"no-cache, max-age=60"}}, checks},
		"no-store":                {http.Header{"Cache-Control": {"no-store, max-age=60"}}, checks},
		"vary everything":         {http.Header{"Cache-Control": {"max-age=60"}, "Vary": {"*"}}, checks},
		"pragma":                  {http.Header{"Pragma": {"no-cache"}, "Expires": {date(time.Hour)}}, checks},
		"age counts":              {http.Header{"Cache-Control": {"max-age=60"}, "Age": {"31"}}, checks},
		"expires":                 {http.Header{"Expires": {date(121 * time.Second)}}, 16}, // fresh for four checks, then past
		"expires in the past":     {http.Header{"Expires": {"Thu, 01 Jan 1970 00:00:00 GMT"}}, checks},
		"expires is no date":      {http.Header{"Expires": {"0"}}, checks},
		"max-age before expires":  {http.Header{"Cache-Control": {"max-age=60"}, "Expires": {"0"}}, 10},
		"overflow is one hour":    {http.Header{"Cache-Control": {"max-age=99999999999999999999"}}, 1},
		"s-maxage is for proxies": {http.Header{"Cache-Control": {"s-maxage=600"}}, checks},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{status: 200, header: tt.header, body: "[]"}
				r := s.resource()
				for range checks {
					if b, err := r.Get(t.Context()); err != nil || string(b) != "[]" {
						t.Fatal(string(b), err)
					}
					time.Sleep(30 * time.Second)
				}
				if len(s.requests) != tt.want {
					t.Errorf("%d requests, want %d", len(s.requests), tt.want)
				}
			})
		})
	}
}

// TestAgeIsCapped: no lifetime keeps us from asking once an hour.
func TestAgeIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: 200, header: http.Header{"Cache-Control": {"max-age=31536000"}}}
		r := s.resource()
		for range 4 * 120 {
			_, _ = r.Get(t.Context())
			time.Sleep(30 * time.Second)
		}
		if len(s.requests) != 4 {
			t.Errorf("%d requests in four hours", len(s.requests))
		}
	})
}

// TestConditional: stale responses are asked for with their validators, a 304 gives the stored body and its freshness.
func TestConditional(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: 200, body: "[1]", header: http.Header{"Etag": {`"a"`}, "Last-Modified": {"Sat, 01 Jan 2000 00:00:00 GMT"}}}
		r := s.resource()
		get := func(want string) {
			t.Helper()
			if b, err := r.Get(t.Context()); err != nil || string(b) != want {
				t.Errorf("got %q, %v", b, err)
			}
		}
		get("[1]")
		get("[1]") // 304
		s.header.Set("Cache-Control", "max-age=60")
		get("[1]") // 304 with a lifetime
		get("[1]") // no request
		time.Sleep(61 * time.Second)
		s.header.Set("Etag", `"b"`)
		s.body = "[2]"
		get("[2]")
		r.Forget()
		get("[2]") // unconditional
		cond := `GET "a" Sat, 01 Jan 2000 00:00:00 GMT`
		if diff := cmp.Diff([]string{"GET", cond, cond, cond, "GET"}, s.requests); diff != "" {
			t.Error(diff)
		}
	})
}

// TestNotStoredIsNotConditional: no-store leaves no validators behind.
func TestNotStoredIsNotConditional(t *testing.T) {
	s := &server{status: 200, header: http.Header{"Etag": {`"a"`}, "Cache-Control": {"no-store"}}}
	r := s.resource()
	_, _ = r.Get(t.Context())
	_, _ = r.Get(t.Context())
	if diff := cmp.Diff([]string{"GET", "GET"}, s.requests); diff != "" {
		t.Error(diff)
	}
	s.status = 304
	if _, err := r.Get(t.Context()); !errors.Is(err, httpcache.ErrNoStored) {
		t.Errorf("304 out of nowhere: %v", err)
	}
}

// TestRetryAfter: a server that asks for patience gets it, for five minutes at most, and only with 429 and 503.
func TestRetryAfter(t *testing.T) {
	tests := map[string]struct {
		status int
		value  string
		quiet  time.Duration
	}{
		"429":           {429, "60", time.Minute},
		"503":           {503, "60", time.Minute},
		"date":          {503, "Sat, 01 Jan 2000 00:02:00 GMT", 2 * time.Minute},
		"capped":        {429, "3600", 5 * time.Minute},
		"overflow":      {429, "99999999999999999999", 5 * time.Minute},
		"negative":      {429, "-60", 0},
		"past date":     {429, "Thu, 01 Jan 1970 00:00:00 GMT", 0},
		"rubbish":       {429, "soon", 0},
		"absent":        {429, "", 0},
		"other failure": {500, "60", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{status: tt.status, header: http.Header{"Retry-After": {tt.value}}}
				r := s.resource()
				start := time.Now()
				for len(s.requests) < 2 {
					var failed *httpcache.StatusError
					if _, err := r.Get(t.Context()); !errors.As(err, &failed) || failed.Status != tt.status {
						t.Fatal(err)
					}
					if len(s.requests) < 2 {
						time.Sleep(time.Second)
					}
				}
				if got := time.Since(start); got != max(tt.quiet, time.Second) {
					t.Errorf("asked again after %v, want %v", got, tt.quiet)
				}
			})
		})
	}
}

// TestFailureKeepsTheStored: after a failure the validators are still there.
func TestFailureKeepsTheStored(t *testing.T) {
	s := &server{status: 200, body: "x", header: http.Header{"Etag": {`"a"`}}}
	r := s.resource()
	_, _ = r.Get(t.Context())
	s.status = 500
	if _, err := r.Get(t.Context()); err == nil {
		t.Error("500 is no failure")
	}
	s.status = 200
	if b, err := r.Get(t.Context()); err != nil || string(b) != "x" || s.requests[2] != `GET "a"` {
		t.Errorf("%q, %v, %v", b, err, s.requests)
	}
}

// TestTimeout: one request takes ten seconds at most.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		r := httpcache.New(httpcache.Config{URL: "http://api.example/", Client: &http.Client{Transport: blocking{}}})
		if _, err := r.Get(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

type blocking struct{}

func (blocking) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestBadServers: real sockets and what bad servers say over them. No error quotes the URL.
func TestBadServers(t *testing.T) {
	gz := func(n int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.Copy(w, io.LimitReader(blanks{}, int64(n)))
		_ = w.Close()
		return b.Bytes()
	}
	bomb := gz(200 << 20)
	small := gz(1 << 20)
	mux := http.NewServeMux()
	mux.HandleFunc("/blanks", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, blanks{}, 200<<20) })
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	})
	mux.HandleFunc("/just", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(small)
	})
	mux.HandleFunc("/br", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = w.Write([]byte("x"))
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("[1"))
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	plain := httptest.NewServer(mux)
	defer plain.Close()
	mux.HandleFunc("/down", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL+"/ok", http.StatusFound) })
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	tests := map[string]struct {
		url  string
		want error // nil = any
		ok   bool
	}{
		"200 MB":           {plain.URL + "/blanks", httpcache.ErrTooLarge, false},
		"compressed bomb":  {plain.URL + "/bomb", httpcache.ErrTooLarge, false},
		"just not a bomb":  {plain.URL + "/just", nil, true},
		"foreign encoding": {plain.URL + "/br", httpcache.ErrEncoding, false},
		"cut":              {plain.URL + "/cut", io.ErrUnexpectedEOF, false},
		"redirect loop":    {plain.URL + "/loop", httpcache.ErrRedirects, false},
		"redirect":         {plain.URL + "/moved", nil, true},
		"no content":       {plain.URL + "/empty", nil, false},
		"missing":          {plain.URL + "/missing", nil, false},
		"downgrade":        {secure.URL + "/down", httpcache.ErrDowngrade, false},
		"refused":          {"http://127.0.0.1:1/", nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httpcache.New(httpcache.Config{URL: tt.url + "?jwt=S3CRET", Client: secure.Client()})
			_, err := r.Get(t.Context())
			if (err == nil) != tt.ok || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "S3CRET") {
				t.Errorf("the error quotes the URL: %v", err)
			}
		})
	}
	r := httpcache.New(httpcache.Config{URL: secure.URL + "/ok", Client: &http.Client{}})
	if _, err := r.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an untrusted certificate: %v", err)
	}
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
