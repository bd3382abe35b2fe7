package sim_test

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/internal/sim"
	"github.com/moqmesh/moqmesh/route"
)

// in runs a test on a cluster in a bubble of its own. The log is shown if the test fails.
func in(t *testing.T, cfg sim.Config, test func(t *testing.T, c *sim.Cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			c.Stop()
			if t.Failed() && (testing.Verbose() || os.Getenv("SIM_LOG") != "") {
				t.Log("\n" + c.Log())
			}
		}()
		if !c.Await(10*time.Second, c.Linked) {
			t.Fatal("the relays are not linked after 10 s")
		}
		test(t, c)
		for _, fault := range slices.Concat(c.Loops(), c.Empty(), c.Blunders()) {
			t.Error(fault)
		}
	})
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

func hops(ids ...route.Hop) []route.Hop { return ids }

func cost(n uint64) route.Cost { return route.Cost{Warm: n, Cold: n} }

// epoch is when bubbles begin.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
