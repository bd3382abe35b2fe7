package sim_test

import (
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/moqmesh/moqmesh/internal/sim"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this seed alone")
	seeds     = flag.Int("seeds", 0, "how many seeds to run; 0 = as many as belong to the test tier")
	debug     = flag.Bool("debug", false, "log more")
	firstSeed = flag.Uint64("first", 1, "the first of them")
)

// TestSeeds runs random clusters with random faults. A seed that fails is run again, with everything that was said, by
//
//	go test ./internal/sim -run TestSeeds -seed N -v
func TestSeeds(t *testing.T) {
	if *oneSeed != 0 {
		runSeed(t, *oneSeed)
		return
	}
	n := *seeds
	if n == 0 {
		n = tierSeeds
	}
	for seed := *firstSeed; seed < *firstSeed+uint64(n); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			runSeed(t, seed)
		})
	}
}

func runSeed(t *testing.T, seed uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		level := slog.LevelInfo
		if *debug {
			level = slog.LevelDebug
		}
		plan, faults, log := sim.Execute(seed, level)
		if testing.Verbose() && *oneSeed != 0 {
			t.Logf("%v\n%s", plan, log)
		}
		if len(faults) > 0 {
			t.Errorf("%v\n%s\nrun it again with: go test ./internal/sim -run TestSeeds -seed %d -v", plan, strings.Join(faults, "\n"), seed)
		}
	})
}
