package relay

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/moqmesh/moqmesh/internal/overload"
)

const (
	// lookEvery is how often the lateness of the process is looked at.
	lookEvery = 250 * time.Millisecond
	// joinBurst is how many clients may begin at the same moment while joining is slowed down, and longestJoin how long one
	// may have to wait for its turn: more are refused at once.
	joinBurst   = 16
	longestJoin = 5 * time.Second
)

// errLate refuses new clients of a relay that is late: those who watch come first.
var errLate = errors.New("overloaded")

// pressure is what is done about lateness: joining is slowed down, clients are refused, readers skip.
type pressure struct {
	joins   *rate.Limiter
	full    atomic.Bool
	wait    atomic.Int64 // nanoseconds, as last measured
	refused atomic.Uint64
	delayed atomic.Uint64

	memory shortage
}

func newPressure() *pressure { return &pressure{joins: rate.NewLimiter(rate.Inf, joinBurst)} }

// pace is endpoint.Config.Pace.
func (p *pressure) pace(ctx context.Context) error {
	turn := p.joins.Reserve()
	wait := turn.Delay()
	if wait == 0 {
		return nil
	}
	if wait > longestJoin {
		turn.Cancel()
		p.refused.Add(1)
		return errLate
	}
	p.delayed.Add(1)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// admit fails with what a session that may not come in is told: errLate or errMemory. Peers may come in: others watch
// through them.
func (p *pressure) admit(peer bool) error {
	switch {
	case peer:
		return nil
	case p.full.Load():
		p.refused.Add(1)
		return errLate
	case p.memory.full.Load():
		p.memory.refused.Add(1)
		return errMemory
	}
	return nil
}

// follow makes a verdict true.
func (r *Relay) follow(v overload.Verdict, wait time.Duration) {
	p := r.pressure
	p.wait.Store(int64(wait))
	limit := rate.Limit(v.Joins)
	if math.IsInf(v.Joins, 1) {
		limit = rate.Inf
	}
	if p.joins.Limit() != limit {
		p.joins.SetLimit(limit)
	}
	r.cache.SetPatience(v.Patience)
	if was := p.full.Swap(v.Full); was == v.Full {
		return
	}
	if v.Full {
		r.log.Warn("overloaded: new clients are refused, slow readers skip", "late", wait, "limit", r.cfg.Lateness, "sessions", r.sessions.len())
		return
	}
	r.log.Info("no longer overloaded", "late", wait, "refused", p.refused.Load())
}

// watchLateness runs until ctx ends. Goroutines that wait are seen only while the process runs at all: where others take its
// core away, it is the looks that come late.
func (r *Relay) watchLateness(ctx context.Context) {
	meter, core := overload.NewMeter(), overload.NewCore(r.cfg.Lateness)
	due := time.Now().Add(lookEvery)
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			now := time.Now()
			wait := max(meter.Read(), now.Sub(due))
			r.follow(core.Observe(now, wait), wait)
			due = now.Add(lookEvery)
			timer.Reset(lookEvery)
		case <-ctx.Done():
			return
		}
	}
}
