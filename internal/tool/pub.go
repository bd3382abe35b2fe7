package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// shutdownLimit bounds how long a publisher that has finished waits for its subscribers to get the rest.
const shutdownLimit = 5 * time.Second

// Pub publishes test media, or what it reads.
type Pub struct {
	Dial

	URL  string `arg:"" help:"The relay."`
	Path string `arg:"" help:"The broadcast to publish."`

	Track      string        `help:"Name of the track." default:"video"`
	Rate       *float64      `help:"Frames per second; 0 announces and sends nothing. Default 30; with --stdin as fast as input comes." placeholder:"N"`
	Size       int           `help:"Bytes per frame; with --stdin at most." default:"4096"`
	Group      int           `help:"Frames per group." default:"60"`
	Broadcasts int           `help:"Publish so many broadcasts, named PATH/0, PATH/1 and so on." default:"1"`
	Seconds    float64       `help:"Stop after so many seconds; 0 goes on until interrupted." placeholder:"N"`
	Start      string        `help:"Number of the first group: a number, now (Unix time in microseconds), or clock (Unix time divided by the duration of a group, so that publishers of the same path make the same groups). Default now; 0 with --stdin and --format js." placeholder:"N"`
	MaxAge     time.Duration `help:"Retention: how far behind the newest group the others are kept." default:"5s"`
	Datagrams  bool          `help:"Send each frame as a datagram, a group of its own."`
	Stdin      bool          `help:"Publish standard input: each read is a frame. Stops at its end."`
	Wait       bool          `help:"Begin when somebody subscribes."`
	Linger     time.Duration `help:"Stay announced for so long after the last frame." placeholder:"DURATION"`
	Format     string        `help:"Layout of test frames: mesh, or js for the JavaScript and Python clients." enum:"mesh,js" default:"mesh"`
	Cost       uint64        `help:"Announce at this price." placeholder:"N"`
	Hop        uint64        `help:"Identity as a publisher, 1 to 2^62-1; default random." placeholder:"ID"`
}

// Help tells kong more.
func (*Pub) Help() string {
	return Help + `

Frames are sent on a fixed schedule, whatever the relay does; each says when it was sent, its group and place, and has a
checksum: "moqmesh sub" checks them. Lines: published, and summary at the end. Exit status 1 means that the session
failed.`
}

// Run publishes until the time is up, input ends, or an interrupt.
func (c *Pub) Run(ctx context.Context, s *Streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	plan, err := c.plan()
	if err != nil {
		return err
	}
	cfg, err := c.config(s)
	if err != nil {
		return err
	}
	cfg.Role, cfg.Hop = client.RolePublisher, route.Hop(c.Hop)
	cl, err := client.Dial(ctx, c.URL, cfg)
	if err != nil {
		return err
	}
	defer cl.Close()
	out, err := c.publish(cl, plan)
	if err != nil {
		return err
	}
	say := &events{out: s.Out}
	say.say(struct {
		head
		Version    string `json:"version"`
		Path       string `json:"path"`
		Track      string `json:"track"`
		Broadcasts int    `json:"broadcasts"`
	}{event("published"), cl.Version().String(), c.Path, c.Track, c.Broadcasts})
	return c.run(ctx, s, cl, out, plan, say)
}

// run writes until something ends it, says the summary and leaves.
func (c *Pub) run(ctx context.Context, s *Streams, cl *client.Client, out []*output, plan *plan, say *events) error {
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	connected := writing
	go func() { // ends with writing
		select {
		case <-cl.Done():
			cancel()
		case <-connected.Done():
		}
	}()
	if c.Wait {
		_ = out[0].track.WaitSubscribed(writing) // if that fails, so does what follows
	}
	if c.Seconds > 0 {
		var stop context.CancelFunc
		writing, stop = context.WithTimeout(writing, seconds(c.Seconds))
		defer stop()
	}
	var stats stats
	var err error
	if c.Stdin {
		err = c.copyInput(writing, s.In, out[0], plan, &stats)
	} else {
		err = c.generate(writing, out, plan, &stats)
	}
	for _, o := range out {
		o.finish()
	}
	if linger, stop := after(c.Linger); linger != nil && err == nil && ctx.Err() == nil {
		select {
		case <-linger:
		case <-ctx.Done():
		case <-cl.Done():
		}
		stop()
	}
	lost := cl.Err()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	_ = cl.Shutdown(leaving) // those who are too slow for it lose the rest
	say.say(struct {
		head
		OK     bool    `json:"ok"`
		Frames uint64  `json:"frames"`
		Groups uint64  `json:"groups"`
		Bytes  uint64  `json:"bytes"`
		Late   float64 `json:"late_max_ms"`
	}{event("summary"), err == nil && lost == nil, stats.frames, stats.groups, stats.bytes, milliseconds(stats.late)})
	return errors.Join(err, lost, say.failed())
}

