package admin_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/admin"
)

// state is what the internal endpoints show in tests.
type state struct {
	nodes    []admin.Node
	sessions []admin.Session
	metrics  admin.Metrics
}

func (s *state) Nodes() []admin.Node       { return slices.Clone(s.nodes) }
func (s *state) Sessions() []admin.Session { return slices.Clone(s.sessions) }
func (s *state) Metrics() admin.Metrics    { return s.metrics }

// matcher takes a prefix for a pattern.
func matcher(pattern string) (func(string) bool, error) {
	if strings.HasPrefix(pattern, "/") {
		return nil, errors.New("leading slash")
	}
	return func(path string) bool { return strings.HasPrefix(path, pattern) }, nil
}

func internal(s *state) http.Handler {
	return admin.Internal(admin.InternalConfig{State: s, PathMatcher: matcher, Pages: map[string]func() any{
		"/routes": func() any { return map[string]int{"routes": 2} },
		"/broken": func() any { return math.NaN() },
	}})
}

// TestInternalEndpoints: each row of the table of internal endpoints (config.md 5), byte for byte.
func TestInternalEndpoints(t *testing.T) {
	full := &state{
		nodes: []admin.Node{
			{Node: "https://b.example/", Connections: []admin.Connection{{ID: 7}, {ID: 2}}},
			{Node: "https://a.example/", Connections: []admin.Connection{{ID: 0}}},
		},
		sessions: []admin.Session{
			{ID: "bb", Transport: "quic", Started: 200},
			{
				ID: "aa", Node: "n", Transport: "quic", Remote: "192.0.2.1:9", Local: "192.0.2.2:443", ServerName: "relay.example", ALPN: "moq-lite-06",
				Path: "/room", Role: "publisher", TLS: &admin.ClientIdentity{Name: "cam", Fingerprint: "ff", Expires: 9, Issuer: "CN=x"}, Started: 100,
			},
		},
	}
	const object, text = "application/json", "text/plain; charset=utf-8"
	tests := map[string]struct {
		state          *state
		method, target string
		status         int
		kind, body     string
	}{
		"health":          {target: "/health", status: 200, kind: text, body: "ok\n"},
		"health, HEAD":    {method: "HEAD", target: "/health", status: 200, kind: text, body: "ok\n"},
		"no nodes":        {target: "/nodes", status: 200, kind: object, body: `{"nodes":[]}`},
		"nodes":           {state: full, target: "/nodes", status: 200, kind: object, body: `{"nodes":[{"node":"https://a.example/","connections":[{"id":0}]},{"node":"https://b.example/","connections":[{"id":2},{"id":7}]}]}`},
		"no sessions":     {target: "/sessions", status: 200, kind: object, body: `{"sessions":[]}`},
		"sessions":        {state: full, target: "/sessions", status: 200, kind: object, body: `{"sessions":[{"id":"aa","node":"n","transport":"quic","remote":"192.0.2.1:9","local":"192.0.2.2:443","server_name":"relay.example","alpn":"moq-lite-06","path":"/room","role":"publisher","tls":{"name":"cam","fingerprint":"ff","expires":9,"issuer":"CN=x"},"started":100},{"id":"bb","transport":"quic","started":200}]}`},
		"sessions, POST":  {method: "POST", target: "/sessions", status: 405, kind: text, body: "method not allowed"},
		"unknown filter":  {state: full, target: "/sessions?x=1", status: 400, kind: text, body: "unknown filter field: x"},
		"bad filter":      {state: full, target: "/sessions?remote=nowhere", status: 400, kind: text, body: "invalid remote: nowhere"},
		"bad pattern":     {state: full, target: "/sessions?path=/x", status: 400, kind: text, body: "invalid path: /x"},
		"bad escape":      {state: full, target: "/sessions?id=%zz", status: 400, kind: text, body: "invalid id: %zz"},
		"bad escape2":     {state: full, target: "/sessions?%zz=1", status: 400, kind: text, body: "unknown filter field: %zz"},
		"many filters":    {state: full, target: "/sessions?" + strings.Repeat("id=aa&", 101), status: 400, kind: text, body: "too many filters"},
		"revalidate":      {state: full, method: "POST", target: "/sessions/revalidate", status: 200, kind: object, body: `{"ids":[]}`},
		"revalidate, bad": {state: full, method: "POST", target: "/sessions/revalidate?x=1", status: 400, kind: text, body: "unknown filter field: x"},
		"revalidate, GET": {state: full, target: "/sessions/revalidate", status: 405, kind: text, body: "method not allowed"},
		"profiles, POST":  {method: "POST", target: "/debug/pprof/heap", status: 405, kind: text, body: "method not allowed"},
		"arguments":       {target: "/debug/pprof/cmdline", status: 404, kind: text, body: "not found"},
		"page":            {target: "/routes", status: 200, kind: object, body: `{"routes":2}`},
		"broken page":     {target: "/broken", status: 500, kind: text, body: "internal error"},
		"nothing":         {target: "/", status: 404, kind: text, body: "not found"},
		"no public page":  {target: "/announced", status: 404, kind: text, body: "not found"},
		"metrics, POST":   {method: "POST", target: "/metrics", status: 405, kind: text, body: "method not allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.state == nil {
				tt.state = &state{}
			}
			method := tt.method
			if method == "" {
				method = "GET"
			}
			res := do(internal(tt.state), method, tt.target)
			if got := body(t, res); res.StatusCode != tt.status || got != tt.body || res.Header.Get("Content-Type") != tt.kind {
				t.Errorf("status %d, type %q, body\n%s, want %d\n%s", res.StatusCode, res.Header.Get("Content-Type"), got, tt.status, tt.body)
			}
			if got := res.Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("other origins are allowed: %q", got)
			}
		})
	}
}

