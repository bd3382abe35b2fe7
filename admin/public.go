package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// defaultFetchTimeout bounds the wait for broadcast and group.
const defaultFetchTimeout = 30 * time.Second

// maxGroup is the largest group number there can be.
const maxGroup = 1<<62 - 1

const (
	textPlain = "text/plain; charset=utf-8"
	textHTML  = "text/html; charset=utf-8"
)

const notFoundPage = `<!doctype html>
<html lang="en">
<title>MoQ relay</title>
<p>This is a relay for Media over QUIC. It has no pages; connect to it with a MoQ client.
</html>
`

// public serves the endpoints for everybody.
type public struct{ PublicConfig }

// Public returns the handler of the public endpoints: /health, /certificate.sha256, /announced, /fetch.
func Public(cfg PublicConfig) http.Handler {
	if cfg.FetchTimeout == 0 {
		cfg.FetchTimeout = defaultFetchTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &public{cfg}
}

// ServeHTTP routes by hand: the path below an endpoint is a broadcast, in which dots and repeated slashes must not
// lead to redirects.
func (p *public) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, rest, below := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var serve http.HandlerFunc
	switch {
	case endpoint == "health" && !below:
		serve = health
	case endpoint == "certificate.sha256" && !below:
		serve = p.certificate
	case endpoint == "announced":
		serve = func(w http.ResponseWriter, r *http.Request) { p.announced(w, r, rest) }
	case endpoint == "fetch":
		serve = func(w http.ResponseWriter, r *http.Request) { p.fetch(w, r, rest) }
	}
	switch {
	case preflight(w, r):
	case serve == nil:
		allowAnyOrigin(w, r)
		answer(w, http.StatusNotFound, textHTML, notFoundPage)
	case !reads(r):
		w.Header().Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, textPlain, "method not allowed")
	default:
		allowAnyOrigin(w, r)
		serve(w, r)
	}
}

// preflight answers the question of a browser whether a page of another origin may GET.
func preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") != http.MethodGet {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", http.MethodGet)
	if asked := r.Header.Values("Access-Control-Request-Headers"); len(asked) > 0 {
		h["Access-Control-Allow-Headers"] = asked
	}
	w.WriteHeader(http.StatusOK)
	return true
}

func allowAnyOrigin(w http.ResponseWriter, r *http.Request) {
	if reads(r) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}
}

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// answer writes a whole response.
func answer(w http.ResponseWriter, status int, contentType, body string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a client that is gone needs no answer
}

func health(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, textPlain, "ok\n") }

func (p *public) certificate(w http.ResponseWriter, _ *http.Request) {
	if p.Fingerprint != nil {
		if sum := p.Fingerprint(); sum != "" {
			answer(w, http.StatusOK, textPlain, sum)
			return
		}
	}
	answer(w, http.StatusNotFound, textPlain, "no certificate")
}

// announced lists the broadcasts below a prefix as they are now. A name that would take more than its line is left
// out.
func (p *public) announced(w http.ResponseWriter, r *http.Request, prefix string) {
	ctx, cancel := context.WithTimeout(r.Context(), p.FetchTimeout)
	defer cancel()
	view, err := p.Admit.Admit(ctx, request(r, prefix))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	names, err := view.Announced()
	if err != nil {
		view.Close(strconv.Itoa(p.fail(w, r, err)))
		return
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.ContainsAny(name, "\r\n") })
	slices.Sort(names)
	answer(w, http.StatusOK, textPlain, strings.Join(names, "\n"))
	view.Close("done")
}

