// Command mutate breaks the rules of routing and failover one by one, each in a way that mutations.txt keeps, and
// demands that a test notices. It prints the first test that fails for each; those that none notices are its errors.
// The tree is not touched: the compiler gets the changed file as an overlay.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

//go:embed mutations.txt
var kept string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "mutate: %v\n", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("only", "", "apply one mutation, by its number, or those of one rule, such as R24")
	jobs := flags.Int("jobs", runtime.NumCPU(), "how many to test at the same time")
	limit := flags.Duration("limit", time.Minute, "how long the tests of a package may run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := parse(kept)
	if err != nil {
		return err
	}
	chosen := choose(all, *only)
	if len(chosen) == 0 {
		return fmt.Errorf("no mutation %q", *only)
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := &checker{root: root, dir: dir, limit: *limit}
	if err := c.unchanged(ctx, chosen); err != nil {
		return err
	}
	return c.all(ctx, chosen, max(1, *jobs), out)
}

// choose selects by number or rule; all of them without one.
func choose(all []mutation, only string) []mutation {
	return slices.DeleteFunc(slices.Clone(all), func(m mutation) bool {
		return only != "" && only != strconv.Itoa(m.number) && !slices.Contains(m.rules, only)
	})
}

func moduleRoot(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	return filepath.Clean(string(bytes.TrimSpace(text))), nil
}

// all tests the mutations and prints a line for each, in their order.
func (c *checker) all(ctx context.Context, chosen []mutation, jobs int, out io.Writer) error {
	verdicts := make([]chan verdict, len(chosen))
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for i := range next {
				verdicts[i] <- c.check(ctx, chosen[i])
			}
		})
	}
	go func() {
		defer close(next)
		for i := range chosen {
			next <- i
		}
	}()
	defer workers.Wait()
	var bad []error
	for i, m := range chosen {
		v := <-verdicts[i]
		if v.err == nil {
			fmt.Fprintf(out, "%3d  %-9s %-50s %s\n", m.number, m.label(), v.test, m.what)
			continue
		}
		err := fmt.Errorf("%d %s (%s): %w", m.number, m.label(), m.what, v.err)
		fmt.Fprintf(out, "%3d  %-9s %-50s %s\n", m.number, m.label(), "!! "+v.brief(), m.what)
		bad = append(bad, err)
	}
	fmt.Fprintf(out, "%d mutations, %d noticed\n", len(chosen), len(chosen)-len(bad))
	return errors.Join(bad...)
}