// publish announces the broadcasts, each with its track.
func (c *Pub) publish(cl *client.Client, plan *plan) ([]*output, error) {
	info := media.DefaultInfo()
	info.MaxAge = c.MaxAge
	var all []*output
	for i := range c.Broadcasts {
		path := c.Path
		if c.Broadcasts > 1 {
			path += "/" + strconv.Itoa(i)
		}
		b, err := cl.Publish(path)
		if err != nil {
			return nil, err
		}
		track, err := b.Track(c.Track, info)
		if err != nil {
			return nil, err
		}
		if err := b.Announce(route.Cost{Warm: c.Cost, Cold: c.Cost}); err != nil {
			return nil, err
		}
		all = append(all, &output{track: track})
	}
	return all, nil
}

// plan is what the flags come down to.
type plan struct {
	format   testmedia.Format
	interval time.Duration // between frames; 0 = no pacing
	idle     bool          // announce only
	first    uint64        // number of the first group
	begin    time.Time     // when it is due; zero = at once
}

// plan checks the flags.
func (c *Pub) plan() (*plan, error) {
	p := &plan{}
	var err error
	if p.format, err = testmedia.ParseFormat(c.Format); err != nil {
		return nil, err
	}
	rate := 30.0
	if c.Stdin {
		rate = 0
	}
	if c.Rate != nil {
		rate = *c.Rate
	}
	switch {
	case rate < 0 || rate > 100_000:
		return nil, errors.New("--rate: not between 0 and 100000")
	case c.Size < 0 || c.Size > media.MaxFrameBytes || c.Stdin && c.Size == 0:
		return nil, fmt.Errorf("--size: not between 1 and %d", media.MaxFrameBytes)
	case c.Group < 1 || c.Group > media.MaxGroupFrames:
		return nil, fmt.Errorf("--group: not between 1 and %d", media.MaxGroupFrames)
	case c.Size*c.Group > media.MaxGroupBytes:
		return nil, fmt.Errorf("--size times --group: a group holds %d bytes", media.MaxGroupBytes)
	case c.Broadcasts < 1:
		return nil, errors.New("--broadcasts: at least 1")
	case c.Broadcasts > 1 && c.Stdin:
		return nil, errors.New("--stdin: for one broadcast only")
	case c.Hop > route.MaxCost:
		return nil, errors.New("--hop: above 2^62-1")
	case c.MaxAge < 0 || c.Linger < 0 || c.Seconds < 0:
		return nil, errors.New("durations cannot be negative")
	}
	if rate > 0 {
		p.interval = time.Duration(float64(time.Second) / rate)
	}
	p.idle = rate == 0 && !c.Stdin
	return p, c.start(p, time.Now())
}

// start settles the numbering of groups.
func (c *Pub) start(p *plan, now time.Time) error {
	start := c.Start
	if start == "" {
		start = "now"
		if c.Stdin || p.format == testmedia.JS {
			start = "0"
		}
	}
	switch start {
	case "now":
		p.first = uint64(now.UnixMicro())
	case "clock":
		length := p.interval * time.Duration(c.perGroup())
		if length == 0 {
			return errors.New("--start clock: needs a rate")
		}
		p.first = uint64(now.UnixNano()/int64(length)) + 1
		p.begin = time.Unix(0, int64(p.first)*int64(length))
	default:
		n, err := strconv.ParseUint(start, 10, 62)
		if err != nil {
			return fmt.Errorf("--start: %q is not a number below 2^62, now or clock", start)
		}
		p.first = n
	}
	return nil
}

