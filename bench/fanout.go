package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// Options of a run. Zero fields take the defaults.
type Options struct {
	URL         string // of the relay; any certificate is accepted
	PID         int    // of the relay, for CPU and memory; 0 = not measured
	Subscribers int
	Rate        float64       // frames per second (30)
	Size        int           // bytes per frame (4096)
	Group       int           // frames per group (60)
	Warmup      time.Duration // after the last viewer receives, before the window (2 s)
	Window      time.Duration // what is measured (10 s)
	MaxAge      time.Duration // of the subscriptions (5 s)
	Connecting  int           // viewers that connect at the same time (8)
	Name        string        // of the broadcast ("bench")
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.Warmup, 2*time.Second)
	def(&o.Window, 10*time.Second)
	def(&o.MaxAge, 5*time.Second)
	if o.Rate == 0 {
		o.Rate = 30
	}
	for field, v := range map[*int]int{&o.Size: 4096, &o.Group: 60, &o.Connecting: 8, &o.Subscribers: 1} {
		if *field == 0 {
			*field = v
		}
	}
	if o.Name == "" {
		o.Name = "bench"
	}
	return o
}

// Result of a run. CPU percentages are of one core.
type Result struct {
	Case        string  `json:"case"`
	Subscribers int     `json:"subscribers"`
	Rate        float64 `json:"rate"`
	Size        int     `json:"size"`
	Seconds     float64 `json:"seconds"` // length of the window

	Frames uint64  `json:"frames"` // delivered in the window, all viewers together
	Mbit   float64 `json:"mbit_s"` // payload
	Lost   uint64  `json:"lost"`   // frames of groups that began and ended while all viewers were there
	Twice  uint64  `json:"twice"`
	Wrong  uint64  `json:"wrong"`
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Max    float64 `json:"max_ms"`
	Late   float64 `json:"publisher_late_ms"` // the most that a frame was behind its schedule

	RelayCPU     float64 `json:"relay_cpu_s,omitempty"`
	RelayPercent float64 `json:"relay_cpu_pct,omitempty"`
	PerGbit      float64 `json:"relay_cpu_s_per_gbit,omitempty"`
	PerFrame     float64 `json:"relay_cpu_us_per_frame,omitempty"`
	RSS          float64 `json:"relay_rss_mib,omitempty"`
	RSSPerSub    float64 `json:"relay_kib_per_subscriber,omitempty"` // growth since the publisher connected

	OwnPercent   float64 `json:"bench_cpu_pct"`
	OtherPercent float64 `json:"other_cpu_pct"` // of the rest of the machine
}

// Fanout publishes one track to many viewers through the relay and measures while nothing changes. It fails if the relay
// or a viewer does; loss is a result, not a failure.
func Fanout(ctx context.Context, o Options) (Result, error) {
	o = o.withDefaults()
	f := &fanout{o: o}
	defer f.close()
	if err := f.publish(ctx); err != nil {
		return Result{}, fmt.Errorf("publisher: %w", err)
	}
	before, err := f.usage()
	if err != nil {
		return Result{}, err
	}
	if err := f.connect(ctx); err != nil {
		return Result{}, err
	}
	if err := f.receiving(ctx); err != nil {
		return Result{}, err
	}
	return f.measure(ctx, before)
}

// fanout is a run under way.
type fanout struct {
	o         Options
	publisher *client.Client
	track     *client.TrackWriter
	stop      context.CancelFunc // ends the writing
	writing   sync.WaitGroup
	group     atomic.Uint64 // being written
	late      atomic.Int64  // nanoseconds
	failed    atomic.Pointer[error]

	dialers []*endpoint.Dialer
	viewers []*Viewer
}

// perSocket is how many viewers share a UDP socket.
const perSocket = 50

// config of all clients: loopback certificates are made up.
func config(role client.Role) client.Config {
	cfg := client.Config{Role: role, Versions: []client.Version{version}}
	cfg.TLS.Insecure = true
	return cfg
}

// publish begins to write on schedule.
func (f *fanout) publish(ctx context.Context) error {
	cl, err := client.Dial(ctx, f.o.URL, config(client.RolePublisher))
	if err != nil {
		return err
	}
	f.publisher = cl
	b, err := cl.Publish(f.o.Name)
	if err != nil {
		return err
	}
	info := media.DefaultInfo()
	info.MaxAge = f.o.MaxAge
	if f.track, err = b.Track("video", info); err != nil {
		return err
	}
	if err := b.Announce(route.Cost{}); err != nil {
		return err
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	f.writing.Go(func() {
		if err := f.write(ctx); err != nil {
			f.failed.Store(&err)
		}
	})
	return nil
}

// write sends frames on schedule until ctx ends. Group numbers begin at 1.
func (f *fanout) write(ctx context.Context) error {
	interval := time.Duration(float64(time.Second) / f.o.Rate)
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin, per := time.Now(), uint64(f.o.Group)
	var payload []byte
	var group *client.GroupWriter
	for n := uint64(0); ; n++ {
		due := begin.Add(time.Duration(n) * interval)
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		now := time.Now()
		f.late.Store(max(f.late.Load(), int64(now.Sub(due))))
		h := testmedia.Header{Sent: now, Group: 1 + n/per, Index: uint32(n % per), Of: uint32(per)}
		var err error
		if h.Index == 0 {
			if group != nil {
				group.Finish()
			}
			if group, err = f.track.Group(h.Group); err != nil {
				return err
			}
			f.group.Store(h.Group)
		}
		payload = testmedia.Mesh.Append(payload[:0], h, f.o.Size)
		if err := group.WriteFrame(uint64(due.UnixMilli()), payload); err != nil {
			return err
		}
	}
}

// connect starts the viewers, each on a connection of its own.
func (f *fanout) connect(ctx context.Context) error {
	u, err := url.Parse(f.o.URL)
	if err != nil {
		return client.ErrURL
	}
	sub := Subscription{Path: u.RequestURI(), Name: f.o.Name, Track: "video", MaxAge: f.o.MaxAge}
	f.viewers = make([]*Viewer, f.o.Subscribers)
	cfg := config(client.RoleSubscriber)
	for range (f.o.Subscribers + perSocket - 1) / perSocket {
		d, err := client.NewDialer(cfg)
		if err != nil {
			return err
		}
		f.dialers = append(f.dialers, d)
	}
	var dials errgroup.Group
	dials.SetLimit(f.o.Connecting)
	for i := range f.viewers {
		dials.Go(func() error {
			cfg := cfg
			cfg.Dialer = f.dialers[i/perSocket]
			conn, err := client.DialConn(ctx, f.o.URL, cfg)
			if err != nil {
				return err
			}
			f.viewers[i], err = View(ctx, conn, sub)
			return err
		})
	}
	return dials.Wait()
}

// receiving waits until every viewer has its first frame.
func (f *fanout) receiving(ctx context.Context) error {
	limit, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not all viewers receive after 30 s"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; i < len(f.viewers); {
		s := f.viewers[i].Snapshot()
		switch {
		case s.Err != nil:
			return s.Err
		case s.Frames > 0:
			i++
			continue
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			return context.Cause(limit)
		}
	}
	return nil
}

