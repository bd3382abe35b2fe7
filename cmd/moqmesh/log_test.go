package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// TestLogLinesAreBounded: whatever a stranger calls himself, a line stays a line.
func TestLogLinesAreBounded(t *testing.T) {
	var out strings.Builder
	log := newLogger(&out, slog.LevelInfo)
	long := strings.Repeat("ä", 50_000)
	log.Info("session refused", "path", "/"+long, "error", errors.New(long), "session", 7, "root", "short\nroot")
	line := out.String()
	if len(line) > 4500 || strings.Count(line, "\n") != 1 || strings.Count(line, "ää…") != 2 {
		t.Errorf("%d bytes: %s", len(line), line)
	}
	for _, want := range []string{"session=7", `root="short\nroot"`, `msg="session refused"`} {
		if !strings.Contains(line, want) {
			t.Errorf("%s is missing: %s", want, line)
		}
	}
}
