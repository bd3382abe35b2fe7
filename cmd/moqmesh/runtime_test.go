package main

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

func TestTuneRuntime(t *testing.T) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	for name, test := range map[string]struct {
		gogc, memlimit string
		capacity       int64
		tuned          bool
		limited, warns bool
	}{
		"defaults":           {capacity: 1 << 20, tuned: true, limited: true},
		"cache without end":  {tuned: true, limited: true, warns: true},
		"too large a cache":  {capacity: math.MaxInt64, tuned: true, limited: true, warns: true},
		"GOGC counts":        {gogc: "200", capacity: math.MaxInt64, limited: true},
		"GOMEMLIMIT counts":  {memlimit: "1GiB", tuned: true},
		"both count, silent": {gogc: "off", memlimit: "1GiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			t.Setenv("GOMEMLIMIT", test.memlimit)
			debug.SetGCPercent(777)
			debug.SetMemoryLimit(math.MaxInt64)
			var log bytes.Buffer
			tuneRuntime(test.capacity, 1<<30, slog.New(slog.NewTextHandler(&log, nil)))()
			if got := debug.SetGCPercent(100); (got != 777) != test.tuned {
				t.Errorf("collects at %d %%, tuned: %v", got, test.tuned)
			}
			if got := debug.SetMemoryLimit(-1); (got != math.MaxInt64) != test.limited {
				t.Errorf("memory limit %d", got)
			}
			if got := strings.Contains(log.String(), "cache.capacity"); got != test.warns {
				t.Errorf("logged %q", log.String())
			}
		})
	}
}