// TestProfiles: the internal listener serves the profiles of the process.
func TestProfiles(t *testing.T) {
	for _, name := range []string{"", "goroutine?debug=1", "heap?debug=1", "mutex?debug=1", "block?debug=1"} {
		w := httptest.NewRecorder()
		internal(&state{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/pprof/"+name, nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%q: status %d with %d bytes", name, w.Code, w.Body.Len())
		}
	}
}

func TestFilters(t *testing.T) {
	s := &state{sessions: []admin.Session{
		{ID: "1", Node: "n1", Transport: "quic", Remote: "192.0.2.1:9", Local: "10.0.0.1:443", ServerName: "a", ALPN: "moq-lite-06", Path: "/room/x", Role: "publisher"},
		{ID: "2", Node: "n2", Transport: "quic", Remote: "[::ffff:192.0.2.77]:9", Local: "10.0.0.2:443", ServerName: "b", ALPN: "moq-lite-05", Path: "//room//y/", Role: "subscriber"},
		{ID: "3", Node: "n1", Transport: "websocket", Remote: "[2001:db8::3]:9", ServerName: "a", Path: "/", TLS: &admin.ClientIdentity{Name: "cam", Fingerprint: "ff", Issuer: "CN=x y"}},
		{ID: "4", Transport: "unix", Path: ""},
		{ID: "5", Transport: "quic", Remote: "[fe80::5%eth0]:9", Path: "/a b"},
	}}
	tests := map[string]string{
		"":                                     "1 2 3 4 5",
		"id=2":                                 "2",
		"id=":                                  "",
		"id=9":                                 "",
		"node=n1":                              "1 3",
		"transport=quic":                       "1 2 5",
		"transport=QUIC":                       "",
		"local=10.0.0.1:443":                   "1",
		"server_name=a":                        "1 3",
		"alpn=moq-lite-05":                     "2",
		"role=publisher":                       "1",
		"role=":                                "3 4 5",
		"tls.name=cam":                         "3",
		"tls.fingerprint=ff":                   "3",
		"tls.issuer=CN%3Dx+y":                  "3",
		"tls.name=":                            "1 2 4 5",
		"path=room":                            "1 2",
		"path=room/y":                          "2",
		"path=a%20b":                           "5",
		"path=":                                "1 2 3 4 5",
		"remote=192.0.2.1":                     "1",
		"remote=192.0.2.77":                    "2",
		"remote=::ffff:192.0.2.1":              "1",
		"remote=192.0.2.0/24":                  "1 2",
		"remote=192.0.2.99/24":                 "1 2",
		"remote=::ffff:192.0.2.0/120":          "1 2",
		"remote=0.0.0.0/0":                     "1 2",
		"remote=::/0":                          "3 5",
		"remote=2001:db8::/32":                 "3",
		"remote=fe80::5":                       "5",
		"remote=fe80::/10":                     "5",
		"remote=fe80::5%25eth0":                "5",
		"node=n1&transport=quic":               "1",
		"node=n1&node=n2":                      "",
		"node=n1&&transport=quic&":             "1",
		"remote=192.0.2.0/24&role=subscriber":  "2",
		"remote=192.0.2.0%2F24&path=room&id=1": "1",
	}
	for query, want := range tests {
		res := do(internal(s), "GET", "/sessions?"+query)
		var got struct{ Sessions []admin.Session }
		if err := json.Unmarshal([]byte(body(t, res)), &got); err != nil {
			t.Errorf("%q: %v", query, err)
			continue
		}
		var ids []string
		for _, s := range got.Sessions {
			ids = append(ids, s.ID)
		}
		if strings.Join(ids, " ") != want {
			t.Errorf("%q: sessions %v, want %s", query, ids, want)
		}
	}
	for _, bad := range []string{"remote=", "remote=192.0.2.1:9", "remote=192.0.2.0/33", "remote=::ffff:0.0.0.0/64", "remote=192.0.2.0/x", "ID=1", "tls=1", "started=1"} {
		if res := do(internal(s), "GET", "/sessions?"+bad); res.StatusCode != 400 {
			t.Errorf("%q: status %d", bad, res.StatusCode)
		}
	}
}