// perGroup is how many frames a group has.
func (c *Pub) perGroup() int {
	if c.Datagrams {
		return 1
	}
	return c.Group
}

// stats are totals over all broadcasts.
type stats struct {
	frames, groups, bytes uint64
	late                  time.Duration // longest delay of a frame behind its schedule
}

// output is one track being written.
type output struct {
	track *client.TrackWriter
	group *client.GroupWriter
}

// frame writes one frame, as group begins with it or not.
func (o *output) frame(group uint64, first, last, datagram bool, ts uint64, payload []byte) error {
	if datagram {
		return o.track.Datagram(group, ts, payload)
	}
	if first {
		g, err := o.track.Group(group)
		if err != nil {
			return err
		}
		o.group = g
	}
	if err := o.group.WriteFrame(ts, payload); err != nil {
		return err
	}
	if last {
		o.group.Finish()
		o.group = nil
	}
	return nil
}

// finish ends the open group, however short, and the track.
func (o *output) finish() {
	if o.group != nil {
		o.group.Finish()
	}
	o.track.Finish()
}

// generate writes test frames on schedule until ctx ends. A frame that is late does not move those after it.
func (c *Pub) generate(ctx context.Context, out []*output, p *plan, stats *stats) error {
	if p.idle {
		<-ctx.Done()
		return nil
	}
	begin := p.begin
	if begin.IsZero() {
		begin = time.Now()
	}
	timer := time.NewTimer(time.Until(begin))
	defer timer.Stop()
	per := uint64(c.perGroup())
	var payload []byte
	for n := uint64(0); ; n++ {
		due := begin.Add(time.Duration(n) * p.interval)
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		now := time.Now()
		stats.late = max(stats.late, now.Sub(due))
		index := n % per
		h := testmedia.Header{Sent: now, Group: p.first + n/per, Index: uint32(index), Of: uint32(per)}
		payload = p.format.Append(payload[:0], h, c.Size)
		for _, o := range out {
			err := o.frame(h.Group, index == 0, index == per-1, c.Datagrams, uint64(due.UnixMilli()), payload)
			if err != nil {
				return fmt.Errorf("group %d: %w", h.Group, err)
			}
			stats.count(index == 0, payload)
		}
	}
}

func (s *stats) count(first bool, payload []byte) {
	s.frames++
	s.bytes += uint64(len(payload))
	if first {
		s.groups++
	}
}

// copyInput publishes what it reads until input or ctx ends.
func (c *Pub) copyInput(ctx context.Context, in io.Reader, o *output, p *plan, stats *stats) error {
	chunks := make(chan []byte)
	failed := make(chan error, 1)
	go func() { // ends with the input, at the latest with the process: a read of a terminal cannot be called off
		failed <- readChunks(ctx, in, c.Size, chunks)
	}()
	pace := time.NewTimer(0)
	defer pace.Stop()
	begin, per := time.Now(), uint64(c.perGroup())
	for n := uint64(0); ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		pace.Reset(time.Until(begin.Add(time.Duration(n+1) * p.interval)))
		var chunk []byte
		select {
		case <-ctx.Done():
			return nil
		case chunk = <-chunks:
		case err := <-failed:
			return err
		}
		index, group := n%per, p.first+n/per
		err := o.frame(group, index == 0, index == per-1, c.Datagrams, uint64(time.Now().UnixMilli()), chunk)
		if err != nil {
			return fmt.Errorf("group %d: %w", group, err)
		}
		stats.count(index == 0, chunk)
	}
}

// readChunks hands each read of in to chunks until in ends.
func readChunks(ctx context.Context, in io.Reader, size int, chunks chan<- []byte) error {
	for {
		buf := make([]byte, size)
		n, err := in.Read(buf)
		if n > 0 {
			select {
			case chunks <- buf[:n]:
			case <-ctx.Done():
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
	}
}
