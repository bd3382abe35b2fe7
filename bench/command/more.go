package command

import (
	"context"
	"fmt"
	"syscall"

	"github.com/moqmesh/moqmesh/bench"
	"github.com/moqmesh/moqmesh/internal/tool"
)

type joinCommand struct {
	Common
	Publish string `arg:"" help:"The relay to publish to."`
	Watch   string `arg:"" optional:"" help:"The relay to join at; default the same."`

	Joiners    int      `help:"How many come." default:"200" short:"n"`
	PerSecond  float64  `help:"Joins per second, on a schedule." default:"20"`
	AtOnce     int      `help:"A storm instead: so many joins under way at any time." placeholder:"N"`
	Stay       bool     `help:"Joiners stay and watch; else they leave with their first frame."`
	Wait       bool     `help:"Joiners wait for the announcement before they subscribe." default:"true" negatable:""`
	Viewers    int      `help:"Viewers who are there before; 0 = each join has to fetch the track from where it is." default:"1"`
	Rate       float64  `help:"Frames per second." default:"30"`
	Size       int      `help:"Bytes per frame." default:"4096"`
	Group      int      `help:"Frames per group." default:"60"`
	MaxAge     duration `help:"How far behind the newest group viewers want the others." default:"5s"`
	Warmup     duration `help:"Time before the first join." default:"1s"`
	Drain      duration `help:"How long what viewers miss may still come." default:"5s"`
	Connecting int      `help:"Viewers that connect at the same time, before." default:"8"`
	PerSocket  int      `help:"Viewers that share a UDP socket." default:"50"`
}

// Run implements the mode.
func (c *joinCommand) Run(ctx context.Context, s *tool.Streams) error {
	target, err := c.target(s, c.Publish, c.Watch)
	if err != nil {
		return err
	}
	perSecond := c.PerSecond
	if c.AtOnce > 0 {
		perSecond = 0
	}
	return c.run(ctx, s, bench.Join{
		Target: target, Joiners: c.Joiners, PerSec: perSecond, AtOnce: c.AtOnce, Stay: c.Stay, Wait: c.Wait, Viewers: c.Viewers,
		Rate: c.Rate, Size: c.Size, Group: c.Group, MaxAge: c.MaxAge, Warmup: c.Warmup, Drain: c.Drain,
		Connecting: c.Connecting, PerSocket: c.PerSocket,
	})
}

type announceCommand struct {
	Common
	Publish string `arg:"" help:"The relay to announce to."`
	Watch   string `arg:"" optional:"" help:"The relay where watchers are; default the same."`

	Broadcasts int      `help:"How many." default:"1000" short:"n"`
	Watchers   int      `help:"Who wait for them." default:"4"`
	Limit      duration `help:"How long each step may take." default:"60s"`
}

// Run implements the mode.
func (c *announceCommand) Run(ctx context.Context, s *tool.Streams) error {
	target, err := c.target(s, c.Publish, c.Watch)
	if err != nil {
		return err
	}
	return c.run(ctx, s, bench.Announce{Target: target, Broadcasts: c.Broadcasts, Watchers: c.Watchers, Limit: c.Limit})
}

type idleCommand struct {
	Common
	URL string `arg:"" help:"The relay."`

	Sessions   int      `help:"How many." default:"500" short:"n"`
	Bare       bool     `help:"Sessions ask for nothing; else each has an announce stream and a subscription with an open group."`
	Settle     duration `help:"Time before the window." default:"5s"`
	Window     duration `help:"What is measured." default:"15s"`
	Connecting int      `help:"Sessions that connect at the same time." default:"16"`
	PerSocket  int      `help:"Sessions that share a UDP socket." default:"50"`
}

// Run implements the mode.
func (c *idleCommand) Run(ctx context.Context, s *tool.Streams) error {
	target, err := c.target(s, c.URL, "")
	if err != nil {
		return err
	}
	return c.run(ctx, s, bench.Idle{
		Target: target, Sessions: c.Sessions, Bare: c.Bare, Settle: c.Settle, Window: c.Window, Connecting: c.Connecting,
		PerSocket: c.PerSocket,
	})
}

type failoverCommand struct {
	Common
	First  string `arg:"" help:"The relay to publish to at price 1."`
	Second string `arg:"" help:"The relay to publish to at price 10."`
	Watch  string `arg:"" help:"The relay to watch at; it has links to both."`

	Kill       int      `help:"Process id of the first relay, which gets the signal; without it the publisher leaves that relay." placeholder:"PID"`
	Signal     string   `help:"KILL, TERM or STOP (then end the process yourself)." enum:"KILL,TERM,STOP" default:"KILL"`
	Distinct   bool     `help:"Publish as two publishers instead of one."`
	Viewers    int      `help:"Viewers, each on a connection of its own." default:"1" short:"n"`
	Rate       float64  `help:"Frames per second." default:"50"`
	Size       int      `help:"Bytes per frame." default:"1000"`
	Group      int      `help:"Frames per group." default:"50"`
	MaxAge     duration `help:"How far behind the newest group viewers want the others." default:"30s"`
	Before     duration `help:"Time before the event." default:"4s"`
	After      duration `help:"Time after it." default:"16s"`
	Connecting int      `help:"Viewers that connect at the same time." default:"8"`
	PerSocket  int      `help:"Viewers that share a UDP socket." default:"50"`
}

var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "STOP": syscall.SIGSTOP}

// Run implements the mode.
func (c *failoverCommand) Run(ctx context.Context, s *tool.Streams) error {
	target, err := c.target(s, c.First, c.Watch)
	if err != nil {
		return err
	}
	signal, ok := signals[c.Signal]
	if !ok {
		return fmt.Errorf("--signal: %s cannot be sent here", c.Signal)
	}
	return c.run(ctx, s, bench.Failover{
		Target: target, Second: c.Second, PID: c.Kill, Signal: signal, Distinct: c.Distinct, Viewers: c.Viewers,
		Rate: c.Rate, Size: c.Size, Group: c.Group, MaxAge: c.MaxAge, Before: c.Before, After: c.After,
		Connecting: c.Connecting, PerSocket: c.PerSocket,
	})
}