func TestRevalidate(t *testing.T) {
	s := &state{sessions: []admin.Session{{ID: "1", Node: "a"}, {ID: "2", Node: "b"}, {ID: "3", Node: "b"}}}
	var asked []string
	h := admin.Internal(admin.InternalConfig{State: s, PathMatcher: matcher, Revalidate: func(ids []string) []string {
		asked = slices.Clone(ids)
		return slices.DeleteFunc(ids, func(id string) bool { return id == "3" }) // has no lease
	}})
	for query, want := range map[string]struct {
		status int
		body   string
		asked  string
	}{
		"?node=b": {202, `{"ids":["2"]}`, "2 3"}, "?id=3": {200, `{"ids":[]}`, "3"}, "?id=9": {200, `{"ids":[]}`, ""},
	} {
		res := do(h, "POST", "/sessions/revalidate"+query)
		if got := body(t, res); res.StatusCode != want.status || got != want.body {
			t.Errorf("%q: status %d, %s", query, res.StatusCode, got)
		}
		if got := strings.Join(asked, " "); got != want.asked {
			t.Errorf("%q: asked about %q", query, got)
		}
	}
}

// families are all that must be there, with their types (config.md 5 and our own).
var families = map[string]string{
	"moq_relay_bytes_total": "counter", "moq_relay_frames_total": "counter", "moq_relay_groups_total": "counter", "moq_relay_datagrams_total": "counter",
	"moq_relay_stale_bytes_total": "counter", "moq_relay_stale_frames_total": "counter", "moq_relay_stale_groups_total": "counter", "moq_relay_stale_datagrams_total": "counter",
	"moq_relay_fetches_total": "counter", "moq_relay_announces_started_total": "counter", "moq_relay_announces_ended_total": "counter",
	"moq_relay_subscriptions_opened_total": "counter", "moq_relay_subscriptions_closed_total": "counter",
	"moq_relay_viewers_opened_total": "counter", "moq_relay_viewers_closed_total": "counter",
	"moq_relay_sessions_opened_total": "counter", "moq_relay_sessions_closed_total": "counter",
	"moq_relay_control_tx_bytes_total": "counter", "moq_relay_control_rx_bytes_total": "counter",
	"moq_relay_accept_failures_total": "counter", "moq_relay_accept_stalled_seconds": "gauge", "moq_relay_draining_sessions": "gauge",
	"moqmesh_sessions": "gauge", "moqmesh_routes": "gauge", "moqmesh_holds_pending": "gauge", "moqmesh_upstream_subscriptions": "gauge",
	"moqmesh_failovers_total": "counter", "moqmesh_duplicate_frames_total": "counter", "moqmesh_cache_bytes": "gauge", "moqmesh_cache_groups": "gauge",
	"moqmesh_cache_capacity_bytes": "gauge", "moqmesh_tracks": "gauge", "moqmesh_readers": "gauge", "moqmesh_refusals_total": "counter",
	"moqmesh_hedges_total": "counter", "moqmesh_hedges_won_total": "counter", "moqmesh_hedges_needless_total": "counter",
	"moqmesh_hedges_refused_total": "counter",
	"moqmesh_peers":                "gauge", "moqmesh_peer_list_failing": "gauge", "moqmesh_auth_answers_total": "counter",
	"moqmesh_auth_ended_total": "counter", "moqmesh_auth_recovered_total": "counter", "moqmesh_auth_stale_sessions": "gauge",
	"moqmesh_limited_total": "counter", "moqmesh_groups_shed_total": "counter", "moqmesh_joins_delayed_total": "counter",
	"moqmesh_lateness_seconds": "gauge", "moqmesh_overloaded": "gauge",
	"moqmesh_memory_used_bytes": "gauge", "moqmesh_memory_limit_bytes": "gauge", "moqmesh_memory_short": "gauge",
	"moqmesh_cache_evictions_total": "counter", "moqmesh_dials_total": "counter", "moqmesh_dial_failures_total": "counter",
}

