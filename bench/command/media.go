package command

import (
	"context"

	"github.com/moqmesh/moqmesh/bench"
	"github.com/moqmesh/moqmesh/internal/tool"
)

// mediaFlags are the flags of a run of media that do not depend on the mode.
type mediaFlags struct {
	Common
	MaxAge     duration `help:"How far behind the newest group viewers want the others." default:"5s"`
	Window     duration `help:"What is measured." default:"10s"`
	Warmup     duration `help:"Time before the window, once all viewers receive." default:"2s"`
	Drain      duration `help:"How long what is missing may still come after the window." default:"5s"`
	Connecting int      `help:"Viewers that connect at the same time." default:"8"`
	PerSocket  int      `help:"Viewers that share a UDP socket." default:"50"`
}

// shape are the flags of what is published; modes have defaults of their own.
type shape struct {
	viewers, size, group, inFlight int
	rate                           float64
}

func (m *mediaFlags) media(ctx context.Context, s *tool.Streams, mode, publish, watch string, sh shape) error {
	target, err := m.target(s, publish, watch)
	if err != nil {
		return err
	}
	return m.run(ctx, s, bench.Media{
		Target: target, Mode: mode, Viewers: sh.viewers, Rate: sh.rate, Size: sh.size, Group: sh.group, InFlight: sh.inFlight,
		MaxAge: m.MaxAge, Warmup: m.Warmup, Window: m.Window, Drain: m.Drain, Connecting: m.Connecting, PerSocket: m.PerSocket,
	})
}

type fanoutCommand struct {
	mediaFlags
	URL     string  `arg:"" help:"The relay."`
	Viewers int     `help:"Viewers, each on a connection of its own." default:"100" short:"n"`
	Rate    float64 `help:"Frames per second." default:"30"`
	Size    int     `help:"Bytes per frame." default:"4096"`
	Group   int     `help:"Frames per group." default:"60"`
}

// Run implements the mode.
func (c *fanoutCommand) Run(ctx context.Context, s *tool.Streams) error {
	return c.media(ctx, s, "fanout", c.URL, "", shape{viewers: c.Viewers, rate: c.Rate, size: c.Size, group: c.Group})
}

type audioCommand struct {
	mediaFlags
	URL     string  `arg:"" help:"The relay."`
	Viewers int     `help:"Viewers, each on a connection of its own." default:"100" short:"n"`
	Rate    float64 `help:"Frames per second." default:"50"`
	Size    int     `help:"Bytes per frame." default:"200"`
	Group   int     `help:"Frames per group; some applications send one." default:"50"`
}

// Run implements the mode.
func (c *audioCommand) Run(ctx context.Context, s *tool.Streams) error {
	return c.media(ctx, s, "audio", c.URL, "", shape{viewers: c.Viewers, rate: c.Rate, size: c.Size, group: c.Group})
}

type bulkCommand struct {
	mediaFlags
	URL      string  `arg:"" help:"The relay."`
	Viewers  int     `help:"Viewers, each on a connection of its own." default:"1" short:"n"`
	Rate     float64 `help:"Frames per second; 0 = as fast as viewers take them, and latency counts from the write." default:"0"`
	InFlight int     `help:"With rate 0: frames that may be under way." default:"16"`
	Size     int     `help:"Bytes per frame." default:"262144"`
	Group    int     `help:"Frames per group." default:"60"`
}

// Run implements the mode.
func (c *bulkCommand) Run(ctx context.Context, s *tool.Streams) error {
	return c.media(ctx, s, "bulk", c.URL, "", shape{
		viewers: c.Viewers, rate: c.Rate, size: c.Size, group: c.Group, inFlight: c.InFlight,
	})
}

type chainCommand struct {
	mediaFlags
	Publish string  `arg:"" help:"The relay to publish to."`
	Watch   string  `arg:"" help:"The relay to watch at, any number of links away."`
	Viewers int     `help:"Viewers, each on a connection of its own." default:"100" short:"n"`
	Rate    float64 `help:"Frames per second." default:"30"`
	Size    int     `help:"Bytes per frame." default:"4096"`
	Group   int     `help:"Frames per group." default:"60"`
}

// Run implements the mode.
func (c *chainCommand) Run(ctx context.Context, s *tool.Streams) error {
	return c.media(ctx, s, "chain", c.Publish, c.Watch, shape{viewers: c.Viewers, rate: c.Rate, size: c.Size, group: c.Group})
}
