package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/moqmesh/moqmesh/auth"
)

// Refusals are told in full while they are few: so many at once, and so many a second. A flood of them must not become
// a flood of log lines; the next line says how many had none.
const (
	refusalBurst = 100
	refusalRate  = 10
)

// refusals writes the log lines of those who are not let in.
type refusals struct {
	limit  *rate.Limiter
	silent atomic.Uint64 // without a line since the last one
}

func newRefusals() *refusals { return &refusals{limit: rate.NewLimiter(refusalRate, refusalBurst)} }

// tell logs why somebody was not let in. It tells apart who is not wanted, and what could not be decided.
func (r *refusals) tell(log *slog.Logger, path string, err error) {
	if _, ok := isLANPath(path); ok {
		path = "/.cluster/…" // the rest is a credential
	}
	switch {
	case errors.Is(err, auth.ErrUnavailable), errors.Is(err, auth.ErrInvalid):
		r.line(log, slog.LevelWarn, "session not admitted, nothing was decided", path, err)
	case errors.Is(err, auth.ErrRefused), errors.Is(err, errLate), errors.Is(err, errMemory):
		r.line(log, slog.LevelInfo, "session refused", path, err)
	default: // the client has left
		log.Debug("session not admitted", "error", err)
	}
}

func (r *refusals) line(log *slog.Logger, level slog.Level, text, path string, err error) {
	if !r.limit.Allow() {
		r.silent.Add(1)
		return
	}
	attrs := []any{"path", path, "error", err}
	if n := r.silent.Swap(0); n > 0 {
		attrs = append(attrs, "unlogged", n)
	}
	log.Log(context.Background(), level, text, attrs...)
}
