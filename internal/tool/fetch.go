package tool

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moqmesh/moqmesh/client"
)

// Fetch prints one group.
type Fetch struct {
	Dial

	URL   string `arg:"" help:"The relay."`
	Path  string `arg:"" help:"The broadcast."`
	Track string `arg:"" help:"The track."`
	Group uint64 `arg:"" help:"The number of the group."`

	Frame    uint64  `help:"Begin with this frame, counted from 0." placeholder:"N"`
	Frames   uint64  `help:"Print so many frames; 0 prints all to the end of the group." placeholder:"N"`
	Priority uint8   `help:"Priority of the request, 0 to 255." default:"127"`
	Seconds  float64 `help:"Give up after so many seconds." default:"30" placeholder:"N"`
}

// Help tells kong more.
func (*Fetch) Help() string {
	return Help + `

The payloads go to standard output, one after the other, as they arrive. Exit status 1 means that the group is not to be
had, or not completely.`
}

// Run writes the payloads.
func (c *Fetch) Run(ctx context.Context, s *Streams) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if c.Seconds > 0 {
		var cancel context.CancelFunc
		limit := seconds(c.Seconds)
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("group %d is not complete within %v", c.Group, limit))
		defer cancel()
	}
	cfg, err := c.Config(s)
	if err != nil {
		return err
	}
	cfg.Role = client.RoleSubscriber
	cl, err := dial(ctx, c.URL, cfg)
	if err != nil {
		return err
	}
	defer cl.Close()
	req := client.FetchRequest{Path: c.Path, Track: c.Track, Priority: c.Priority, Group: c.Group, Frame: c.Frame}
	if c.Frames > 0 {
		end := c.Frame + c.Frames
		req.End = &end
	}
	group, err := cl.Fetch(ctx, req)
	if err != nil {
		return err
	}
	defer group.Close()
	for {
		f, err := group.ReadFrame(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("group %d: %w", c.Group, err)
		}
		if _, err := s.Out.Write(f.Payload); err != nil {
			return err
		}
	}
}
