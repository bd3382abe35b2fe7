package peerlist_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
)

// rig is a cluster with scripted sessions, fed by a watch.
type rig struct {
	cluster *cluster.Cluster
	watch   *peerlist.Watch
	server  *server
	logs    *syncBuffer
	applied int

	mu    sync.Mutex
	dials []string
	ended []string
}

// session lasts until it is dropped.
type session struct {
	rig *rig
	url string
}

func (s *session) Goaway() <-chan string { return nil }
func (s *session) ID() uint64            { return 1 }

func (s *session) Serve(ctx context.Context) error {
	<-ctx.Done()
	s.rig.mu.Lock()
	defer s.rig.mu.Unlock()
	s.rig.ended = append(s.rig.ended, s.url)
	return ctx.Err()
}

func (r *rig) dial(_ context.Context, e cluster.Entry) (cluster.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials = append(r.dials, e.URL().String())
	return &session{r, e.URL().String()}, nil
}

// take returns and forgets what was dialed and ended.
func (r *rig) take() (dials, ended string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dials, ended = strings.Join(r.dials, " "), strings.Join(r.ended, " ")
	r.dials, r.ended = nil, nil
	return dials, ended
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) count(level string) int { return strings.Count(b.String(), "level="+level) }

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// server is a control plane without a network.
type server struct {
	mu       sync.Mutex
	status   int
	header   http.Header
	body     string
	fail     error
	requests []string // URLs
	times    []time.Time
}

func (s *server) set(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body, s.fail = status, body, nil
}

// asked returns how often, once all is quiet.
func (s *server) asked() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.URL.String())
	s.times = append(s.times, time.Now())
	if s.fail != nil {
		return nil, s.fail
	}
	h := s.header.Clone()
	if h == nil {
		h = http.Header{}
	}
	return &http.Response{StatusCode: s.status, Header: h, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

// newRig starts a watch; it ends with the test.
func newRig(t *testing.T, source, node string, s *server) *rig {
	t.Helper()
	src, err := peerlist.ParseSource(source)
	if err != nil {
		t.Fatal(err)
	}
	var self cluster.Node
	if node != "" {
		if self, err = cluster.ParseNode(node); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{logs: new(syncBuffer), server: s}
	log := slog.New(slog.NewTextHandler(r.logs, nil))
	r.cluster = cluster.New(cluster.Config{Dial: r.dial})
	r.watch = peerlist.New(peerlist.Config{
		Source: src, Self: self, Client: &http.Client{Transport: s}, Logger: log,
		Apply: func(list []cluster.Entry) {
			r.applied++
			r.cluster.Set(cluster.SourceAPI, list)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.watch.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		r.cluster.Close()
	})
	return r
}

const goodList = `["https://a/?cost=2", {"url":"https://b/","token":"S3CRET"}]`

// TestBadListOverHTTP (C18, faults 5): whatever comes in place of a list, the links stay, there is one warning, and
// the good list counts again when it is back.
func TestBadListOverHTTP(t *testing.T) {
	type answer struct {
		status int
		body   string
		fail   error
	}
	answers := map[string]answer{
		"404":       {status: 404},
		"500":       {status: 500},
		"403":       {status: 403, body: goodList},
		"204":       {status: 204},
		"206":       {status: 206, body: `["https://a/"]`},
		"refused":   {fail: &net.OpError{Op: "dial", Err: errors.New("connection refused")}},
		"TLS error": {fail: errors.New("tls: unknown certificate authority")},
		"large":     {status: 200, body: "[" + strings.Repeat(" ", 1<<20) + "]"},
	}
	for name, body := range bad {
		answers[name] = answer{status: 200, body: body}
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{status: 200, body: goodList, header: http.Header{"Cache-Control": {"max-age=60"}}}
				r := newRig(t, "https://api/list?key=S3CRET", "", s)
				synctest.Wait()
				if dials, ended := r.take(); dials != "https://a/ https://b/?jwt=S3CRET" && dials != "https://b/?jwt=S3CRET https://a/" || ended != "" {
					t.Fatalf("dials %q, ended %q", dials, ended)
				}
				s.set(a.status, a.body)
				s.mu.Lock()
				s.fail = a.fail
				s.mu.Unlock()
				before := s.asked()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if dials, ended := r.take(); dials != "" || ended != "" {
					t.Errorf("dials %q, ended %q", dials, ended)
				}
				if n := s.asked() - before; n < 18 || n > 20 {
					t.Errorf("%d requests in ten minutes: a bad list must not be cached, and not asked for in a hurry", n)
				}
				if n := r.logs.count("WARN"); n != 1 {
					t.Errorf("%d warnings: %s", n, r.logs)
				}
				if st := r.watch.Status(); st.Error == "" || st.Peers != 2 {
					t.Errorf("status %+v", st)
				}
				s.set(200, goodList)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				if dials, ended := r.take(); dials != "" || ended != "" || r.applied != 1 || r.watch.Status().Error != "" {
					t.Errorf("the same list again: dials %q, ended %q, applied %d times", dials, ended, r.applied)
				}
				s.set(200, `[]`)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if _, ended := r.take(); len(strings.Fields(ended)) != 2 {
					t.Errorf("an empty list leaves links: %q ended", ended)
				}
				if strings.Contains(r.logs.String(), "S3CRET") {
					t.Errorf("a secret is logged: %s", r.logs)
				}
			})
		})
	}
}

