package lease

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// Holder is a session that holds a lease. Its methods are called from one goroutine of the lease, Ended last.
type Holder interface {
	// Granted tells of a new grant that covers the old one: another tier, or more to publish or see.
	Granted(auth.Grant)
	// Ended tells that the session must end now.
	Ended(Ended)
}

// Lease is the permission of one session.
type Lease struct {
	m       *Manager
	req     auth.Request
	asked   question
	started time.Time
	pushed  chan struct{} // cap 1
	done    chan struct{} // closed when the goroutine has ended; it is started by Hold

	mu      sync.Mutex
	grant   auth.Grant
	machine *machine // of the goroutine; nil: nobody is asked again
	stop    context.CancelFunc
	ended   *Ended
	closed  bool
}

// ID names the session to the auth server and on pages: 32 hex digits.
func (l *Lease) ID() string { return l.req.ID }

// Grant is what is granted now.
func (l *Lease) Grant() auth.Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant
}

// Leased reports whether the grant can change or end by itself.
func (l *Lease) Leased() bool { return l.machine != nil }

// Hold begins to watch over the grant on behalf of h. It is called at most once.
func (l *Lease) Hold(h Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.machine == nil || l.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go l.run(ctx, h)
}

// Close ends the lease when its session has ended, and reports the end with the reason, or with the lease's own if that
// is what ended the session. It returns when no method of the holder runs any more; it may be called twice.
func (l *Lease) Close(reason string, sent, received uint64) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	stop := l.stop
	l.mu.Unlock()
	if stop != nil {
		stop()
		<-l.done
	}
	l.m.forget(l.req.ID)
	if l.ended != nil {
		reason = l.ended.Reason
	}
	l.m.report(l.req, auth.End{Reason: reason, Duration: time.Since(l.started), Sent: sent, Received: received})
}

// push wishes for a question now.
func (l *Lease) push() {
	select {
	case l.pushed <- struct{}{}:
	default: // one wish is as good as many
	}
}

// answer is what came of a question.
type answer struct {
	grant auth.Grant
	err   error
}

// recheck bounds the sleep of a lease: the time of an end is one of the wall clock, which may be set meanwhile.
const recheck = 30 * time.Second

// run gives the machine time, wishes and answers until one side ends.
func (l *Lease) run(ctx context.Context, h Holder) {
	defer close(l.done)
	answers := make(chan answer, 1)
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	stale := false
	defer func() { l.m.counters.setStale(&stale, false) }()
	for {
		l.m.counters.setStale(&stale, l.machine.failures > 0)
		if d := l.machine.deadline(); !d.IsZero() {
			timer.Reset(min(recheck, max(0, time.Until(d))))
		} else {
			timer.Stop()
		}
		var e effect
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			e = l.machine.tick(time.Now())
		case <-l.pushed:
			e = l.machine.push()
		case a := <-answers:
			e = l.machine.answered(time.Now(), a.grant, a.err)
		}
		if e.adopted {
			l.mu.Lock()
			l.grant = l.machine.grant
			l.mu.Unlock()
			h.Granted(l.machine.grant)
		}
		if e.ask {
			asking.Go(func() { answers <- l.refresh(ctx) })
		}
		if e.end != nil {
			l.ended = e.end
			l.m.counters.ended(*e.end)
			h.Ended(*e.end)
			return
		}
	}
}

// errNotAsked is the answer where it is known that nobody answers, and another session is just finding out whether that
// is still so.
var errNotAsked = auth.Unavailable("not asked, since nobody is answered at present")

// refresh puts the question again. Where many sessions ask, it waits for its turn; during an outage it does not.
func (l *Lease) refresh(ctx context.Context) answer {
	if !acquire(ctx, l.m.refreshing) {
		return answer{err: context.Cause(ctx)}
	}
	defer func() { <-l.m.refreshing }()
	if !l.m.mayProbe(time.Now()) {
		return answer{err: errNotAsked}
	}
	r := l.req
	r.Event = auth.EventRevalidate
	for tries := 1; ; tries++ {
		asked := time.Now()
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		g, err := l.m.ask(ctx, l.asked, r)
		cancel()
		if tries > 1 || !errors.Is(err, auth.ErrUnavailable) || !l.m.overtaken(asked) {
			return answer{g, err}
		}
	}
}
