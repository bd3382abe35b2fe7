package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Idle holds sessions on which nothing happens.
type Idle struct {
	Target
	Sessions int
	// Bare sessions ask for nothing. Others wait for announcements and have a subscription with one open group.
	Bare       bool
	Settle     time.Duration // after the last is there, before the window
	Window     time.Duration
	Connecting int
	PerSocket  int
}

// IdleFigures are what an idle run measures.
type IdleFigures struct {
	Sessions   int     `json:"sessions"`
	Alive      int     `json:"alive"` // at the end
	Ready      Delays  `json:"ready_ms"`
	KiB        float64 `json:"relay_kib_per_session,omitempty"` // growth of resident memory
	Handshake  float64 `json:"relay_cpu_ms_per_handshake,omitempty"`
	CPU        float64 `json:"relay_cpu_us_per_session_s,omitempty"` // microseconds per session and second
	OwnCPU     float64 `json:"gen_cpu_us_per_session_s"`
	RampPct    float64 `json:"gen_cpu_pct_connecting"`
	RampOthers float64 `json:"other_cpu_pct_connecting"`
}

// idleRun is a run under way.
type idleRun struct {
	Idle
	name   string
	hall   *hall
	source *source
	watch  *watch
	closed []func()
	alive  atomic.Int64
	ready  lateness
	speaks *thin
}

// Run connects, waits and measures.
func (o Idle) Run(ctx context.Context) (Result, error) {
	if o.Sessions < 1 || o.Connecting < 1 || o.PerSocket < 1 || o.Window <= 0 || o.Settle < 0 {
		return Result{}, errors.New("sessions, connecting, per-socket and window: above 0")
	}
	r := &idleRun{Idle: o, name: runName(), watch: newWatch(2, minFrame), closed: make([]func(), o.Sessions)}
	defer r.close()
	if err := r.publish(ctx); err != nil {
		return Result{}, err
	}
	m := meter{o.PIDs}
	before, err := m.read()
	if err != nil {
		return Result{}, err
	}
	ramp, _, err := m.during(func() error { return r.connect(ctx) })
	if err == nil {
		err = sleep(ctx, o.Settle)
	}
	if err != nil {
		return Result{}, err
	}
	load, end, err := m.window(ctx, o.Window)
	if err != nil {
		return Result{}, err
	}
	n := float64(o.Sessions)
	ready := r.ready.take()
	res := &Result{Mode: "idle", Load: load, Idle: &IdleFigures{
		Sessions: o.Sessions, Alive: int(r.alive.Load()), Ready: delays(&ready), RampPct: ramp.Own, RampOthers: ramp.Others,
		OwnCPU: per(load.Own/100*1e6, n),
	}}
	if len(o.PIDs) > 0 {
		res.Idle.KiB = per(float64(grown(before, end))/1024, n)
		res.Idle.Handshake = per(ramp.relayCPU()*1000, n)
		res.Idle.CPU = per(load.relayCPU()*1e6/load.Seconds, n)
	}
	res.speaks(r.speaks)
	res.fault(uint64(o.Sessions-res.Idle.Alive), "sessions ended")
	return res.finish(nil), nil
}

// publish puts one frame into a group that stays open.
func (r *idleRun) publish(ctx context.Context) error {
	r.source = &source{feed: feed{rate: 1e-6, size: minFrame, per: 2, maxAge: time.Minute}}
	if err := r.source.open(ctx, r.Target, r.Publish, r.name, 0, 0); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	if err := awaitAnnounced(ctx, r.Target, r.name); err != nil {
		return err
	}
	r.source.run(r.watch, 1)
	var err error
	r.hall, err = r.newHall(r.Sessions, r.PerSocket)
	return err
}

// connect opens all sessions; each is ready when it has what it asked for.
func (r *idleRun) connect(ctx context.Context) error {
	dials, ctx := errgroup.WithContext(ctx)
	dials.SetLimit(r.Connecting)
	for i := range r.Sessions {
		dials.Go(func() error {
			begin := time.Now()
			if err := r.open(ctx, i); err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
			r.ready.sent(begin, time.Now())
			return nil
		})
	}
	return dials.Wait()
}

// open opens session i.
func (r *idleRun) open(ctx context.Context, i int) error {
	t, err := r.hall.dial(ctx, i)
	if err != nil {
		return err
	}
	if i == 0 {
		r.speaks = t
	}
	r.closed[i] = func() { t.conn.Close(0, "") }
	r.alive.Add(1)
	context.AfterFunc(t.conn.Context(), func() { r.alive.Add(-1) })
	if r.Bare {
		return nil
	}
	v, err := view(ctx, t, subscription{broadcast: r.name, track: trackName, maxAge: time.Minute}, r.watch, r.hall.shard(i))
	if err != nil {
		return err
	}
	seen := make(chan struct{})
	v.reading.Go(func() {
		told := false
		_ = t.announced(t.conn.Context(), r.name, func(string, bool) bool { // ends with the session
			if !told {
				told = true
				close(seen)
			}
			return true
		})
	})
	r.closed[i] = v.Close
	if err := v.receives(ctx); err != nil {
		return err
	}
	select {
	case <-seen:
		return nil
	case <-v.ended:
		return v.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *idleRun) close() {
	var closing errgroup.Group
	for _, c := range r.closed {
		if c != nil {
			closing.Go(func() error { c(); return nil })
		}
	}
	_ = closing.Wait() // none fails
	if r.hall != nil {
		r.hall.close()
	}
	if r.source != nil {
		r.source.close()
	}
}
