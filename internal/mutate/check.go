package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// verdict is what became of a mutation: the test that noticed it, or err.
type verdict struct {
	test string
	err  error
}

func (v verdict) brief() string {
	if errors.Is(v.err, errUnnoticed) {
		return "not noticed"
	}
	return "not tested"
}

var (
	errUnnoticed = errors.New("no test notices")
	errCompile   = errors.New("it does not compile")
)

// checker compiles and runs tests with one file replaced.
type checker struct {
	root  string // of the module
	dir   string // for what is made on the way
	limit time.Duration
}

// unchanged demands that the tests pass without any mutation; else every one would count as noticed.
func (c *checker) unchanged(ctx context.Context, chosen []mutation) error {
	seen := make(map[place]bool)
	for _, m := range chosen {
		for _, at := range m.places {
			if seen[at] {
				continue
			}
			seen[at] = true
			dir, err := os.MkdirTemp(c.dir, "unchanged")
			if err != nil {
				return err
			}
			failed, err := c.test(ctx, at, dir, "")
			switch {
			case err != nil:
				return fmt.Errorf("%s without a mutation: %w", at.pkg, err)
			case failed != "":
				return fmt.Errorf("%s fails without a mutation: %s", at.pkg, failed)
			}
		}
	}
	return nil
}

// check applies one mutation and looks for a test that fails.
func (c *checker) check(ctx context.Context, m mutation) verdict {
	dir, err := os.MkdirTemp(c.dir, "mutant")
	if err != nil {
		return verdict{err: err}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := c.overlay(m, dir)
	if err != nil {
		return verdict{err: err}
	}
	for _, at := range m.places {
		if failed, err := c.test(ctx, at, dir, overlay); err != nil || failed != "" {
			return verdict{at.pkg + " " + failed, err}
		}
	}
	return verdict{err: errUnnoticed}
}

// overlay writes the changed file, and the file that puts it in the place of the original.
func (c *checker) overlay(m mutation, dir string) (string, error) {
	original := filepath.Join(c.root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	text, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// test runs the tests of a place and returns the first one that fails, or nothing.
func (c *checker) test(ctx context.Context, at place, dir, overlay string) (failed string, err error) {
	binary := filepath.Join(dir, "test")
	// -vet is off as a mutant need not be good style; without symbols linking is quicker.
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", binary, "./"+at.pkg)
	build.Dir = c.root
	if out, err := build.CombinedOutput(); ctx.Err() != nil {
		return "", ctx.Err()
	} else if err != nil {
		return "", fmt.Errorf("%w: %s", errCompile, bytes.TrimSpace(out))
	}
	args := []string{"-test.v", "-test.failfast", "-test.timeout=" + c.limit.String()}
	// Random tests neither look for a smaller case nor keep the one they found.
	if help, _ := exec.CommandContext(ctx, binary, "-help").CombinedOutput(); bytes.Contains(help, []byte("-rapid.nofailfile")) {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	parts := []string{"-test.skip=" + random, "-test.run=" + random}
	if at.tests != "" {
		parts = []string{"-test.run=" + at.tests}
	}
	for _, part := range parts {
		failed, err = firstFailure(ctx, binary, filepath.Join(c.root, filepath.FromSlash(at.pkg)), append(args, part))
		if err != nil || failed != "" {
			break
		}
	}
	return failed, err
}

// random matches the tests that come last: what an example notices is easier to read.
const random = "Random|Model|Mesh|Retraction|Concurrent"

// firstFailure runs a test binary until a test has failed.
func firstFailure(ctx context.Context, binary, dir string, args []string) (failed string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		w.Close()
		return "", err
	}
	w.Close()
	failed = scan(r)
	if failed != "" {
		cancel()
	}
	err = cmd.Wait()
	if failed != "" {
		return failed, nil
	}
	if err != nil && ctx.Err() == nil {
		return "(the process ended: " + err.Error() + ")", nil
	}
	return "", ctx.Err()
}

// scan reads the output of tests up to the first failure and names the test. A crash counts for the test that had begun
// last.
func scan(r io.Reader) string {
	begun := "before any test"
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		switch l := lines.Text(); {
		case strings.HasPrefix(l, failLine):
			return innermost(strings.Fields(l)[2], lines)
		case strings.HasPrefix(l, "=== RUN "):
			begun = strings.Fields(l)[2]
		case strings.HasPrefix(l, "panic: test timed out"):
			return begun + " (too long)"
		case strings.HasPrefix(l, "panic: "), strings.HasPrefix(l, "fatal error: "):
			return begun + " (crash)"
		}
	}
	return ""
}

const failLine = "--- FAIL: "

// innermost reads the indented lines that follow the one of a failed test, where its subtests are.
func innermost(test string, lines *bufio.Scanner) string {
	for lines.Scan() {
		l := lines.Text()
		if !strings.HasPrefix(l, " ") {
			break
		}
		if sub := strings.TrimSpace(l); strings.HasPrefix(sub, failLine+test+"/") {
			test = strings.Fields(sub)[2]
		}
	}
	return test
}