// fetch streams a group of a track: the payloads of its frames, one after the other.
func (p *public) fetch(w http.ResponseWriter, r *http.Request, rest string) {
	segments := strings.FieldsFunc(rest, func(c rune) bool { return c == '/' })
	if len(segments) < 2 {
		answer(w, http.StatusBadRequest, textPlain, "")
		return
	}
	group, err := groupParameter(r)
	if err != nil {
		answer(w, http.StatusBadRequest, textPlain, err.Error())
		return
	}
	last := len(segments) - 1
	ctx, cancel := context.WithTimeout(r.Context(), p.FetchTimeout)
	defer cancel()
	view, err := p.Admit.Admit(ctx, request(r, strings.Join(segments[:last], "/")))
	if err != nil {
		p.fail(w, r, err)
		return
	}
	reason := "closed" // the client left
	defer func() { view.Close(reason) }()
	defer context.AfterFunc(view.Context(), cancel)()
	frames, err := view.Fetch(ctx, segments[last], group)
	if err != nil {
		if view.Context().Err() != nil {
			err = &StatusError{http.StatusServiceUnavailable, err}
		}
		if reason = strconv.Itoa(p.fail(w, r, err)); reason == "504" {
			reason = "timeout"
		}
		return
	}
	defer frames.Close()
	reason = p.stream(w, r, view, frames)
	if reason != "done" {
		panic(http.ErrAbortHandler) // the only way to tell the client that the body is not complete
	}
}

var errBadGroup = errors.New(`group must be a number or "latest"`)

// groupParameter reads ?group=; nil stands for the latest one.
func groupParameter(r *http.Request) (*uint64, error) {
	values, ok := r.URL.Query()["group"]
	if !ok || len(values) == 1 && values[0] == "latest" {
		return nil, nil //nolint:nilnil // nil is a value here
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if len(values) > 1 || err != nil || n > maxGroup {
		return nil, errBadGroup
	}
	return &n, nil
}

// stream writes a group. It returns "done", or why the body is not complete.
func (p *public) stream(w http.ResponseWriter, r *http.Request, view View, frames Group) string {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(view.Context(), cancel)()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return "done"
	}
	control := http.NewResponseController(w)
	_ = control.Flush() // the wait is over, say so before the first frame
	for {
		payload, err := frames.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return "done"
		case view.Context().Err() != nil:
			return "expired"
		case r.Context().Err() != nil:
			return "closed"
		case err != nil:
			p.Logger.Debug("http fetch cut short", "remote", r.RemoteAddr, "err", err)
			return "aborted"
		}
		// A client that does not read must not hold the group for ever. Not every writer has deadlines.
		_ = control.SetWriteDeadline(time.Now().Add(p.FetchTimeout))
		if _, err := w.Write(payload); err != nil {
			return "closed"
		}
		_ = control.Flush()
	}
}

// fail answers with the status of an error and returns it.
func (p *public) fail(w http.ResponseWriter, r *http.Request, err error) int {
	var withStatus *StatusError
	status, text := http.StatusInternalServerError, "internal error"
	switch {
	case errors.As(err, &withStatus):
		status, text = withStatus.Status, strings.ToLower(http.StatusText(withStatus.Status))
	case errors.Is(err, ErrNotFound):
		status, text = http.StatusNotFound, "not found"
	case errors.Is(err, context.DeadlineExceeded):
		status, text = http.StatusGatewayTimeout, "timeout"
	}
	level := slog.LevelDebug
	if status == http.StatusInternalServerError && r.Context().Err() == nil { // else the client has left
		level = slog.LevelWarn
	}
	p.Logger.Log(r.Context(), level, "http request failed", "remote", r.RemoteAddr, "status", status, "err", err)
	answer(w, status, textPlain, text)
	return status
}

// request is what admission must know.
func request(r *http.Request, path string) Request {
	out := Request{Path: "/" + path, Query: r.URL.RawQuery, Remote: r.RemoteAddr, ServerName: hostName(r.Host)}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		out.Local = local.String()
	}
	if r.TLS != nil {
		out.ALPN = r.TLS.NegotiatedProtocol
		if len(r.TLS.VerifiedChains) > 0 {
			out.Certificates = r.TLS.VerifiedChains[0]
		}
	}
	return out
}

// hostName is a Host header without port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
