//go:build drill

package drill

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// proxy stands between relay and auth server, and fails as it is told.
type proxy struct {
	url, target string

	mu    sync.Mutex
	fault string // "" = none, or when the server is killed: then its absence shows
	seen  []seen
}

// seen is one request.
type seen struct {
	at       time.Time
	event    auth.Event
	answered bool // by the server
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	p := &proxy{target: target}
	srv := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	p.url = srv.URL
	return p
}

func (p *proxy) set(fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	q, _, err := auth.DecodeRequest(body)
	if err != nil {
		return
	}
	p.mu.Lock()
	fault, at := p.fault, len(p.seen)
	p.seen = append(p.seen, seen{time.Now(), q.Event, false})
	p.mu.Unlock()
	const grant = `{"subscribe":["**"],"expires":4102444800,"revalidate":10}`
	switch fault {
	case "hanging":
		<-r.Context().Done()
	case "status 500":
		w.WriteHeader(http.StatusInternalServerError)
	case "garbage":
		_, _ = io.WriteString(w, "<html>"+grant)
	case "half a body":
		w.Header().Set("Content-Length", "57")
		_, _ = io.WriteString(w, grant[:20])
	default:
		p.forward(w, r, body, at)
	}
}

// forward asks the server; while that is not there the connection breaks.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, body []byte, at int) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, p.target, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	p.mu.Lock()
	p.seen[at].answered = true
	p.mu.Unlock()
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// load is what the server saw: how much, and the worst tenth of a second.
type load struct{ requests, worst int }

// since counts the requests about running sessions after a moment.
func (p *proxy) since(start time.Time) (l load) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var window []time.Time
	for _, s := range p.seen {
		if s.at.Before(start) || s.event != auth.EventRevalidate {
			continue
		}
		l.requests++
		window = append(window, s.at)
		for s.at.Sub(window[0]) > 100*time.Millisecond {
			window = window[1:]
		}
		l.worst = max(l.worst, len(window))
	}
	return l
}

// answer is when the server answered for the first time after a moment.
func (p *proxy) answer(after time.Time) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.seen {
		if s.answered && s.at.After(after) {
			return s.at.Sub(after), true
		}
	}
	return 0, false
}

// row makes a line of a table.
func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }
