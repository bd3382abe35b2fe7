package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/testmedia"
)

// Sub subscribes and checks what comes.
type Sub struct {
	Dial

	URL  string `arg:"" help:"The relay."`
	Path string `arg:"" help:"The broadcast."`

	Track     string        `help:"Name of the track." default:"video"`
	Seconds   float64       `help:"Stop so many seconds after subscribing; 0 goes on until the track ends or an interrupt." placeholder:"N"`
	Groups    uint64        `help:"Stop after so many complete groups." placeholder:"N"`
	MaxAge    time.Duration `help:"How far groups may fall behind before they are given up." default:"30s"`
	Start     *uint64       `help:"First group wanted. Without it the relay begins with the newest group (lite-06: the oldest within the max age)." placeholder:"N"`
	Priority  uint8         `help:"Priority of the subscription, 0 to 255." default:"127"`
	Viewers   int           `help:"Watch so many times, each on a session of its own." default:"1"`
	Format    string        `help:"Layout of test frames: mesh, js for those of the JavaScript and Python clients, raw for anything."`
	Output    string        `help:"Write payloads, in order, to this file; - is standard output, and the lines go to standard error. Format raw unless told." placeholder:"FILE"`
	Datagrams bool          `help:"Expect datagrams: missing ones are counted and are no fault."`
	Wait      time.Duration `help:"How long to wait for the announcement; 0 subscribes without." default:"10s"`
}

// Help tells kong more.
func (*Sub) Help() string {
	return Help + `

Every frame is checked: intact, in its place, once; every group must be complete and none missing between the first and
the last, though the two newest may be under way at the end. Lines: subscribed; second, for each second; summary. In the
summary ok says that media came without a fault; wrong, twice and cut count damaged or misplaced frames, frames or groups
that came again, and groups that ended early; gaps lists ranges of missing or unfinished groups. Latency is from the
publisher's clock to the receipt here. Exit status 1 means a fault, or that nothing came, or that the session failed.`
}

// errFault ends the command after a summary that is not ok.
var errFault = errors.New("the media has faults")

// Run watches until the time is up.
func (c *Sub) Run(ctx context.Context, s *Streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	cfg, err := c.Config(s)
	if err != nil {
		return err
	}
	cfg.Role = client.RoleSubscriber
	format, err := c.check()
	if err != nil {
		return err
	}
	say, output, closeOutput, err := c.open(s)
	if err != nil {
		return err
	}
	viewers := make([]*viewer, c.Viewers)
	for i := range viewers {
		viewers[i] = &viewer{c: c, id: i, say: say, check: testmedia.NewChecker(format), output: output}
	}
	c.watch(ctx, cfg, viewers, say)
	sum := c.summary(viewers)
	say.say(sum)
	err = errors.Join(say.failed(), closeOutput())
	if err == nil && !sum.OK {
		err = errFault
		if sum.Error != "" {
			err = errors.New(sum.Error)
		}
	}
	return err
}

// check makes sense of the flags.
func (c *Sub) check() (testmedia.Format, error) {
	switch {
	case c.Viewers < 1:
		return 0, errors.New("--viewers: at least 1")
	case c.Viewers > 1 && c.Output != "":
		return 0, errors.New("--output: for one viewer only")
	case c.Seconds < 0 || c.MaxAge < 0 || c.Wait < 0:
		return 0, errors.New("durations cannot be negative")
	case c.Format != "":
		return testmedia.ParseFormat(c.Format)
	case c.Output != "":
		return testmedia.Raw, nil
	}
	return testmedia.Mesh, nil
}

// open says where lines and payloads go.
func (c *Sub) open(s *Streams) (say *events, output io.Writer, closeOutput func() error, err error) {
	none := func() error { return nil }
	switch c.Output {
	case "":
		return &events{out: s.Out}, nil, none, nil
	case "-":
		return &events{out: s.Err}, s.Out, none, nil
	}
	f, err := os.Create(c.Output)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("--output: %w", err)
	}
	return &events{out: s.Out}, f, f.Close, nil
}

// connecting bounds how many viewers dial at the same time.
const connecting = 16

// watch runs the viewers and reports each second until all are done.
func (c *Sub) watch(ctx context.Context, cfg client.Config, viewers []*viewer, say *events) {
	var running sync.WaitGroup
	slots := make(chan struct{}, connecting)
	for _, v := range viewers {
		running.Go(func() { v.run(ctx, cfg, slots) })
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if line, any := c.second(viewers); any {
				say.say(line)
			}
		case <-done:
			return
		}
	}
}

// subscription is what the flags ask for.
func (c *Sub) subscription() client.Subscription {
	sub := client.Subscription{Priority: c.Priority, MaxAge: c.MaxAge}
	if c.Start != nil {
		sub.Start = &client.Position{Group: *c.Start}
	}
	return sub
}
