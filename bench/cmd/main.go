// Command cmd measures what a relay spends on its subscribers and prints one JSON line per run: see docs/benchmarks.md.
//
//	go run ./bench/cmd -relay bin/moqmesh
//	go run ./bench/cmd -url https://127.0.0.1:4443/ -pid 1234 -subscribers 100
//
// With -relay it starts that moqmesh binary anew for each run, with a configuration of its own; with -url it takes the
// relay that is there, of whatever make.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moqmesh/moqmesh/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	relay string
	pin   string
	sizes []int
	runs  int
	quic  bool
	bench.Options
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	for range s.runs { // sizes are interleaved, so that a slow minute does not hit one of them alone
		for _, n := range s.sizes {
			o := s.Options
			o.Subscribers = n
			if err := s.one(ctx, o); err != nil {
				return fmt.Errorf("%d subscribers: %w", n, err)
			}
		}
	}
	return nil
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	var sizes string
	set := flag.NewFlagSet("bench", flag.ExitOnError)
	set.StringVar(&s.relay, "relay", "", "moqmesh binary to start for each run")
	set.StringVar(&s.pin, "pin", "", "CPUs that the started relay may use, for taskset: 0 or 0-1")
	set.BoolVar(&s.quic, "quic", false, "with -relay: raw QUIC instead of WebTransport")
	set.StringVar(&s.URL, "url", "", "relay that runs already")
	set.IntVar(&s.PID, "pid", 0, "its process id, for CPU and memory")
	set.StringVar(&sizes, "subscribers", "1,10,100,300", "numbers of subscribers, one run each")
	set.IntVar(&s.runs, "runs", 1, "how often to repeat all of them")
	set.Float64Var(&s.Rate, "rate", 30, "frames per second")
	set.IntVar(&s.Size, "size", 4096, "bytes per frame")
	set.IntVar(&s.Group, "group", 60, "frames per group")
	set.DurationVar(&s.Window, "window", 10*time.Second, "what is measured")
	set.DurationVar(&s.Warmup, "warmup", 2*time.Second, "before the window, once all viewers receive")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if (s.relay == "") == (s.URL == "") {
		return nil, errors.New("one of -relay and -url is needed")
	}
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-subscribers: %q is not a number above 0", text)
		}
		s.sizes = append(s.sizes, n)
	}
	return s, nil
}

// one makes one run and prints its line.
func (s *settings) one(ctx context.Context, o bench.Options) error {
	if s.relay != "" {
		r, err := startRelay(ctx, s.relay, s.pin)
		if err != nil {
			return err
		}
		defer r.stop()
		o.URL, o.PID = r.url(s.quic), r.pid()
	}
	result, err := bench.Fanout(ctx, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
