package admin

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
)

// internal serves the endpoints for operators.
type internal struct {
	InternalConfig
	metrics http.Handler
}

// Internal returns the handler of the internal endpoints: /health, /nodes, /sessions, /metrics, the pages, and below
// /debug/pprof/ the profiles of the process, for go tool pprof.
func Internal(cfg InternalConfig) http.Handler {
	return &internal{InternalConfig: cfg, metrics: newMetrics(cfg.State)}
}

func (in *internal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, serve := http.MethodGet, http.HandlerFunc(nil)
	switch r.URL.Path {
	case "/health":
		serve = health
	case "/nodes":
		serve = in.nodes
	case "/sessions":
		serve = in.sessions
	case "/sessions/revalidate":
		method, serve = http.MethodPost, in.revalidate
	case "/metrics":
		serve = in.metrics.ServeHTTP
	case "/":
		if in.Overview != nil {
			serve = in.overview
		}
	case "/overview":
		if in.Overview != nil {
			serve = func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, in.Overview()) }
		}
	default:
		serve = profiles(r.URL.Path)
		if page := in.Pages[r.URL.Path]; page != nil {
			serve = func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, page()) }
		}
	}
	switch {
	case serve == nil:
		answer(w, http.StatusNotFound, textPlain, "not found")
	case r.Method != method && (r.Method != http.MethodHead || method != http.MethodGet):
		w.Header().Set("Allow", method)
		answer(w, http.StatusMethodNotAllowed, textPlain, "method not allowed")
	default:
		serve(w, r)
	}
}

// profiles returns what serves a path below /debug/pprof/, nil for another path. Nothing is measured until somebody asks.
func profiles(path string) http.HandlerFunc {
	name, ok := strings.CutPrefix(path, "/debug/pprof/")
	switch {
	case !ok, name == "cmdline": // arguments may be secrets
		return nil
	case name == "profile":
		return pprof.Profile
	case name == "trace":
		return pprof.Trace
	default:
		return pprof.Index
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		answer(w, http.StatusInternalServerError, textPlain, "internal error")
		return
	}
	answer(w, status, "application/json", string(body))
}

// nodes lists the peers that we dialed and hold a session with (C26).
func (in *internal) nodes(w http.ResponseWriter, _ *http.Request) {
	nodes := in.State.Nodes()
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Node, b.Node) })
	for _, n := range nodes {
		slices.SortFunc(n.Connections, func(a, b Connection) int { return cmp.Compare(a.ID, b.ID) })
	}
	writeJSON(w, http.StatusOK, map[string][]Node{"nodes": orEmpty(nodes)})
}

// sessions lists the accepted sessions that match the query.
func (in *internal) sessions(w http.ResponseWriter, r *http.Request) {
	found, ok := in.matching(w, r)
	if ok {
		writeJSON(w, http.StatusOK, map[string][]Session{"sessions": orEmpty(found)})
	}
}

// revalidate asks again about the sessions that match the query.
func (in *internal) revalidate(w http.ResponseWriter, r *http.Request) {
	found, ok := in.matching(w, r)
	if !ok {
		return
	}
	ids := make([]string, len(found))
	for i, s := range found {
		ids[i] = s.ID
	}
	if in.Revalidate == nil {
		ids = nil
	} else {
		ids = in.Revalidate(ids)
	}
	status := http.StatusAccepted
	if len(ids) == 0 {
		status = http.StatusOK
	}
	writeJSON(w, status, map[string][]string{"ids": orEmpty(ids)})
}

// matching returns the sessions that match the query, oldest first. If the query is bad it answers and reports false.
func (in *internal) matching(w http.ResponseWriter, r *http.Request) ([]Session, bool) {
	f, err := parseFilter(r.URL.RawQuery, in.PathMatcher)
	if err != nil {
		answer(w, http.StatusBadRequest, textPlain, err.Error())
		return nil, false
	}
	found := slices.DeleteFunc(in.State.Sessions(), func(s Session) bool { return !f.match(&s) })
	slices.SortFunc(found, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
	})
	return found, true
}

// orEmpty makes an empty list of none, which JSON would write as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
