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
