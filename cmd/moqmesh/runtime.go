package main

import (
	"log/slog"
	"os"
	"runtime/debug"
)

const (
	// collectAt is how much the heap grows, in percent of what is live, before it is collected. A relay allocates little
	// per frame that it delivers and its groups hold no pointers, so that collecting twice as often as Go's default
	// does costs next to nothing, and saves a quarter of the memory.
	collectAt = 50
)

// tuneRuntime sets the collector's goals for a relay whose cache takes up to capacity bytes (0 = no limit) of the limit of
// the process (0 = unknown), unless the environment has GOGC or GOMEMLIMIT. From the limit on the collector works harder
// rather than let the heap grow. What Go does not count, buffers of sockets and the binary, is not part of it.
func tuneRuntime(capacity, limit int64, log *slog.Logger) {
	growth := os.Getenv("GOGC") == ""
	if growth {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit <= 0 {
		return // unknown: nothing to go by
	}
	debug.SetMemoryLimit(limit)
	if growth && (capacity == 0 || capacity > limit/(100+collectAt)*100) {
		log.Warn("cache.capacity leaves little memory for the garbage collector: a full cache will cost CPU time",
			"capacity", capacity, "limit", limit)
	}
}
