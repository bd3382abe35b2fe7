package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	randv2 "math/rand/v2"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// Limits of questions.
const (
	// askTimeout bounds one question (A9).
	askTimeout = 10 * time.Second
	// maxRefreshes is how many sessions are asked about again at the same time, and how many ends are reported. Others
	// wait; new sessions do not wait for them.
	maxRefreshes = 128
	// probeEvery is how often, during an outage, one of the running sessions is asked about to find out whether it is
	// over. The others do not wait in a queue, which would meet the server when it comes back.
	probeEvery = 500 * time.Millisecond
	// patience is for how long nobody must have been answered before a new session that was granted a moment ago does
	// not wait for its own answer any more: a server that hangs is as bad as one that is gone.
	patience = 3 * time.Second
	// endGrace is how long Close waits for ends that are not reported yet.
	endGrace = 2 * time.Second
)

// Config is what New takes. Only Authorizer is required.
type Config struct {
	Authorizer auth.Authorizer
	// Node is reported as who asks; may be empty.
	Node string
	// NoRecovery turns the recovery cache off: then nobody new comes in during an outage.
	NoRecovery bool
	// StaleWindow is for how long a session stays beyond the time at which it should have been asked about again; nil =
	// up to the end of its grant.
	StaleWindow *time.Duration
	// Chance is the source of jitter, in [0, 1); nil = random.
	Chance func() float64
	Logger *slog.Logger // nil discards
}

// Manager admits sessions and keeps their leases. Its methods may be called concurrently.
type Manager struct {
	cfg    Config
	leaser auth.Leaser // nil: nobody is asked again
	log    *slog.Logger

	refreshing, ending chan struct{} // slots

	life context.Context // ends endGrace after Close has begun
	stop context.CancelFunc
	wg   sync.WaitGroup // reports of ends

	counters counters

	mu       sync.Mutex
	recovery *recovery // nil: off
	leases   map[string]*Lease
	outage   time.Time // since when nothing was answered; zero = it was
	probed   time.Time // when a running session was asked about last, during an outage
	pending  int       // questions under way
	silent   time.Time // since when all of them have waited
	answered time.Time // when anything was answered last
	closed   bool
}

// New returns a manager. The caller must Close it.
func New(cfg Config) *Manager {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Chance == nil {
		cfg.Chance = randv2.Float64
	}
	m := &Manager{
		cfg: cfg, log: cfg.Logger, leases: make(map[string]*Lease),
		refreshing: make(chan struct{}, maxRefreshes), ending: make(chan struct{}, maxRefreshes),
	}
	m.leaser, _ = cfg.Authorizer.(auth.Leaser)
	if m.leaser != nil && !cfg.NoRecovery {
		m.recovery = newRecovery()
	}
	m.life, m.stop = context.WithCancel(context.Background())
	return m
}

// newID is 32 random hex digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Open asks whether a session may come in. ID, Event and Node of the request are filled in. It blocks for at most 10 s,
// or until ctx ends, which should be when the client has left. The error is an *auth.Error, or the cause of ctx. The
// caller must Close the lease.
func (m *Manager) Open(ctx context.Context, r auth.Request) (*Lease, error) {
	r.ID, r.Event, r.Node = newID(), auth.EventConnect, m.cfg.Node
	l := &Lease{m: m, req: r, asked: questionOf(r), started: time.Now(), pushed: make(chan struct{}, 1), done: make(chan struct{})}
	g, err := m.connect(ctx, l.asked, r)
	now := time.Now()
	if err == nil {
		g, err = g.At(now)
	}
	at, recovered := now, false
	switch {
	case err == nil:
	case ctx.Err() != nil:
		m.report(r, auth.End{Reason: ReasonDropped, Duration: now.Sub(l.started)}) // it may have been let in
		return nil, context.Cause(ctx)
	case errors.Is(err, auth.ErrUnavailable):
		was, known := m.recall(now, l.asked)
		switch {
		case !known:
			return nil, err
		case was.denied:
			return nil, auth.Refuse("it was refused a moment ago, and nobody can be asked now")
		}
		g, at, recovered = was.grant, was.at, true
		m.counters.recovered.Add(1)
		m.log.Info("admitted from the recovery cache", "request", r, "granted", now.Sub(at).Round(time.Millisecond))
	default:
		return nil, err
	}
	l.grant = g
	if m.leaser != nil {
		l.machine = newMachine(m.cfg.StaleWindow, m.cfg.Chance, now, g, at, recovered)
	}
	m.mu.Lock()
	m.leases[r.ID] = l
	m.mu.Unlock()
	return l, nil
}

