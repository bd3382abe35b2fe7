package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moqmesh/moqmesh/internal/latency"
)

// Join lets viewers come while a track runs, and measures how long each takes from the beginning of its dial to its first
// frame, and what those feel who watch already.
type Join struct {
	Target
	Joiners int
	PerSec  float64 // joins per second, on a schedule; 0 = AtOnce under way at any time: a storm
	AtOnce  int
	Stay    bool // joiners stay and watch; else they leave with their first frame
	Wait    bool // joiners wait for the announcement before they subscribe
	Viewers int  // who watch already; 0 = nobody, so that each join has to fetch the track from where it is

	Rate       float64 // frames per second
	Size       int     // bytes per frame
	Group      int     // frames per group
	MaxAge     time.Duration
	Warmup     time.Duration
	Drain      time.Duration
	Connecting int // viewers that connect at the same time, before
	PerSocket  int
}

// JoinFigures are what a join run measures.
type JoinFigures struct {
	Joiners   int    `json:"joiners"`
	Failed    int    `json:"failed"`
	Connect   Delays `json:"connect_ms"`        // QUIC, HTTP/3 where there is any, SETUP sent
	Announced Delays `json:"announced_ms"`      // from there to the announcement, where joiners wait for it
	Frame     Delays `json:"frame_ms"`          // from the subscription to the first frame
	Total     Delays `json:"total_ms"`          // from when the join was due
	Late      Delays `json:"late_ms"`           // from when a join was due to when it began
	Viewers   int    `json:"viewers"`           // those who watched already,
	Delay     Delays `json:"viewer_latency_ms"` // and what the joins did to them
	Lost      uint64 `json:"viewer_lost"`
	Twice     uint64 `json:"viewer_twice"`

	CPU float64 `json:"relay_cpu_ms_per_join,omitempty"` // whatever else it did meanwhile included
}

// joinLimit bounds one join.
const joinLimit = 30 * time.Second

var errJoin = fmt.Errorf("nothing to see after %v", joinLimit)

// times of all joins.
type joinTimes struct{ connect, announced, frame, total, late lateness }

// joinRun is a run under way.
type joinRun struct {
	Join
	room  *mediaRun // who watches already
	hall  *hall     // of the joiners
	watch *watch
	times joinTimes

	mu      sync.Mutex
	failed  int
	first   error // of the failures
	speaks  *thin
	staying []*viewer
}

// Run publishes, fills the room, and lets joiners come.
func (o Join) Run(ctx context.Context) (Result, error) {
	m := Media{
		Target: o.Target, Viewers: max(o.Viewers, 1), Rate: o.Rate, Size: o.Size, Group: o.Group, MaxAge: o.MaxAge, Warmup: o.Warmup,
		Window: time.Second, Drain: o.Drain, Connecting: o.Connecting, PerSocket: o.PerSocket,
	}
	switch err := m.check(); {
	case err != nil:
		return Result{}, err
	case o.Joiners < 1 || o.Viewers < 0 || o.Rate == 0:
		return Result{}, errors.New("joiners and rate: above 0")
	case (o.PerSec > 0) == (o.AtOnce > 0):
		return Result{}, errors.New("either joins per second or joins at once")
	}
	m.Viewers = o.Viewers
	room := &mediaRun{Media: m, meter: meter{o.PIDs}, name: runName(), watch: newWatch(o.Group, o.Size)}
	r := &joinRun{Join: o, room: room, watch: newWatch(o.Group, o.Size)}
	defer r.close()
	var err error
	if r.hall, err = o.newHall(o.Joiners, o.PerSocket); err != nil {
		return Result{}, err
	}
	if err := room.start(ctx); err != nil {
		return Result{}, err
	}
	return r.measure(ctx)
}

