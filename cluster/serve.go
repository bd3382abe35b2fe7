package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errHandedOver ends a session whose successor serves.
var errHandedOver = errors.New("handed over to the address of the GOAWAY")

// serving is a session that runs.
type serving struct {
	Session
	started time.Time
	stop    context.CancelCauseFunc
	done    chan struct{} // closed when Serve has returned
	err     error         // why; valid after done
}

// begin runs a session in a goroutine of its own; whoever holds the result waits for it with end.
func (d *dial) begin(ctx context.Context, sess Session) *serving {
	ctx, stop := context.WithCancelCause(ctx)
	s := &serving{Session: sess, started: time.Now(), stop: stop, done: make(chan struct{})}
	d.addSession(sess.ID())
	d.log.Info("cluster peer connected", "session", sess.ID())
	go func() {
		defer close(s.done)
		s.err = sess.Serve(ctx)
		d.removeSession(sess.ID())
	}()
	return s
}

// serve follows a session, and those that it hands over to, until the last has ended. It returns why that one did.
func (d *dial) serve(ctx context.Context, s *serving) error {
	d.enter(StateConnected)
	goaway := s.Goaway()
	for {
		select {
		case <-s.done:
			return d.ended(s)
		case uri, ok := <-goaway:
			goaway = nil
			if !ok {
				continue
			}
			if uri == "" || d.cfg.Redirect == RedirectIgnore {
				// A draining peer: dialing it now would only lead to the same relay (C12).
				d.enter(StateDraining)
				d.log.Info("cluster peer drains", "session", s.ID())
				continue
			}
			next, err := d.handOver(ctx, s, uri)
			if err != nil {
				return err
			}
			s, goaway = next, next.Goaway()
			d.enter(StateConnected)
		}
	}
}

// ended waits for a session to end and returns why it did.
func (d *dial) ended(s *serving) error {
	<-s.done
	s.stop(nil)
	d.credit(s)
	if s.err == nil {
		return fmt.Errorf("session %d ended", s.ID())
	}
	return s.err
}

// credit lets a session that has lasted long enough reset the back-off (C10).
func (d *dial) credit(s *serving) {
	if time.Since(s.started) < GoodSession {
		return
	}
	d.pause.Reset()
	d.forgetAttempts()
	d.selfSaid = false
}

// handOver dials the address of a GOAWAY while old serves on, for the time of the handover at most (C12). If that
// fails, old is over when it returns, and the error tells why there is no successor.
func (d *dial) handOver(ctx context.Context, old *serving, uri string) (*serving, error) {
	e, err := CheckRedirect(d.cfg.Redirect, d.entry, uri)
	if err != nil {
		old.stop(err)
		_ = d.ended(old)
		return nil, err
	}
	d.enter(StateDraining)
	d.log.Info("cluster peer moves", "session", old.ID(), "to", e.Name())
	timer := time.AfterFunc(d.cfg.Handover, func() { old.stop(errHandedOver) })
	next, err := d.connect(ctx, e)
	if err != nil {
		_ = d.ended(old)
		timer.Stop()
		return nil, err
	}
	d.credit(old)
	d.retire(old, timer)
	return next, nil
}

// retire lets a session end by itself or by its timer, beside the loop.
func (d *dial) retire(old *serving, timer *time.Timer) {
	d.retired.Go(func() {
		<-old.done
		timer.Stop()
		old.stop(nil)
	})
}