// scrape returns the lines of /metrics, without those of the Go runtime and the process.
func scrape(t *testing.T, s *state) []string {
	t.Helper()
	res := do(internal(s), "GET", "/metrics")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/plain; version=0.0.4" {
		t.Fatalf("status %d, type %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	var out []string
	for line := range strings.Lines(body(t, res)) {
		if strings.Contains(line, "moq") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// TestMetricsAreAlwaysThere: HELP and TYPE of every family also on a relay that has seen nothing, and rows only for
// those without labels.
func TestMetricsAreAlwaysThere(t *testing.T) {
	lines := scrape(t, &state{})
	have := map[string]string{}
	rows := 0
	for i, line := range lines {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# TYPE "):
			have[fields[2]] = fields[3]
			if !strings.HasPrefix(lines[i-1], "# HELP "+fields[2]+" ") || len(strings.Fields(lines[i-1])) < 4 {
				t.Errorf("%s has no HELP before it", fields[2])
			}
		case !strings.HasPrefix(line, "#"):
			rows++
			if !strings.HasSuffix(line, " 0") || strings.Contains(line, "{") && !strings.HasPrefix(line, `moqmesh_peers{state="`) {
				t.Errorf("row %q", line)
			}
		}
	}
	if diff := cmp.Diff(families, have); diff != "" {
		t.Error(diff)
	}
	if rows != 34 { // one per family without labels, and one per state of a peer
		t.Errorf("%d rows, want 34", rows)
	}
	if !slices.IsSortedFunc(slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "# TYPE") }), strings.Compare) {
		t.Error("families are not in order")
	}
}

