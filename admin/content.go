package admin

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrNotFound says that there is no such track or group. Errors of a View may wrap it.
var ErrNotFound = errors.New("not found")

// StatusError is a request that ends with a status other than those of the table of endpoints: a refused admission
// (401, 403), an outage of it (502).
type StatusError struct {
	Status int
	Err    error
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d: %v", e.Status, e.Err) }
func (e *StatusError) Unwrap() error { return e.Err }

// Request is what admission must know of an HTTP request (A12).
type Request struct {
	Path       string // the auth path: starts with a slash
	Query      string // without "?"; may hold a credential
	Remote     string // ip:port
	Local      string // ip:port
	ServerName string // Host without port, lower case
	ALPN       string
	// Certificates is the verified chain of the client, leaf first; empty = it presented none.
	Certificates []*x509.Certificate
}

// Admitter admits one-shot requests.
type Admitter interface {
	// Admit decides on a request. The error should be a *StatusError. The caller closes the view.
	Admit(ctx context.Context, r Request) (View, error)
}

// View is what an admitted request may see. Its root is the path of the request, or what admission put in its place.
type View interface {
	// Context ends when the admission does, at the end of a lease or of the relay; this cuts the body.
	Context() context.Context
	// Announced lists the broadcasts below the root as they are now, relative to it.
	Announced() ([]string, error)
	// Fetch opens a group of a track of the broadcast at the root; nil = the latest one. It waits for broadcast and
	// group until ctx ends. The caller closes the result.
	Fetch(ctx context.Context, track string, group *uint64) (Group, error)
	// Close ends the visit; reason is "done", "timeout", "closed" (by the client), "expired", "aborted" (the group
	// failed) or a status.
	Close(reason string)
}

// Group delivers the frames of one group.
type Group interface {
	// Next returns the payload of the next frame, valid until the next call; io.EOF after the last. It waits until ctx
	// ends.
	Next(ctx context.Context) ([]byte, error)
	Close()
}

// PublicConfig is what the public endpoints read.
type PublicConfig struct {
	Admit Admitter
	// Fingerprint returns the SHA-256 of the first certificate as 64 lower-case hex digits; empty = none.
	Fingerprint func() string
	// FetchTimeout bounds the wait for broadcast and group; 0 = 30 s.
	FetchTimeout time.Duration
	Logger       *slog.Logger // nil discards
}
