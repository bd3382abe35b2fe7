package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/moqmesh/moqmesh/internal/collector"
)

// cacheShare is how much of the memory limit a cache may take, in percent, before the collector is short of room.
const cacheShare = 66

// tuneRuntime sets the collector's goals, until the function that it returns is called, for a relay whose cache takes up to
// capacity bytes (0 = no limit) of the limit of the process (0 = unknown), unless the environment has GOGC or GOMEMLIMIT.
// From the limit on the collector works harder rather than let the heap grow. What Go does not count, buffers of sockets
// and the binary, is not part of it.
func tuneRuntime(capacity, limit int64, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	stop = cancel
	growth := os.Getenv("GOGC") == ""
	if growth {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			collector.Run(ctx)
		}()
		stop = func() { cancel(); <-ended }
	}
	if os.Getenv("GOMEMLIMIT") != "" || limit <= 0 { // unknown: nothing to go by
		return stop
	}
	debug.SetMemoryLimit(limit)
	if growth && (capacity == 0 || capacity > limit/100*cacheShare) {
		log.Warn("cache.capacity leaves little memory for the garbage collector: a full cache will cost CPU time",
			"capacity", capacity, "limit", limit)
	}
	return stop
}
