package tool

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/moqmesh/moqmesh/client"
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
	cfg, err := c.Config(s)
	if err != nil {
		return err
	}
	cfg.Role, cfg.Hop = client.RolePublisher, route.Hop(c.Hop)
	cl, err := dial(ctx, c.URL, cfg)
	if err != nil {
		return over(ctx, err)
	}
	defer cl.Close()
	out, err := c.publish(cl)
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
	var stats stats
	err := c.write(ctx, s.In, cl, out, plan, &stats)
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

// write writes until the time is up, input ends, or the session does.
func (c *Pub) write(ctx context.Context, in io.Reader, cl *client.Client, out []*output, plan *plan, stats *stats) error {
	ctx, cancel := context.WithCancel(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-cl.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() { cancel(); <-watching }()
	if c.Wait {
		if err := out[0].track.WaitSubscribed(ctx); err != nil {
			return nil // the time is up before it began
		}
	}
	if c.Seconds > 0 {
		timed, stop := context.WithTimeout(ctx, seconds(c.Seconds))
		defer stop()
		return c.source(timed, in, out, plan, stats)
	}
	return c.source(ctx, in, out, plan, stats)
}

func (c *Pub) source(ctx context.Context, in io.Reader, out []*output, plan *plan, stats *stats) error {
	if c.Stdin {
		return c.copyInput(ctx, in, out[0], plan, stats)
	}
	return c.generate(ctx, out, plan, stats)
}

// publish announces the broadcasts, each with its track.
func (c *Pub) publish(cl *client.Client) ([]*output, error) {
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
