package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/route"
)

// Failover publishes the same broadcast through two relays, has viewers at a third, and takes the first, which is the
// cheaper way, away.
type Failover struct {
	Target          // Publish is the first relay
	Second   string // URL of the other one
	PID      int    // process to end; 0: the publisher leaves the first relay instead
	Signal   syscall.Signal
	Distinct bool // the two publications have different first hops, as those of two publishers
	Viewers  int

	Rate       float64
	Size       int
	Group      int
	MaxAge     time.Duration
	Before     time.Duration // from when all receive to the event
	After      time.Duration // from there to the end
	Connecting int
	PerSocket  int
}

// FailoverFigures are what a failover run measures.
type FailoverFigures struct {
	Viewers  int     `json:"viewers"`
	Event    string  `json:"event"`
	Interval float64 `json:"frame_interval_ms"`
	Gap      float64 `json:"gap_ms"` // longest time without a frame around the event and after, of any viewer
	Lost     uint64  `json:"lost"`
	Twice    uint64  `json:"twice"`
	Wrong    uint64  `json:"wrong"`
	Ended    int     `json:"ended"`  // viewers whose session or subscription ended
	Silent   int     `json:"silent"` // viewers that still get nothing at the end
	Delay    Delays  `json:"latency_ms"`
	Late     Delays  `json:"late_ms"`
}

// silence is how long nothing came to a viewer that has not recovered.
const silence = time.Second

// settleRoutes is how long the viewers' relay gets to learn of both ways.
const settleRoutes = 1500 * time.Millisecond

// Run makes the event and watches.
func (o Failover) Run(ctx context.Context) (Result, error) {
	m := Media{
		Target: o.Target, Viewers: o.Viewers, Rate: o.Rate, Size: o.Size, Group: o.Group, MaxAge: o.MaxAge,
		Window: o.After, Drain: silence, Connecting: o.Connecting, PerSocket: o.PerSocket,
	}
	switch err := m.check(); {
	case err != nil:
		return Result{}, err
	case o.Rate == 0 || o.Before < 0:
		return Result{}, errors.New("rate: above 0; before: not negative")
	case o.PID == 1 || o.PID < 0:
		return Result{}, errors.New("kill: not a process that can be ended")
	}
	pids := slices.DeleteFunc(slices.Clone(o.PIDs), func(pid int) bool { return pid == o.PID })
	r := &mediaRun{Media: m, meter: meter{pids}, name: runName(), watch: newWatch(o.Group, o.Size)}
	defer r.close()
	if err := o.start(ctx, r); err != nil {
		return Result{}, err
	}
	return o.measure(ctx, r)
}

// start publishes to both relays and lets the viewers in.
func (o Failover) start(ctx context.Context, r *mediaRun) error {
	r.source = &source{feed: feed{rate: o.Rate, size: o.Size, per: o.Group, maxAge: o.MaxAge}}
	first, second := randomHop(), randomHop()
	if !o.Distinct {
		second = first
	}
	for _, way := range []struct {
		url   string
		hop   route.Hop
		price uint64
	}{{o.Publish, first, 1}, {o.Second, second, 10}} {
		if err := r.source.open(ctx, o.Target, way.url, r.name, way.hop, way.price); err != nil {
			return fmt.Errorf("publisher: %w", err)
		}
	}
	if err := r.seat(ctx); err != nil {
		return err
	}
	if err := sleep(ctx, settleRoutes); err != nil {
		return err
	}
	r.source.run(r.watch, o.Viewers)
	return r.audience.arrive(ctx, o.Viewers, o.Connecting)
}

func (o Failover) measure(ctx context.Context, r *mediaRun) (Result, error) {
	r.watch.from.Store(r.source.group.Load() + 1)
	if err := sleep(ctx, o.Before); err != nil {
		return Result{}, err
	}
	r.audience.totals(nil, true)
	r.source.late.take()
	for _, v := range r.audience.viewers {
		v.longest(time.Now())
	}
	event, err := o.strike(r.source.outputs[0])
	if err != nil {
		return Result{}, err
	}
	load, _, err := r.meter.window(ctx, o.After)
	if err != nil {
		return Result{}, err
	}
	f := &FailoverFigures{Viewers: o.Viewers, Event: event, Interval: round(1000 / o.Rate)}
	now := time.Now()
	for _, v := range r.audience.viewers {
		f.Gap = max(f.Gap, ms(v.longest(now)))
		if v.quiet(now) > silence {
			f.Silent++
		}
	}
	var delay latency.Histogram
	r.audience.totals(&delay, false)
	late, last := r.source.late.take(), r.source.group.Load()-1
	f.Delay, f.Late = delays(&delay), delays(&late)
	if err := r.audience.settle(ctx, last, r.Drain); err != nil {
		return Result{}, err
	}
	f.Lost, f.Twice, f.Ended = r.audience.lost(last)
	f.Wrong = r.audience.totals(nil, false).wrong
	res := &Result{Mode: "failover", Load: load, Failover: f}
	res.speaks(r.audience.viewers[0].thin)
	res.mediaFaults(f.Lost, f.Twice, f.Wrong, f.Ended)
	res.fault(uint64(f.Silent), "viewers that get nothing any more")
	return res.finish(&late), r.source.err()
}

// strike takes the first way away and says how.
func (o Failover) strike(out *output) (string, error) {
	out.gone.Store(true)
	if o.PID == 0 {
		out.client.Close()
		return "publisher left", nil
	}
	p, err := os.FindProcess(o.PID)
	if err == nil {
		err = p.Signal(o.Signal)
	}
	if err != nil {
		return "", fmt.Errorf("ending process %d: %w", o.PID, err)
	}
	return o.Signal.String(), nil
}
