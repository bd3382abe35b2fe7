// Command compare measures moqmesh and, where its binary is named, the Rust relay beside it: both get the same load from
// "moqmesh bench", in turns, relays on one core and the generator on another.
//
//	go run ./bench/compare -moqmesh bin/moqmesh
//	go run ./bench/compare -moqmesh bin/moqmesh -rust /path/to/moq-relay -record runs.jsonl -write docs/benchmarks.md
//
// Runs are added to the record, from which the table is made, so that a comparison can be made in pieces: -cases chooses
// some, -repeats 0 only makes the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	moqmesh  string
	rust     string
	cases    []testCase
	repeats  int
	record   string
	write    string
	profiles string
	search   bool
	relayCPU string
	loadCPU  string
	cgroup   string
	realtime bool
	window   time.Duration
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	kinds, err := s.kinds(ctx)
	if err != nil {
		return err
	}
	if s.repeats == 0 {
		return s.report(nil)
	}
	b, err := newBed(s)
	if err != nil {
		return err
	}
	defer b.close()
	measure := b.turns
	if s.search {
		measure = b.search
	}
	err = measure(ctx, kinds)
	return errors.Join(err, s.report(b.lines)) // what was measured before an interrupt counts
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	var names string
	set := flag.NewFlagSet("compare", flag.ContinueOnError)
	set.StringVar(&s.moqmesh, "moqmesh", "bin/moqmesh", "the binary to measure, and the generator")
	set.StringVar(&s.rust, "rust", "", "moq-relay binary to compare with; without it moqmesh is measured alone")
	set.StringVar(&names, "cases", "all", "which cases, separated by commas: "+caseNames())
	set.IntVar(&s.repeats, "repeats", 5, "how often each case is run; 0 only writes the table")
	set.StringVar(&s.record, "record", "", "file that runs are added to, one JSON line each, and the table is then made from")
	set.StringVar(&s.write, "write", "", "Markdown file that gets the table, between its markers; without it the table is printed")
	set.StringVar(&s.profiles, "profiles", "", "folder that gets a CPU profile of the first relay of each case; without -rust")
	set.DurationVar(&s.window, "window", 10*time.Second, "what is measured of each run of media")
	set.BoolVar(&s.search, "search", false, "instead of the cases: how many viewers one core carries")
	set.StringVar(&s.relayCPU, "relay-cpu", "0", "core of the relays")
	set.StringVar(&s.loadCPU, "load-cpu", "1", "core of the generator")
	set.StringVar(&s.cgroup, "relay-cgroup", "", "folder of a control group that relays are moved into, to give them a share of their core; not with -realtime")
	set.BoolVar(&s.realtime, "realtime", false, "run relays and generator before everything else (SCHED_RR, takes root): for a machine that others use too")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if s.cases, err = chooseCases(names); err != nil {
		return nil, err
	}
	if s.repeats < 0 || s.window <= 0 {
		return nil, errors.New("-repeats: not negative; -window: above 0")
	}
	if s.write != "" && s.record == "" {
		return nil, errors.New("-write: needs -record, so that the table can be made again")
	}
	if s.cgroup != "" && s.realtime {
		return nil, errors.New("-relay-cgroup: shares do not hold with -realtime")
	}
	if s.profiles != "" && s.rust != "" {
		return nil, errors.New("-profiles: of moqmesh alone, not with -rust")
	}
	return s, nil
}

// kinds are the relays to measure, each of which must be there.
func (s *settings) kinds(ctx context.Context) ([]kind, error) {
	kinds := []kind{{name: ours, binary: s.moqmesh, lead: []string{"relay"}}}
	if s.rust != "" {
		kinds = append(kinds, kind{name: rust, binary: s.rust, env: "RUST_LOG=error"})
	}
	for i, k := range kinds {
		if _, err := exec.LookPath(k.binary); err != nil {
			return nil, fmt.Errorf("no %s relay at %q: build it, or give the path of one (%w)", k.name, k.binary, err)
		}
		version := []string{"version"}
		if k.name == rust {
			version = []string{"--version"}
		}
		out, err := exec.CommandContext(ctx, k.binary, version...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", k.binary, version[0], err)
		}
		kinds[i].version = strings.TrimSpace(string(out))
	}
	for _, tool := range []string{"taskset", "chrt"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%s, of util-linux, keeps relays and generator apart from each other and the rest: %w", tool, err)
		}
	}
	return kinds, nil
}
