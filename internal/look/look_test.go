package look_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/admin"
	"github.com/moqmesh/moqmesh/internal/look"
	"github.com/moqmesh/moqmesh/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// overview is what a relay says at its n-th look, two seconds after the one before.
func overview(n int) admin.Overview {
	now := begin.Add(time.Hour + time.Duration(n)*2*time.Second)
	sent := uint64(n) * 4096
	return admin.Overview{
		Time: now, Node: "https://me.example/", Hop: 7, Started: begin, Draining: true,
		Totals: admin.Totals{Sessions: 25, Routes: 1, Tracks: 1, CacheBytes: 3 << 20, CacheCapacity: 1 << 30, Sent: sent},
		Peers: []admin.Peer{
			{Key: "https://b.example/", Source: "connect", State: "connected", Since: begin, Links: []admin.Link{{
				Session: 3, Version: "moq-lite-06", Cost: 5, PeerCost: 6, RTT: 12.34, Loss: 0.015, Sent: sent, Received: 10,
			}}},
			{Key: "https://c.example/", Source: "connect_api", State: "waiting", Since: begin, NextDial: now.Add(9 * time.Second), LastError: "no\nroute", LastErrorAt: now},
		},
		Accepted: []admin.Link{{Session: 4, Remote: "192.0.2.9:1", Version: "moq-lite-05", Cost: 1, PeerCost: 1}},
		List:     &admin.PeerList{Source: "https://api.example", Peers: 1, Error: "status 500"},
		Routes:   []admin.RouteEntry{{Prefix: "demo\x1b[2J", Hops: []uint64{9, 8}, Cost: 6, Session: 3, Source: "peer", Live: false}},
		Tracks:   []admin.TrackEntry{{Path: "demo", Track: "video", Readers: 24, Copies: 2, Session: 3, Groups: 2, Bytes: 2048}},
		Sessions: sessions(sent),
	}
}

func sessions(sent uint64) (out []admin.Session) {
	for i := range 25 {
		s := admin.Session{ID: "s" + string(rune('a'+i)), Remote: "192.0.2.1:5", Path: "/", Role: "both", Version: "moq-lite-06", Started: begin.Unix()}
		if i == 24 {
			s.Sent = sent // the only busy one is the last
		}
		out = append(out, s)
	}
	return out
}

// relay answers like one.
func relay(t *testing.T) string {
	t.Helper()
	var looks atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/overview" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(overview(int(looks.Add(1))))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in\n%s", p, text)
		}
	}
}

func TestStatus(t *testing.T) {
	var out bytes.Buffer
	err := look.Status{Where: look.Where{URL: relay(t)}}.Run(&tool.Streams{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	want(t, out.String(),
		"https://me.example/  id 7  up 1h 0m  DRAINING\n", "sessions 25", "cache 3.0 MiB of 1.0 GiB", "sent 4.0 KiB, received 0 B",
		"peer list https://api.example: 1 peers, CANNOT BE USED: status 500\n",
		"https://b.example/  connected", "moq-lite-06  5     6       12.3ms  1.50%  4.0 KiB  10 B",
		"https://c.example/  waiting, dials in 9s  1h 0m  connect_api", "0s ago: no?route",
		"192.0.2.9:1", "demo?[2J  9 8        6     3        peer     stale", "demo       video  24       2       session 3  2       2.0 KiB",
		"and 5 more\n")
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a name steers the terminal")
	}
}

func TestStatusJSON(t *testing.T) {
	var out bytes.Buffer
	if err := (look.Status{Where: look.Where{URL: relay(t)}, JSON: true}).Run(&tool.Streams{Out: &out}); err != nil {
		t.Fatal(err)
	}
	var o admin.Overview
	if err := json.Unmarshal(out.Bytes(), &o); err != nil || o.Hop != 7 || len(o.Peers) != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestTop: rates come with the second look, the busiest session first, and no escape sequences where there is no
// terminal.
func TestTop(t *testing.T) {
	var out bytes.Buffer
	c := look.Top{Where: look.Where{URL: relay(t)}, Count: 2}
	if err := c.Run(&tool.Streams{Out: &out}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	at := strings.LastIndex(text, "https://me.example/")
	want(t, text[:at], "sending 4.0 KiB, receiving 0 B")
	want(t, text[at:], "sending 2.0 KiB/s, receiving 0 B/s", "1.50%  2.0 KiB/s  0 B/s")
	if busy, idle := strings.Index(text[at:], "\nsy "), strings.Index(text[at:], "\nsa "); busy < 0 || busy > idle {
		t.Errorf("the busy session is not first:\n%s", text[at:])
	}
	if strings.Contains(text, "\x1b") {
		t.Error("escape sequences in a file")
	}
}

func TestNoRelay(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for url, part := range map[string]string{
		"127.0.0.1:1":    "no relay answers at http://127.0.0.1:1/overview",
		other.URL:        "is this the internal listener?",
		"ftp://host/":    "is no address",
		"http://[broken": "is no address",
	} {
		err := look.Status{Where: look.Where{URL: url}}.Run(&tool.Streams{Out: new(bytes.Buffer)})
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
