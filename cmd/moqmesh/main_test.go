package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestArguments runs the binary's entry with arguments that lead to a text or to one line of complaint.
func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		args   string
		status int
		out    string // begins standard output
		err    string // is in the complaint
	}{
		{"--help", 0, "Usage: moqmesh <command>", ""},
		{"help", 0, "Usage: moqmesh <command>", ""},
		{"help sub", 0, "Usage: moqmesh sub <url> <path>", ""},
		{"relay --help", 0, "Usage: moqmesh relay [FILE.toml] [flags]\n\nSettings", ""},
		{"help relay", 0, "Usage: moqmesh relay [FILE.toml] [flags]\n\nSettings", ""},
		{"version", 0, "moqmesh ", ""},
		{"--version", 0, "moqmesh ", ""},
		{"nonsense", 1, "", "nonsense"},
		{"--nonsense", 1, "", "moqmesh --help"},
		{"pub", 1, "", "<url> <path>"},
		{"sub http://h/ p --seconds x", 1, "", "--seconds"},
		{"help bench fanout", 0, "Usage: moqmesh bench fanout <url>", ""},
		{"bench fanout nowhere", 1, "", "URL"},
		{"relay a b", 1, "", "a, b"},
	} {
		var out, complaint strings.Builder
		status := run(strings.Fields(tc.args), strings.NewReader(""), &out, &complaint)
		if status != tc.status || !strings.HasPrefix(out.String(), tc.out) || tc.out == "" && out.Len() > 0 {
			t.Errorf("%q: exit status %d, %q", tc.args, status, out.String())
		}
		if !strings.Contains(complaint.String(), tc.err) || tc.err == "" && complaint.Len() > 0 {
			t.Errorf("%q: complaint %q", tc.args, complaint.String())
		}
	}
}

// statusError wants an exit status of its own.
type statusError struct{}

func (statusError) Error() string   { return "two" }
func (statusError) ExitStatus() int { return 2 }

func TestExitStatus(t *testing.T) {
	for err, want := range map[error]int{nil: 0, errors.New("any"): 1, statusError{}: 2, fmt.Errorf("wrapped: %w", statusError{}): 2} {
		var complaint strings.Builder
		if got := exitStatus(err, &complaint); got != want || (want == 0) != (complaint.Len() == 0) {
			t.Errorf("%v: exit status %d, complaint %q", err, got, complaint.String())
		}
	}
}
