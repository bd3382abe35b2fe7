package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/internal/backoff"
)

// dial is the loop of one peer. Its goroutine owns everything but the state under mu.
type dial struct {
	cfg      *Config
	counters *counters
	entry    Entry
	cancel   context.CancelFunc
	log      *slog.Logger
	pause    *backoff.Backoff
	selfSaid bool           // the warning of C22a
	retired  sync.WaitGroup // sessions that were handed over

	mu    sync.Mutex
	state Status
}

// run dials, serves and pauses until ctx ends. It returns after the last session has ended.
func (d *dial) run(ctx context.Context) {
	defer d.retired.Wait()
	for ctx.Err() == nil {
		d.enter(StateDialing)
		s, err := d.connect(ctx, d.entry)
		if err == nil {
			err = d.serve(ctx, s)
		}
		if ctx.Err() != nil {
			return
		}
		d.rest(ctx, err)
	}
}

// connect makes one attempt, bounded by the configured time.
func (d *dial) connect(ctx context.Context, e Entry) (*serving, error) {
	d.log.Info("dialing cluster peer", "attempt", d.attempt())
	e = e.WithToken(d.sharedToken())
	dialCtx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	sess, err := d.cfg.Dial(dialCtx, e)
	if err != nil {
		d.counters.failures.Add(1)
		return nil, &dialError{err, e.scrub(err.Error())}
	}
	return d.begin(ctx, sess), nil
}

// dialError is a failure that came before there was a session. Its text is fit to be shown.
type dialError struct {
	err  error
	text string
}

func (e *dialError) Error() string { return e.text }
func (e *dialError) Unwrap() error { return e.err }

// sharedToken is the current content of the token file.
func (d *dial) sharedToken() string {
	if d.cfg.Token == nil {
		return ""
	}
	token, changed, err := d.cfg.Token.Token()
	switch {
	case changed && err != nil:
		d.log.Warn("cluster token file is unusable, keeping the last token", "err", err)
	case changed:
		d.log.Info("cluster token file was read again")
	}
	return token
}

// rest records why the peer is not connected and sleeps until the next dial.
func (d *dial) rest(ctx context.Context, err error) {
	self := errors.Is(err, ErrSelf)
	var pause time.Duration
	if self {
		pause = d.pause.Last()
	} else {
		pause = d.pause.Next(time.Now())
	}
	text := d.fail(err)
	d.enterWaiting(pause)
	log := d.log.With("err", text, "retry", pause.Round(time.Millisecond))
	var failed *dialError
	switch {
	case self && d.selfSaid:
		log.Debug("cluster peer is still ourselves")
	case self:
		log.Warn("cluster peer is ourselves")
	case errors.Is(err, ErrRefused):
		log.Warn("cluster peer refused us")
	case errors.As(err, &failed):
		log.Warn("cluster peer cannot be reached")
	default:
		log.Warn("cluster peer session closed")
	}
	d.selfSaid = d.selfSaid || self
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
