package collector

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/moqmesh/moqmesh/internal/cputime"
)

// lookEvery is how often usage is looked at.
const lookEvery = 250 * time.Millisecond

// Run sets how far the heap may grow until ctx ends.
func Run(ctx context.Context) {
	var core Core
	m := newMeter()
	set := 0
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		v := core.Observe(m.read(time.Now()))
		if d := 8 * (v.Growth - set); d >= set || d <= -set { // all goroutines stop for a change
			set = v.Growth
			debug.SetGCPercent(set)
		}
		if v.Release {
			debug.FreeOSMemory()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// What the runtime is asked for.
var names = [...]string{"/gc/heap/live:bytes", "/gc/scan/heap:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes"}

// meter reads the usage of this process. It is not safe for concurrent use.
type meter struct {
	samples [len(names)]metrics.Sample
	at      time.Time
	cpu     time.Duration
}

func newMeter() *meter {
	m := &meter{at: time.Now(), cpu: cputime.Process()}
	for i, name := range names {
		m.samples[i].Name = name
	}
	return m
}

// read returns the usage since the last call.
func (m *meter) read(now time.Time) (u Usage) {
	spent := cputime.Process()
	if had := now.Sub(m.at) * time.Duration(runtime.GOMAXPROCS(0)); had > 0 {
		u.CPU = 100 * float64(spent-m.cpu) / float64(had)
	}
	m.at, m.cpu = now, spent
	metrics.Read(m.samples[:])
	var v [len(names)]int64
	for i, s := range m.samples {
		if s.Value.Kind() == metrics.KindUint64 {
			v[i] = int64(s.Value.Uint64())
		}
	}
	fixed := v[2] + v[3]
	u.Scanned, u.Base = v[1]+fixed, v[0]+fixed
	return u
}
