package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/media"
)

// Media is a run of one publisher and many viewers of its track, each on a connection of its own: fan-out, small frames,
// bulk, and, with two URLs, a chain.
type Media struct {
	Target
	Mode       string  // what the result is called
	Viewers    int     // at least 1
	Rate       float64 // frames per second; 0 = as fast as viewers take them, no more than InFlight ahead
	Size       int     // bytes per frame
	Group      int     // frames per group
	InFlight   int
	MaxAge     time.Duration // of the subscriptions, and retention of the track
	Warmup     time.Duration // after the last viewer receives, before the window
	Window     time.Duration // what is measured
	Drain      time.Duration // how long what is missing may still come after the window
	Connecting int           // viewers that connect at the same time
	PerSocket  int           // viewers that share a UDP socket
}

// MediaFigures are what a media run measures in its window.
type MediaFigures struct {
	Viewers int     `json:"viewers"`
	Rate    float64 `json:"rate"`
	Size    int     `json:"frame_bytes"`
	Group   int     `json:"group_frames"`

	Frames uint64  `json:"frames"`     // delivered in the window, all viewers together
	Mbit   float64 `json:"mbit_s"`     // payload
	Lost   uint64  `json:"lost"`       // frames of groups that began and ended while all viewers were there
	Twice  uint64  `json:"twice"`      // delivered again
	Wrong  uint64  `json:"wrong"`      // damaged, or not where they say
	Ended  int     `json:"ended"`      // viewers whose session or subscription ended
	Delay  Delays  `json:"latency_ms"` // from when a frame was due to its last byte at a viewer
	Late   Delays  `json:"late_ms"`    // from when a frame was due to when it was sent

	PerGbit      float64 `json:"relay_cpu_s_per_gbit,omitempty"` // all relays, of payload delivered
	PerFrame     float64 `json:"relay_cpu_us_per_frame,omitempty"`
	PerViewer    float64 `json:"relay_kib_per_viewer,omitempty"` // growth of resident memory since the publisher connected
	OwnPerFrame  float64 `json:"gen_cpu_us_per_frame"`
	OwnPerViewer float64 `json:"gen_cpu_pct_per_viewer"`
}

// check refuses what cannot be run.
func (o *Media) check() error {
	switch {
	case o.Viewers < 1 || o.Connecting < 1 || o.PerSocket < 1:
		return errors.New("viewers, connecting and per-socket: at least 1")
	case o.Rate < 0 || o.Rate > 100_000:
		return errors.New("rate: not between 0 and 100000")
	case o.Rate == 0 && o.InFlight < 1:
		return errors.New("in-flight: at least 1 where there is no rate")
	case o.Size < minFrame || o.Size > media.MaxFrameBytes:
		return fmt.Errorf("size: not between %d and %d", minFrame, media.MaxFrameBytes)
	case o.Group < 1 || o.Group > media.MaxGroupFrames || o.Size*o.Group > media.MaxGroupBytes:
		return fmt.Errorf("group: not between 1 and %d, or more than %d bytes", media.MaxGroupFrames, media.MaxGroupBytes)
	case o.Window <= 0 || o.Warmup < 0 || o.Drain < 0 || o.MaxAge < 0:
		return errors.New("durations cannot be negative, and the window not empty")
	}
	return nil
}

// Run publishes and watches, and measures while nothing changes. It fails if it cannot get that far; loss is a result.
func (o Media) Run(ctx context.Context) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	r := &mediaRun{Media: o, meter: meter{o.PIDs}, name: runName(), watch: newWatch(o.Group, o.Size)}
	defer r.close()
	if err := r.start(ctx); err != nil {
		return Result{}, err
	}
	return r.measure(ctx)
}

// mediaRun is a run under way.
type mediaRun struct {
	Media
	meter     meter
	name      string
	watch     *watch
	source    *source
	audience  *audience
	connected usage // when the publisher was there and nobody else
}

