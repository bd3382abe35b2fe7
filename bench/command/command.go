// Package command is "moqmesh bench": flags in, one run, a table or a JSON line out.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/bench"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/tool"
)

// Command is the flags of all modes.
type Command struct {
	Fanout   fanoutCommand   `cmd:"" help:"One track of video to many viewers."`
	Audio    audioCommand    `cmd:"" help:"Small frames: 50 a second of 200 bytes."`
	Bulk     bulkCommand     `cmd:"" help:"Large frames to one viewer, as fast as it goes."`
	Chain    chainCommand    `cmd:"" help:"Fan-out at one relay of what is published at another."`
	Join     joinCommand     `cmd:"" help:"Viewers that come while a track runs, on a schedule or as a storm."`
	Announce announceCommand `cmd:"" help:"Many broadcasts announced and withdrawn."`
	Idle     idleCommand     `cmd:"" help:"Sessions on which nothing happens."`
	Failover failoverCommand `cmd:"" help:"One broadcast through two relays, of which one goes away."`
}

// Help tells kong more.
func (*Command) Help() string {
	return tool.Help + `

Each mode makes one run against relays that are there and prints what it measured. Frames are sent on a schedule, and latency
counts from when a frame was due. Viewers speak moq-lite 05 or 06. Exit status: 0; 1 if there was no run; 2 if frames were
lost, doubled or damaged, sessions failed, or announcements are missing. A WARNING means that the generator was the limit.`
}

// ErrFaults is the error of a run in which frames were lost, doubled or damaged, or sessions failed. Its exit status is 2.
var ErrFaults error = faults{}

type faults struct{}

func (faults) Error() string   { return "the relay lost, doubled or damaged something" }
func (faults) ExitStatus() int { return 2 }

// Common are the flags of every mode.
type Common struct {
	tool.Dial
	PID     []int  `help:"Process id of a relay, for its CPU time and memory; several are added up." placeholder:"PID"`
	JSON    bool   `name:"json" help:"Print one JSON line instead of the table."`
	Profile string `help:"Write a CPU profile of the generator itself." placeholder:"FILE"`
}

// collectAt is how far the generator's heap grows before it is collected, in percent: its CPU time is dearer than its memory.
const collectAt = 400

// runner is a mode that is set up.
type runner interface {
	Run(ctx context.Context) (bench.Result, error)
}

// target is what the common flags say of the relays.
func (c *Common) target(s *tool.Streams, publish, watch string) (bench.Target, error) {
	cfg, err := c.Config(s)
	if err != nil {
		return bench.Target{}, err
	}
	for _, v := range cfg.Versions {
		if v < client.Version(5) {
			return bench.Target{}, errors.New("--version: viewers speak lite-05 and lite-06")
		}
	}
	return bench.Target{Publish: publish, Watch: watch, TLS: cfg.TLS, Versions: cfg.Versions, PIDs: c.PID}, nil
}

// run makes the run and prints what came of it.
func (c *Common) run(ctx context.Context, s *tool.Streams, r runner) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	end, err := c.profile()
	if err != nil {
		return err
	}
	result, err := r.Run(ctx)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	for _, w := range result.Warnings {
		fmt.Fprintf(s.Err, "moqmesh bench: WARNING: %s\n", w)
	}
	if c.JSON {
		err = json.NewEncoder(s.Out).Encode(result)
	} else {
		_, err = s.Out.Write(result.Table())
	}
	if err == nil && !result.Good {
		err = ErrFaults
	}
	return err
}

// profile begins the profile that was asked for; the result ends it.
func (c *Common) profile() (func() error, error) {
	if c.Profile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(c.Profile)
	if err != nil {
		return nil, fmt.Errorf("--profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// duration is how flags say it.
type duration = time.Duration