func TestMetricsRows(t *testing.T) {
	content := admin.ContentMetrics{
		Bytes: 1, Frames: 2, Groups: 3, Datagrams: 4, StaleBytes: 5, StaleFrames: 6, StaleGroups: 7, StaleDatagrams: 8, Fetches: 9,
		AnnouncesStarted: 10, AnnouncesEnded: 11, SubscriptionsOpened: 12, SubscriptionsClosed: 13, ViewersOpened: 14, ViewersClosed: 15,
	}
	lines := scrape(t, &state{metrics: admin.Metrics{
		Tiers: []admin.TierMetrics{
			{
				SessionsOpened: 16, SessionsClosed: 17, Publisher: content, Subscriber: admin.ContentMetrics{Bytes: 100},
				ControlSent: map[admin.ControlClass]uint64{admin.ControlAnnounce: 18}, ControlReceived: map[admin.ControlClass]uint64{admin.ControlOther: 19},
			},
			{Tier: "clu\"st\xffer", SessionsOpened: 20},
		},
		Accepts:          []admin.AcceptMetrics{{Listener: "web", Failures: map[string]uint64{"exhausted": 21}, Stalled: 1.5}, {Listener: "internal"}},
		DrainingSessions: 22,
		Own: admin.OwnMetrics{
			Sessions: 23, Routes: 24, HoldsPending: 25, UpstreamSubscriptions: 26, Failovers: 27, DuplicateFrames: 28,
			CacheBytes: 29, CacheGroups: 30, CacheEvictions: 31, GroupsShed: 32, JoinsDelayed: 33, Lateness: 34 * time.Millisecond, Overloaded: true, MemoryUsed: 35, MemoryLimit: 36, MemoryShort: true, Dials: 32, DialFailures: 33,
			Tracks: 34, Readers: 35, Refusals: 36, CacheCapacity: 37, Peers: map[string]int{"waiting": 38}, PeerListFailing: true,
			Hedges: 39, HedgesWon: 40, HedgesNeedless: 41, HedgesRefused: 42,
		},
	}})
	want := []string{
		`moq_relay_bytes_total{role="publisher",tier=""} 1`, `moq_relay_bytes_total{role="subscriber",tier=""} 100`,
		`moq_relay_frames_total{role="publisher",tier=""} 2`, `moq_relay_groups_total{role="publisher",tier=""} 3`, `moq_relay_datagrams_total{role="publisher",tier=""} 4`,
		`moq_relay_stale_bytes_total{role="publisher",tier=""} 5`, `moq_relay_stale_frames_total{role="publisher",tier=""} 6`,
		`moq_relay_stale_groups_total{role="publisher",tier=""} 7`, `moq_relay_stale_datagrams_total{role="publisher",tier=""} 8`,
		`moq_relay_fetches_total{role="publisher",tier=""} 9`,
		`moq_relay_announces_started_total{role="publisher",tier=""} 10`, `moq_relay_announces_ended_total{role="publisher",tier=""} 11`,
		`moq_relay_subscriptions_opened_total{role="publisher",tier=""} 12`, `moq_relay_subscriptions_closed_total{role="publisher",tier=""} 13`,
		`moq_relay_viewers_opened_total{role="publisher",tier=""} 14`, `moq_relay_viewers_closed_total{role="publisher",tier=""} 15`,
		`moq_relay_sessions_opened_total{tier=""} 16`, `moq_relay_sessions_closed_total{tier=""} 17`,
		`moq_relay_control_tx_bytes_total{class="announce",tier=""} 18`, `moq_relay_control_rx_bytes_total{class="other",tier=""} 19`,
		`moq_relay_sessions_opened_total{tier="clu\"st�er"} 20`,
		`moq_relay_accept_failures_total{class="exhausted",listener="web"} 21`,
		`moq_relay_accept_stalled_seconds{listener="web"} 1.5`, `moq_relay_accept_stalled_seconds{listener="internal"} 0`,
		`moq_relay_draining_sessions 22`,
		`moqmesh_sessions 23`, `moqmesh_routes 24`, `moqmesh_holds_pending 25`, `moqmesh_upstream_subscriptions 26`, `moqmesh_failovers_total 27`,
		`moqmesh_duplicate_frames_total 28`, `moqmesh_cache_bytes 29`, `moqmesh_cache_groups 30`, `moqmesh_cache_evictions_total 31`, `moqmesh_groups_shed_total 32`, `moqmesh_joins_delayed_total 33`,
		`moqmesh_lateness_seconds 0.034`, `moqmesh_overloaded 1`, `moqmesh_memory_used_bytes 35`, `moqmesh_memory_limit_bytes 36`, `moqmesh_memory_short 1`,
		`moqmesh_dials_total 32`, `moqmesh_dial_failures_total 33`,
		`moqmesh_tracks 34`, `moqmesh_readers 35`, `moqmesh_refusals_total 36`, `moqmesh_cache_capacity_bytes 37`,
		`moqmesh_hedges_total 39`, `moqmesh_hedges_won_total 40`, `moqmesh_hedges_needless_total 41`, `moqmesh_hedges_refused_total 42`,
		`moqmesh_peers{state="waiting"} 38`, `moqmesh_peers{state="connected"} 0`, `moqmesh_peer_list_failing 1`,
	}
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("missing: %s", line)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
}

// TestMetricsIncludeTheProcess: memory and goroutines are what operators look at first.
func TestMetricsIncludeTheProcess(t *testing.T) {
	text := body(t, do(internal(&state{}), "GET", "/metrics"))
	for _, name := range []string{"go_goroutines ", "process_resident_memory_bytes ", "process_open_fds "} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestDuplicateTiers: two entries for one tier must not take the page down.
func TestDuplicateTiers(t *testing.T) {
	res := do(internal(&state{metrics: admin.Metrics{Tiers: []admin.TierMetrics{{SessionsOpened: 1}, {SessionsOpened: 2}}}}), "GET", "/metrics")
	if res.StatusCode != 200 || !strings.Contains(body(t, res), "moqmesh_sessions 0") {
		t.Errorf("status %d", res.StatusCode)
	}
}
