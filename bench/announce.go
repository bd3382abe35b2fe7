package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/route"
)

// Announce announces many broadcasts on one session and waits until watchers, at the same relay or elsewhere, know all of
// them; then one more watcher comes; then all are withdrawn.
type Announce struct {
	Target
	Broadcasts int
	Watchers   int
	Limit      time.Duration // for each step
}

// AnnounceFigures are what an announce run measures. Times are those of the slowest watcher.
type AnnounceFigures struct {
	Broadcasts int `json:"broadcasts"`
	Watchers   int `json:"watchers"`

	Announced float64 `json:"announced_ms"` // from the first announcement to the last one at the last watcher
	Late      float64 `json:"late_ms"`      // from the request of a watcher that comes later
	Withdrawn float64 `json:"withdrawn_ms"`

	AnnounceCPU float64 `json:"relay_cpu_s_announce,omitempty"` // all relays
	LateCPU     float64 `json:"relay_cpu_s_late,omitempty"`
	WithdrawCPU float64 `json:"relay_cpu_s_withdraw,omitempty"`
	OwnCPU      float64 `json:"gen_cpu_s_announce"`
	KiB         float64 `json:"relay_kib_per_broadcast,omitempty"`
	Missing     int     `json:"missing"` // announcements that did not come, or stayed
}

// listener counts what one session is told.
type listener struct {
	thin *thin
	done chan struct{} // closed when reading has ended

	mu     sync.Mutex
	active int
	want   int
	at     chan time.Time // of capacity 1: gets the time when active became want
}

// expect returns what tells when so many are active.
func (l *listener) expect(want int) <-chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := make(chan time.Time, 1)
	l.want, l.at = want, at
	l.check()
	return at
}

func (l *listener) check() {
	if l.at != nil && l.active == l.want {
		l.at <- time.Now()
		l.at = nil
	}
}

func (l *listener) missing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.want-l.active, l.active-l.want)
}

func (l *listener) read(ctx context.Context, prefix string) {
	defer close(l.done)
	_ = l.thin.announced(ctx, prefix, func(_ string, active bool) bool { // what is missing then shows
		l.mu.Lock()
		defer l.mu.Unlock()
		if active {
			l.active++
		} else {
			l.active--
		}
		l.check()
		return true
	})
}

// announceRun is a run under way.
type announceRun struct {
	Announce
	prefix    string
	meter     meter
	hall      *hall
	client    *client.Client
	listeners []*listener
}

// Run makes the three steps.
func (o Announce) Run(ctx context.Context) (Result, error) {
	if o.Broadcasts < 1 || o.Watchers < 1 || o.Limit <= 0 || o.Broadcasts > maxNames/2 {
		return Result{}, errors.New("broadcasts, watchers and limit: above 0, and no more than a million broadcasts")
	}
	r := &announceRun{Announce: o, prefix: runName(), meter: meter{o.PIDs}}
	defer r.close()
	if err := r.start(ctx); err != nil {
		return Result{}, err
	}
	return r.measure(ctx)
}

// start connects everybody, and sees one broadcast through.
func (r *announceRun) start(ctx context.Context) (err error) {
	if r.client, err = client.Dial(ctx, r.Publish, r.Target.client(client.RolePublisher)); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	if r.hall, err = r.newHall(r.Watchers+1, 1); err != nil {
		return err
	}
	for range r.Watchers {
		if err := r.listen(ctx); err != nil {
			return err
		}
	}
	if err := r.announce("probe"); err != nil {
		return err
	}
	_, missing := r.await(ctx, r.listeners, 1, time.Now())
	if missing > 0 {
		return errNotAnnounced
	}
	return context.Cause(ctx)
}

// listen adds a watcher.
func (r *announceRun) listen(ctx context.Context) error {
	t, err := r.hall.dial(ctx, len(r.listeners))
	if err != nil {
		return fmt.Errorf("watcher: %w", err)
	}
	l := &listener{thin: t, done: make(chan struct{})}
	r.listeners = append(r.listeners, l)
	go l.read(t.conn.Context(), r.prefix)
	return nil
}

func (r *announceRun) announce(name string) error {
	b, err := r.client.Publish(r.prefix + "/" + name)
	if err != nil {
		return err
	}
	return b.Announce(route.Cost{})
}

// await returns how long after t0 the last of the listeners had exactly want broadcasts, and how many are missing if the
// time is up before.
func (r *announceRun) await(ctx context.Context, who []*listener, want int, t0 time.Time) (took time.Duration, missing int) {
	limit := time.NewTimer(r.Limit)
	defer limit.Stop()
	expected := make([]<-chan time.Time, len(who))
	for i, l := range who {
		expected[i] = l.expect(want)
	}
	for i, l := range who {
		select {
		case at := <-expected[i]:
			took = max(took, at.Sub(t0))
			continue
		case <-l.done:
		case <-limit.C:
			limit.Reset(0) // for the others too
		case <-ctx.Done():
		}
		missing += l.missing()
	}
	return took, missing
}

// measure makes the steps.
func (r *announceRun) measure(ctx context.Context) (Result, error) {
	f := &AnnounceFigures{Broadcasts: r.Broadcasts, Watchers: r.Watchers}
	res := &Result{Mode: "announce", Announce: f}
	res.speaks(r.listeners[0].thin)
	before, err := r.meter.read()
	if err != nil {
		return *res, err
	}
	var end usage
	res.Load, end, err = r.step(&f.Announced, &f.AnnounceCPU, &f.Missing, func(t0 time.Time) (time.Duration, int, error) {
		for i := range r.Broadcasts {
			if err := r.announce(strconv.Itoa(i)); err != nil {
				return 0, 0, err
			}
		}
		took, missing := r.await(ctx, r.listeners, r.Broadcasts+1, t0)
		return took, missing, context.Cause(ctx)
	})
	if err != nil {
		return *res, err
	}
	f.OwnCPU = round(res.Own / 100 * res.Seconds)
	if len(r.PIDs) > 0 {
		f.KiB = per(float64(grown(before, end))/1024, float64(r.Broadcasts))
	}
	_, _, err = r.step(&f.Late, &f.LateCPU, &f.Missing, func(t0 time.Time) (time.Duration, int, error) {
		if err := r.listen(ctx); err != nil {
			return 0, 0, err
		}
		took, missing := r.await(ctx, r.listeners[r.Watchers:], r.Broadcasts+1, t0)
		return took, missing, context.Cause(ctx)
	})
	if err != nil {
		return *res, err
	}
	_, _, err = r.step(&f.Withdrawn, &f.WithdrawCPU, &f.Missing, func(t0 time.Time) (time.Duration, int, error) {
		r.client.Close()
		took, missing := r.await(ctx, r.listeners, 0, t0)
		return took, missing, context.Cause(ctx)
	})
	res.fault(uint64(f.Missing), "announcements missing or left behind")
	return res.finish(nil), err
}

// step measures one step and adds up its figures.
func (r *announceRun) step(took, cpu *float64, missing *int, f func(time.Time) (time.Duration, int, error)) (Load, usage, error) {
	load, end, err := r.meter.during(func() error {
		d, lacking, err := f(time.Now())
		*took = ms(d)
		*missing += lacking
		return err
	})
	*cpu = round(load.relayCPU())
	return load, end, err
}

func (r *announceRun) close() {
	for _, l := range r.listeners {
		l.thin.conn.Close(0, "")
		<-l.done
	}
	if r.hall != nil {
		r.hall.close()
	}
	if r.client != nil {
		r.client.Close()
	}
}