// TestOnlyOwnPeersAreDropped: an empty list drops only those peers that came from it.
func TestOnlyOwnPeersAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: 200, body: `["https://a/","https://b/"]`}
		r := newRig(t, "http://api/", "", s)
		list, err := cluster.Parse([]any{"https://b/", "https://c/"}, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.cluster.Set(cluster.SourceConnect, list.Entries)
		synctest.Wait()
		if dials, _ := r.take(); len(strings.Fields(dials)) != 3 {
			t.Errorf("dials %q, want one per peer", dials)
		}
		s.set(200, `[]`)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if dials, ended := r.take(); dials != "" || ended != "https://a/" {
			t.Errorf("dials %q, ended %q", dials, ended)
		}
	})
}

// TestPolling (C16, C20a): the first check is at once, a failed first one is retried soon, then every 30 s; we say who
// we are.
func TestPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: 500}
		start := time.Now()
		newRig(t, "https://api/list?x=1", "me.example:4443", s)
		time.Sleep(92500 * time.Millisecond)
		s.set(200, `[]`)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		var at []string
		for _, when := range s.times {
			at = append(at, when.Sub(start).String())
		}
		want := []string{"0s", "1s", "3s", "7s", "15s", "31s", "1m1s", "1m31s", "2m1s", "2m31s"}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
		if got := s.requests[0]; got != "https://api/list?x=1&node=https%3A%2F%2Fme.example%3A4443%2F" {
			t.Errorf("asked for %s", got)
		}
	})
}

// TestHotPollLoop (faults 5): whatever the server says about freshness, there is at most a request a second, never
// none for ever, and no redial.
func TestHotPollLoop(t *testing.T) {
	for name, h := range map[string]http.Header{
		"max-age 0": {"Cache-Control": {"max-age=0"}},
		"no-store":  {"Cache-Control": {"no-store"}},
		"negative":  {"Cache-Control": {"max-age=-5"}},
		"huge":      {"Cache-Control": {"max-age=99999999999999999999"}},
		"rubbish":   {"Cache-Control": {"max-age=abc"}},
		"expired":   {"Expires": {"Thu, 01 Jan 1970 00:00:00 GMT"}},
	} {
		for _, status := range []int{200, 429} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &server{status: 200, header: h, body: goodList}
					r := newRig(t, "https://api/", "", s)
					synctest.Wait()
					r.take()
					s.mu.Lock()
					s.status = status
					if status == 429 {
						s.header = http.Header{"Retry-After": {"3600"}}
					}
					s.mu.Unlock()
					time.Sleep(2*time.Hour + time.Minute)
					if n := s.asked(); n < 3 || n > 245 {
						t.Errorf("%d requests in two hours", n)
					}
					if dials, ended := r.take(); dials != "" || ended != "" {
						t.Errorf("dials %q, ended %q", dials, ended)
					}
				})
			})
		}
	}
}

// TestChangedSettings: a new price or token redials that peer only.
func TestChangedSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{status: 200, body: goodList}
		r := newRig(t, "https://api/", "", s)
		synctest.Wait()
		r.take()
		s.set(200, `[{"token":"S3CRET","url":"https://B:443"}, "https://a/?cost=3"]`)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if dials, ended := r.take(); dials != "https://a/" || ended != "https://a/" {
			t.Errorf("dials %q, ended %q", dials, ended)
		}
	})
}

// TestFile (C19): every real change of a file counts, halves and rubbish do not, and the same content does nothing.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers.json")
	r := newRig(t, "file://"+file, "", nil)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if ok() {
				return
			}
		}
		t.Fatalf("%s: not within 5 s; %+v", what, r.watch.Status())
	}
	expect("the missing file is told", func() bool { return strings.Contains(r.watch.Status().Error, "no such file") })
	write(`["https://a/"]`)
	expect("the first list", func() bool { dials, _ := r.take(); return dials == "https://a/" })
	last := ""
	for _, name := range []string{"https://b/", "https://c/", "https://d/"} {
		if err := os.WriteFile(file+".new", []byte(`["https://a/","`+name+`"]`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
		var dialed, ended string
		expect(name, func() bool {
			d, e := r.take()
			dialed, ended = dialed+d, ended+e
			return dialed == name && ended == last
		})
		last = name
	}
	warnings := r.logs.count("WARN")
	begin := time.Now()
	write(`["https://a/","https:`)
	time.Sleep(50 * time.Millisecond)
	write(`["https://a/","https://d/"]`) // as it was
	atOnce := time.Since(begin) < 200*time.Millisecond
	checked := r.watch.Status().Checked
	expect("another look", func() bool { return r.watch.Status().Checked.After(checked) })
	if dials, ended := r.take(); dials != "" || ended != "" || atOnce && r.logs.count("WARN") != warnings {
		t.Errorf("two halves of the same: dials %q, ended %q, %s", dials, ended, r.logs)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("the lost file is told", func() bool { return r.watch.Status().Error != "" })
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	expect("a directory is told", func() bool { return strings.Contains(r.watch.Status().Error, "not a file") })
	if dials, ended := r.take(); dials != "" || ended != "" {
		t.Errorf("a lost file: dials %q, ended %q", dials, ended)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	write(`["https://e/"]`)
	expect("the file is back", func() bool { dials, _ := r.take(); return dials == "https://e/" })
}
