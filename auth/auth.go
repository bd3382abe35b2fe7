// Package auth decides who may publish and see what.
//
// Every session and every one-shot HTTP request is admitted by one [Authorizer], which turns a [Request] into a
// [Grant] or refuses. [Public] rules are one, and admit for good. Others are asked again and told of ends, see [Leaser];
// package lease keeps the life of what they grant, package remote asks an auth server, and package serve is one, in this
// process or behind HTTP.
//
// An answer is one of four: a grant, a refusal, an invalid grant, or none at all. [Error] tells the last three apart.
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
	ErrInvalid     = errors.New("invalid grant")
)

// Error is a decision against a session, or the lack of one.
type Error struct {
	// Status is the HTTP status to answer with: 401 or 403 refuse, anything else is an outage. Session protocols
	// have no statuses: a refusal is "unauthorized" there, an outage the application code 64+Status.
	Status int
	// Invalid: there was an answer, but it breaks the contract (A10). It admits nobody and says nothing about policy.
	Invalid bool
	Reason  string // for the log; it never quotes a query or token
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %s", e.Unwrap(), e.Reason) }

// Unwrap leads to ErrRefused, ErrUnavailable or ErrInvalid.
func (e *Error) Unwrap() error {
	switch {
	case e.Invalid:
		return ErrInvalid
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return ErrRefused
	}
	return ErrUnavailable
}

// Refuse is a refusal.
func Refuse(format string, args ...any) error {
	return &Error{Status: http.StatusUnauthorized, Reason: fmt.Sprintf(format, args...)}
}

// Unavailable is an outage.
func Unavailable(format string, args ...any) error {
	return &Error{Status: http.StatusBadGateway, Reason: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return &Error{Status: http.StatusBadGateway, Invalid: true, Reason: fmt.Sprintf(format, args...)}
}

// Transport says how a session came in.
type Transport string

// The transports.
const (
	TransportQUIC      Transport = "quic" // raw QUIC and WebTransport
	TransportWebSocket Transport = "websocket"
	TransportHTTP      Transport = "http" // one-shot requests
)

// Role is what a client declares that it will do; the zero Role is both.
type Role string

// The roles.
const (
	RoleBoth       Role = ""
	RolePublisher  Role = "publisher"
	RoleSubscriber Role = "subscriber"
)

// Event says what a Request is about.
type Event string

// The events of a session's life, as an auth server is told of them (auth 5.2).
const (
	EventConnect    Event = "connect"
	EventRevalidate Event = "revalidate"
	EventEnd        Event = "end"
)

// Request is what is known of a session that wants in, or is in. Path and query are as the client sent them.
type Request struct {
	ID         string // 32 hex digits, the same in all events of a session; empty where nobody asks again
	Event      Event  // empty stands for connect
	Node       string // who asks; may be empty
	Transport  Transport
	Remote     string // ip:port
	Local      string // ip:port, may be empty
	ServerName string // may be empty
	ALPN       string // may be empty
	Path       string // where it dialed
	Query      string // without "?"; may hold a credential
	SetupToken *SetupToken
	Role       Role
	TLS        *Identity // the verified certificate of the client; nil = none
}

// SetupToken is a credential that came in the session's own handshake.
type SetupToken struct {
	Kind  uint64 // 0 = what "jwt" is in a query
	Value []byte
}

// String and LogValue leave out credentials (A7).
func (r Request) String() string {
	return fmt.Sprintf("%s %s path=%q role=%q", r.Transport, r.Remote, r.Path, r.Role)
}

// GoString hides them from %#v too.
func (r Request) GoString() string { return "auth.Request(" + r.String() + ")" }

// LogValue names the client, without credentials.
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
	// Mounts redirect what is read below Root, whose names Subscribe has; absolute. Nothing is published through them.
	Mounts paths.Mounts
	// Expires is when the session must end; zero = never.
	Expires time.Time
	// Revalidate is when to ask again, counted from the answer; 0 = never.
	Revalidate time.Duration
	Tier       string // label of statistics
	Peer       bool   // the session is a cluster peer's
}

// For narrows the grant to the role that the client declares (A15): who only publishes needs something to publish and
// is told of no names, and the other way round. The error is an *Error that refuses.
func (g Grant) For(role Role) (Grant, error) {
	switch role {
	case RolePublisher:
		g.Subscribe = paths.Set{}
		if g.Publish.Empty() {
			return Grant{}, Refuse("a publisher without anything to publish here")
		}
	case RoleSubscriber:
		g.Publish = paths.Set{}
		if g.Subscribe.Empty() {
			return Grant{}, Refuse("a subscriber without anything to see here")
		}
	case RoleBoth:
		if g.Publish.Empty() && g.Subscribe.Empty() {
			return Grant{}, Refuse("nothing is granted here")
		}
	default:
		return Grant{}, Refuse("unknown role %q", role)
	}
	return g, nil
}

// Authorizer admits sessions. Implementations are safe for concurrent use.
type Authorizer interface {
	// Authorize decides on a request, its role included. It may block until ctx ends; an error is an *Error.
	Authorize(ctx context.Context, r Request) (Grant, error)
}

// Leaser is an Authorizer whose grants may end before the session does. It is asked again about every session that it
// let in, as its grants and operators want it, and told when the session has ended.
type Leaser interface {
	Authorizer
	// End reports the end of a session, at most once and best effort.
	End(ctx context.Context, r Request, e End)
}

// End is how a session ended.
type End struct {
	Reason         string
	Duration       time.Duration
	Sent, Received uint64 // bytes of payload, from the relay's view
}
