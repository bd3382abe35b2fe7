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
		percent        int
		limited, warns bool
	}{
		"defaults":           {capacity: 1 << 20, percent: collectAt, limited: true},
		"cache without end":  {percent: collectAt, limited: true, warns: true},
		"too large a cache":  {capacity: math.MaxInt64, percent: collectAt, limited: true, warns: true},
		"GOGC counts":        {gogc: "200", capacity: math.MaxInt64, percent: 77, limited: true},
		"GOMEMLIMIT counts":  {memlimit: "1GiB", percent: collectAt},
		"both count, silent": {gogc: "off", memlimit: "1GiB", percent: 77},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", test.gogc)
			t.Setenv("GOMEMLIMIT", test.memlimit)
			debug.SetGCPercent(77)
			debug.SetMemoryLimit(math.MaxInt64)
			var log bytes.Buffer
			tuneRuntime(test.capacity, 1<<30, slog.New(slog.NewTextHandler(&log, nil)))
			if got := debug.SetGCPercent(100); got != test.percent {
				t.Errorf("collects at %d %%, want %d %%", got, test.percent)
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