// start brings everybody in.
func (r *mediaRun) start(ctx context.Context) (err error) {
	if r.Rate == 0 {
		r.watch.wake = make(chan struct{}, 1)
	}
	r.source = &source{feed: feed{rate: r.Rate, size: r.Size, per: r.Group, inFlight: r.InFlight, maxAge: r.MaxAge}}
	if err := r.source.open(ctx, r.Target, r.Publish, r.name, 0, 0); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	if err := r.seat(ctx); err != nil {
		return err
	}
	if r.connected, err = r.meter.read(); err != nil {
		return err
	}
	r.source.run(r.watch, r.Viewers)
	return r.audience.arrive(ctx, r.Viewers, r.Connecting)
}

// seat makes room for the viewers and waits until the relay that they watch at knows of the broadcast.
func (r *mediaRun) seat(ctx context.Context) error {
	hall, err := r.newHall(r.Viewers, r.PerSocket)
	if err != nil {
		return err
	}
	r.audience = &audience{
		hall: hall, watch: r.watch, sub: subscription{broadcast: r.name, track: trackName, maxAge: r.MaxAge},
	}
	return awaitAnnounced(ctx, r.Target, r.name)
}

// measure runs warm-up, window and drain, and sums up.
func (r *mediaRun) measure(ctx context.Context) (Result, error) {
	r.watch.from.Store(r.source.group.Load() + 1) // the first group that begins now that all viewers are there
	if err := sleep(ctx, r.Warmup); err != nil {
		return Result{}, err
	}
	had := r.audience.totals(nil, true)
	r.source.late.take()
	load, end, err := r.meter.window(ctx, r.Window)
	if err != nil {
		return Result{}, err
	}
	var delay latency.Histogram
	got := r.audience.totals(&delay, false)
	late := r.source.late.take()
	last := r.source.group.Load() - 1 // the last group that is complete
	res := r.result(load, end, had, got)
	res.Media.Delay, res.Media.Late = delays(&delay), delays(&late)
	if err := r.audience.settle(ctx, last, r.Drain); err != nil {
		return Result{}, err
	}
	m := res.Media
	m.Lost, m.Twice, m.Ended = r.audience.lost(last)
	m.Wrong = r.audience.totals(nil, false).wrong
	res.mediaFaults(m.Lost, m.Twice, m.Wrong, m.Ended)
	if err := r.source.err(); err != nil {
		return Result{}, err
	}
	return res.finish(&late), nil
}

func (r *mediaRun) result(load Load, end usage, had, got counts) *Result {
	frames, bits := float64(got.frames-had.frames), float64(got.bytes-had.bytes)*8
	m := &MediaFigures{
		Viewers: r.Viewers, Rate: r.Rate, Size: r.Size, Group: r.Group,
		Frames: got.frames - had.frames, Mbit: per(bits/1e6, load.Seconds),
		OwnPerFrame: per(load.Own/100*load.Seconds*1e6, frames), OwnPerViewer: per(load.Own, float64(r.Viewers)),
	}
	if len(r.PIDs) > 0 {
		cpu := load.relayCPU()
		m.PerGbit, m.PerFrame = per(cpu*1e9, bits), per(cpu*1e6, frames)
		m.PerViewer = per(float64(grown(r.connected, end))/1024, float64(r.Viewers))
	}
	res := &Result{Mode: r.Mode, Load: load, Media: m}
	res.speaks(r.audience.viewers[0].thin)
	return res
}

// grown is by how much the resident memory of all relays has grown, in bytes.
func grown(a, b usage) (sum int64) {
	for i := range a.relays {
		sum += b.relays[i].RSS - a.relays[i].RSS
	}
	return sum
}

func (r *mediaRun) close() {
	if r.audience != nil {
		r.audience.leave()
		r.audience.hall.close()
	}
	if r.source != nil {
		r.source.close()
	}
}
