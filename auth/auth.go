// Package auth decides who may publish and see what.
//
// Every session and every one-shot HTTP request is admitted by one [Authorizer], which turns a [Request] into a
// [Grant] or refuses. Today there is one kind: [Public] rules.
package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/paths"
)

// An Error wraps one of these. An outage is not a refusal (A13).
var (
	ErrRefused     = errors.New("refused")
	ErrUnavailable = errors.New("authorization is unavailable")
)

// Error is a decision against a session, or the lack of one.
type Error struct {
	// Status is the HTTP status to answer with: 401 or 403 refuse, anything else is an outage. Session protocols
	// have no statuses: a refusal is "unauthorized" there, an outage the application code 64+Status.
	Status int
	Reason string // for the log; it never quotes a query or token
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %s", e.Unwrap(), e.Reason) }

// Unwrap leads to ErrRefused or ErrUnavailable.
func (e *Error) Unwrap() error {
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		return ErrRefused
	}
	return ErrUnavailable
}

func refuse(format string, args ...any) error {
	return &Error{Status: http.StatusUnauthorized, Reason: fmt.Sprintf(format, args...)}
}

// Transport says how a session came in.
type Transport string

// The transports.
const (
	TransportQUIC Transport = "quic" // raw QUIC and WebTransport
	TransportHTTP Transport = "http" // one-shot requests
)

// Role is what a client declares that it will do; the zero Role is both.
type Role string

// The roles.
const (
	RoleBoth       Role = ""
	RolePublisher  Role = "publisher"
	RoleSubscriber Role = "subscriber"
)

// Request is what is known of a session that wants in. Path and query are as the client sent them.
type Request struct {
	Transport  Transport
	Remote     string // ip:port
	Local      string // ip:port, may be empty
	ServerName string // may be empty
	ALPN       string // may be empty
	Path       string // where it dialed
	Query      string // without "?"; may hold a credential
	Role       Role
}

// String and LogValue leave out the query (A7).
func (r Request) String() string {
	return fmt.Sprintf("%s %s path=%q role=%q", r.Transport, r.Remote, r.Path, r.Role)
}

// GoString hides the query from %#v too.
func (r Request) GoString() string { return "auth.Request(" + r.String() + ")" }

// LogValue names the client, without the query.
func (r Request) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("transport", string(r.Transport)),
		slog.String("remote", r.Remote),
		slog.String("path", r.Path),
	}
	if r.Query != "" {
		attrs = append(attrs, slog.String("query", "redacted"))
	}
	if r.Role != RoleBoth {
		attrs = append(attrs, slog.String("role", string(r.Role)))
	}
	return slog.GroupValue(attrs...)
}

// Token is the credential that the query presents: the last non-empty jwt parameter, not decoded, or nothing (A5).
func (r Request) Token() string {
	token := ""
	for part := range strings.SplitSeq(r.Query, "&") {
		if value, ok := strings.CutPrefix(part, "jwt="); ok && value != "" {
			token = value
		}
	}
	return token
}

// Grant is what a session may do (A14).
type Grant struct {
	// Root is the path that names on the wire are relative to; clean.
	Root string
	// Publish and Subscribe are absolute and lie below Root.
	Publish, Subscribe paths.Set
	// Expires is when the session must end; zero = never.
	Expires time.Time
	Tier    string // label of statistics
	Peer    bool   // the session is a cluster peer's
}

// For narrows the grant to the role that the client declares (A15): who only publishes needs something to publish and
// is told of no names, and the other way round. The error is an *Error that refuses.
func (g Grant) For(role Role) (Grant, error) {
	switch role {
	case RolePublisher:
		g.Subscribe = paths.Set{}
		if g.Publish.Empty() {
			return Grant{}, refuse("a publisher without anything to publish here")
		}
	case RoleSubscriber:
		g.Publish = paths.Set{}
		if g.Subscribe.Empty() {
			return Grant{}, refuse("a subscriber without anything to see here")
		}
	case RoleBoth:
		if g.Publish.Empty() && g.Subscribe.Empty() {
			return Grant{}, refuse("nothing is granted here")
		}
	default:
		return Grant{}, refuse("unknown role %q", role)
	}
	return g, nil
}

// Authorizer admits sessions. Implementations are safe for concurrent use.
type Authorizer interface {
	// Authorize decides on a request, its role included. It may block until ctx ends; an error is an *Error.
	Authorize(ctx context.Context, r Request) (Grant, error)
}