// errSilent ends a question because nobody gets an answer.
var errSilent = errors.New("nobody is answered")

// connect asks about a new session. Who could come in without an answer does not wait for one that will hardly come.
func (m *Manager) connect(ctx context.Context, q question, r auth.Request) (auth.Grant, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if was, known := m.recall(time.Now(), q); known && !was.denied {
		tick := time.NewTicker(patience / 10)
		done, ended := make(chan struct{}), make(chan struct{})
		defer func() {
			close(done)
			<-ended
		}()
		go func() {
			defer close(ended)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
				}
				if m.hangs(time.Now()) {
					giveUp(errSilent)
					return
				}
			}
		}()
	}
	return m.ask(ctx, q, r)
}

// hangs reports whether nobody who asks has been answered for a while.
func (m *Manager) hangs(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pending > 0 && now.Sub(m.silent) >= patience
}

// mayProbe reports whether a running session may be asked about now: always, or now and then during an outage.
func (m *Manager) mayProbe(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.outage.IsZero() {
		return true
	}
	if now.Sub(m.probed) < probeEvery {
		return false
	}
	m.probed = now
	return true
}

// waiting counts a question in.
func (m *Manager) waiting(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending == 0 {
		m.silent = now
	}
	m.pending++
}

// waited counts a question out.
func (m *Manager) waited(now time.Time, answered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending--
	if answered {
		m.silent, m.answered = now, now
	}
}

// overtaken reports whether a question put at some time has been overtaken by an answer to a later one: then it says
// nothing about how things are.
func (m *Manager) overtaken(asked time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered.After(asked)
}

// ask puts a question and learns from the answer.
func (m *Manager) ask(ctx context.Context, q question, r auth.Request) (auth.Grant, error) {
	asked := time.Now()
	m.waiting(asked)
	g, err := m.cfg.Authorizer.Authorize(ctx, r)
	now := time.Now()
	m.waited(now, !errors.Is(err, auth.ErrUnavailable))
	if m.leaser == nil {
		m.counters.count(r.Event, err)
		return g, err
	}
	if err == nil {
		_, err = g.At(now)
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), errSilent) {
		return g, err // nobody waits for the answer any more
	}
	m.counters.count(r.Event, err)
	m.mu.Lock()
	if m.recovery != nil && err == nil {
		m.recovery.granted(now, asked, q, g)
	} else if m.recovery != nil && errors.Is(err, auth.ErrRefused) {
		m.recovery.denied(now, q)
	}
	since, outage := m.outage, errors.Is(err, auth.ErrUnavailable)
	begins := outage && since.IsZero() && !m.answered.After(asked)
	switch {
	case begins:
		m.outage = now
	case !outage:
		m.outage = time.Time{}
	}
	m.mu.Unlock()
	switch {
	case begins:
		m.log.Warn("authorization is unavailable: running sessions keep their grants", "error", err)
	case !outage && !since.IsZero():
		m.log.Info("authorization is available again", "outage", now.Sub(since).Round(time.Millisecond))
	}
	return g, err
}

func (m *Manager) recall(now time.Time, q question) (memory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recovery == nil {
		return memory{}, false
	}
	return m.recovery.recall(now, q)
}

// Revalidate asks again about the sessions of these ids, and returns those that are asked about: it carries no verdict
// of its own.
func (m *Manager) Revalidate(ids []string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, id := range ids {
		if l := m.leases[id]; l != nil && l.machine != nil {
			l.push()
			out = append(out, id)
		}
	}
	return out
}

// report tells of an end in the background. After Close has waited for long enough nothing is told any more.
func (m *Manager) report(r auth.Request, e auth.End) {
	if m.leaser == nil {
		return
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return
	}
	m.wg.Add(1)
	m.mu.Unlock()
	r.Event = auth.EventEnd
	go func() {
		defer m.wg.Done()
		ctx, cancel := context.WithTimeout(m.life, askTimeout)
		defer cancel()
		if acquire(ctx, m.ending) {
			defer func() { <-m.ending }()
			m.leaser.End(ctx, r, e)
		}
	}()
}

func acquire(ctx context.Context, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// forget drops a lease that has been closed.
func (m *Manager) forget(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, id)
}

// Close waits for ends that are being reported, at most 2 s, and returns when every goroutine of the manager has ended.
// An authorizer that can be closed is. Leases must have been closed before.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	timer := time.AfterFunc(endGrace, m.stop)
	m.wg.Wait()
	timer.Stop()
	m.stop()
	if c, ok := m.cfg.Authorizer.(interface{ Close() }); ok {
		c.Close()
	}
}