func (r *joinRun) measure(ctx context.Context) (Result, error) {
	room, source := r.room.audience, r.room.source
	room.watch.from.Store(source.group.Load() + 1)
	if err := sleep(ctx, r.Warmup); err != nil {
		return Result{}, err
	}
	room.totals(nil, true)
	source.late.take()
	load, _, err := r.room.meter.during(func() error { return r.joins(ctx) })
	if err != nil {
		return Result{}, err
	}
	var delay latency.Histogram
	room.totals(&delay, false)
	late, last := source.late.take(), source.group.Load()-1
	if err := room.settle(ctx, last, r.Drain); err != nil {
		return Result{}, err
	}
	f := &JoinFigures{Joiners: r.Joiners, Failed: r.failed, Viewers: r.Viewers, Delay: delays(&delay)}
	f.Lost, f.Twice, _ = room.lost(last)
	if len(r.PIDs) > 0 {
		f.CPU = per(load.relayCPU()*1000, float64(r.Joiners))
	}
	for to, from := range map[*Delays]*lateness{
		&f.Connect: &r.times.connect, &f.Announced: &r.times.announced, &f.Frame: &r.times.frame, &f.Total: &r.times.total,
		&f.Late: &r.times.late,
	} {
		h := from.take()
		*to = delays(&h)
	}
	res := &Result{Mode: "join", Load: load, Join: f}
	res.fault(uint64(f.Failed), "joins failed")
	if r.first != nil {
		res.Faults = append(res.Faults, "the first of them: "+r.first.Error())
	}
	res.fault(f.Lost, "frames lost by those who watched")
	res.fault(f.Twice, "frames twice for those who watched")
	if err := source.err(); err != nil {
		return Result{}, err
	}
	if r.speaks != nil {
		res.speaks(r.speaks)
	}
	return res.finish(&late), nil
}

// joins starts all of them and waits for the last. Failures are counted.
func (r *joinRun) joins(ctx context.Context) error {
	var all errgroup.Group
	if r.AtOnce > 0 {
		all.SetLimit(r.AtOnce)
	}
	plan := schedule{begin: time.Now(), rate: r.PerSec, per: 1}
	for i := range r.Joiners {
		due := time.Time{}
		if r.PerSec > 0 {
			due = plan.due(uint64(i))
			if err := sleep(ctx, time.Until(due)); err != nil {
				return errors.Join(err, all.Wait())
			}
		}
		all.Go(func() error { r.join(ctx, i, due); return nil })
	}
	return errors.Join(all.Wait(), context.Cause(ctx))
}

// join is one of them.
func (r *joinRun) join(ctx context.Context, i int, due time.Time) {
	ctx, cancel := context.WithTimeoutCause(ctx, joinLimit, errJoin)
	defer cancel()
	begin := time.Now()
	if due.IsZero() {
		due = begin
	}
	r.times.late.sent(due, begin)
	v, err := r.enter(ctx, i, begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.failed++
		if r.first == nil {
			r.first = err
		}
	default:
		r.times.total.sent(due, v.started)
		if r.speaks == nil {
			r.speaks = v.thin
		}
		if r.Stay {
			r.staying = append(r.staying, v)
		}
	}
}

// enter dials and waits for the first frame. Unless joiners stay, the viewer has left when it returns.
func (r *joinRun) enter(ctx context.Context, i int, begin time.Time) (*viewer, error) {
	t, err := r.hall.dial(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	connected := time.Now()
	r.times.connect.sent(begin, connected)
	if r.Wait {
		if err := t.await(ctx, r.room.name); err != nil {
			t.conn.Close(0, "")
			return nil, fmt.Errorf("announcement: %w", err)
		}
		r.times.announced.sent(connected, time.Now())
	}
	asked := time.Now()
	v, err := view(ctx, t, subscription{broadcast: r.room.name, track: trackName, maxAge: r.MaxAge}, r.watch, r.hall.shard(i))
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	if err := v.receives(ctx); err != nil {
		v.Close()
		return nil, fmt.Errorf("first frame: %w", err)
	}
	r.times.frame.sent(asked, v.started)
	if !r.Stay {
		v.Close()
	}
	return v, nil
}

func (r *joinRun) close() {
	var closing sync.WaitGroup
	for _, v := range r.staying {
		closing.Go(v.Close)
	}
	closing.Wait()
	if r.hall != nil {
		r.hall.close()
	}
	r.room.close()
}
