package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/route"
)

// Announced lists what a relay announces.
type Announced struct {
	Dial

	URL     string  `arg:"" help:"The relay."`
	Prefix  string  `arg:"" optional:"" help:"Only what is at or below this path."`
	Seconds float64 `help:"Stop after so many seconds; 0 goes on until interrupted." placeholder:"N"`
	Once    bool    `help:"Stop after what is announced now."`
}

// Help tells kong more.
func (*Announced) Help() string {
	return Help + `

Each line is one event: announced, changed (another route, with its hops and prices) or withdrawn. Paths are complete;
prices are shown where the wire carries them. Exit status 1 means that the session failed.`
}

// announcement is a line.
type announcement struct {
	head
	Path string      `json:"path"`
	Hops []route.Hop `json:"hops,omitempty"`
	Warm *uint64     `json:"warm,omitempty"`
	Cold *uint64     `json:"cold,omitempty"`
}

// Run prints announcements until the time is up.
func (c *Announced) Run(ctx context.Context, s *Streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	cfg, err := c.Config(s)
	if err != nil {
		return err
	}
	cfg.Role = client.RoleSubscriber
	cl, err := dial(ctx, c.URL, cfg)
	if err != nil {
		return over(ctx, err)
	}
	defer cl.Close()
	say := &events{out: s.Out}
	say.say(struct {
		head
		Version string `json:"version"`
	}{event("connected"), cl.Version().String()})
	if c.Seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, seconds(c.Seconds))
		defer cancel()
	}
	return over(ctx, c.follow(ctx, cl, say))
}

func (c *Announced) follow(ctx context.Context, cl *client.Client, say *events) error {
	list, err := cl.Announced(ctx, c.Prefix)
	if err != nil {
		return err
	}
	defer list.Close()
	if c.Once {
		all, err := list.Initial(ctx)
		for _, a := range all {
			say.say(line(a, cl.HasCost()))
		}
		return errors.Join(err, say.failed())
	}
	for say.failed() == nil {
		a, err := list.Next(ctx)
		if err != nil {
			return err
		}
		say.say(line(a, cl.HasCost()))
	}
	return say.failed()
}

func line(a client.Announcement, priced bool) announcement {
	l := announcement{Path: a.Path, Hops: a.Hops, head: event("announced")}
	switch {
	case !a.Active:
		l.head = event("withdrawn")
		return l
	case a.Changed:
		l.head = event("changed")
	}
	if priced {
		l.Warm, l.Cold = &a.Cost.Warm, &a.Cost.Cold
	}
	return l
}

// over turns the end of our own time into success.
func over(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// awaitAnnounced waits until a broadcast is announced at exactly path, for at most limit.
func awaitAnnounced(ctx context.Context, cl *client.Client, path string, limit time.Duration) error {
	waiting, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%q was not announced within %v", path, limit))
	defer cancel()
	list, err := cl.Announced(waiting, path)
	if err != nil {
		return err
	}
	defer list.Close()
	for {
		a, err := list.Next(waiting)
		if err != nil {
			return err
		}
		if a.Active && a.Path == list.Prefix() {
			return nil
		}
	}
}