// usage is what everybody has spent so far.
type usage struct {
	at         time.Time
	relay, own Process
	machine    time.Duration
}

func (f *fanout) usage() (u usage, err error) {
	if f.o.PID != 0 {
		if u.relay, err = ReadProcess(f.o.PID); err != nil {
			return u, fmt.Errorf("relay: %w", err)
		}
	}
	if u.own, err = ReadProcess(os.Getpid()); err != nil {
		return u, err
	}
	u.machine, err = ReadMachine()
	u.at = time.Now()
	return u, err
}

// totals of all viewers.
func (f *fanout) totals() (sum Snapshot) {
	for _, v := range f.viewers {
		s := v.Snapshot()
		sum.Frames += s.Frames
		sum.Bytes += s.Bytes
		sum.Wrong += s.Wrong
		sum.Twice += s.Twice
		if sum.Err == nil {
			sum.Err = s.Err
		}
	}
	return sum
}

// measure runs warm-up, window and drain, and sums up.
func (f *fanout) measure(ctx context.Context, connected usage) (r Result, err error) {
	first := f.group.Load() + 1 // the first group that begins now that all viewers are there
	if err := sleep(ctx, f.o.Warmup); err != nil {
		return r, err
	}
	for _, v := range f.viewers {
		v.resetLatency()
	}
	f.late.Store(0)
	begin, err := f.usage()
	if err != nil {
		return r, err
	}
	had := f.totals()
	if err := sleep(ctx, f.o.Window); err != nil {
		return r, err
	}
	end, err := f.usage()
	if err != nil {
		return r, err
	}
	got := f.totals()
	var h latency.Histogram
	for _, v := range f.viewers {
		v.addLatency(&h)
	}
	r = f.result(begin, end, connected, had, got, &h)
	last := f.group.Load() - 1 // the last group that is complete
	if err := sleep(ctx, min(f.o.MaxAge, 2*time.Second)); err != nil {
		return r, err
	}
	for _, v := range f.viewers {
		r.Lost += v.Lost(first, last, uint32(f.o.Group))
	}
	if failed := f.failed.Load(); failed != nil {
		return r, *failed
	}
	return r, got.Err
}

func (f *fanout) result(begin, end, connected usage, had, got Snapshot, h *latency.Histogram) Result {
	window := end.at.Sub(begin.at)
	percent := func(d time.Duration) float64 { return 100 * d.Seconds() / window.Seconds() }
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	relay := end.relay.CPU - begin.relay.CPU
	own := end.own.CPU - begin.own.CPU
	r := Result{
		Case: "fanout", Subscribers: f.o.Subscribers, Rate: f.o.Rate, Size: f.o.Size, Seconds: window.Seconds(),
		Frames: got.Frames - had.Frames, Mbit: float64(got.Bytes-had.Bytes) * 8 / 1e6 / window.Seconds(),
		Twice: got.Twice, Wrong: got.Wrong,
		P50: ms(h.Quantile(0.5)), P99: ms(h.Quantile(0.99)), Max: ms(h.Max()),
		Late:         ms(time.Duration(f.late.Load())),
		OwnPercent:   percent(own),
		OtherPercent: max(0, percent(end.machine-begin.machine-relay-own)),
	}
	if f.o.PID != 0 && r.Frames > 0 {
		r.RelayCPU, r.RelayPercent = relay.Seconds(), percent(relay)
		r.PerGbit = relay.Seconds() / (float64(got.Bytes-had.Bytes) * 8 / 1e9)
		r.PerFrame = relay.Seconds() * 1e6 / float64(r.Frames)
		r.RSS = float64(end.relay.RSS) / (1 << 20)
		r.RSSPerSub = float64(end.relay.RSS-connected.relay.RSS) / 1024 / float64(f.o.Subscribers)
	}
	return r
}

func (f *fanout) close() {
	for _, v := range f.viewers {
		if v != nil {
			v.Close()
		}
	}
	for _, d := range f.dialers {
		_ = d.Close() // nothing was to be kept
	}
	if f.stop != nil {
		f.stop()
	}
	f.writing.Wait()
	if f.publisher != nil {
		f.publisher.Close()
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
