package client

import (
	"errors"
	"fmt"
	"net"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// Errors that callers branch on. Those of a request come wrapped in a *RequestError.
var (
	// ErrClosed means that the client, the broadcast, the track or the reader was closed on this side.
	ErrClosed = fmt.Errorf("closed: %w", net.ErrClosed)
	// ErrPublished means that this client publishes that path, or that track, already.
	ErrPublished = errors.New("published already")
	// ErrURL means that a URL is malformed. The error does not repeat it, since it may hold credentials.
	ErrURL = errors.New("malformed URL")

	// ErrNotFound, ErrUnroutable, ErrUnauthorized, ErrGoingAway, ErrUnsupported, ErrNoCapacity and ErrTimeout are
	// answers of the peer.
	ErrNotFound     = session.ErrNotFound
	ErrUnroutable   = session.ErrUnroutable
	ErrUnauthorized = session.ErrUnauthorized
	ErrGoingAway    = session.ErrGoingAway
	ErrUnsupported  = session.ErrUnsupported
	ErrNoCapacity   = session.ErrNoCapacity
	ErrTimeout      = session.ErrTimeout

	// ErrOld and ErrEvicted end a group that was given up because it fell too far behind, or to save memory.
	ErrOld     = media.ErrOld
	ErrEvicted = media.ErrEvicted
)

// RequestError says which request failed. Err is the cause: one of the errors above, or a *transport.SessionError if
// the session ended.
type RequestError struct {
	Op    string // "subscribe", "fetch", "track info", "announced"
	Path  string
	Track string // empty where the request names none
	Err   error
}

func (e *RequestError) Error() string {
	if e.Track == "" {
		return fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Err)
	}
	return fmt.Sprintf("%s %q of %q: %v", e.Op, e.Track, e.Path, e.Err)
}

func (e *RequestError) Unwrap() error { return e.Err }
