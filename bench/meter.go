package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/moqmesh/moqmesh/internal/cputime"
)

// meter reads what everybody spends: the relays, this process, the machine.
type meter struct{ pids []int }

// usage is what everybody has spent up to a time.
type usage struct {
	at      time.Time
	relays  []Process
	own     time.Duration
	machine time.Duration // all processes; 0 where the system does not tell
}

// read takes a reading. It fails if a relay is gone.
func (m meter) read() (usage, error) {
	u := usage{relays: make([]Process, len(m.pids))}
	for i, pid := range m.pids {
		var err error
		if u.relays[i], err = ReadProcess(pid); err != nil {
			return u, fmt.Errorf("relay with process id %d: %w", pid, err)
		}
	}
	u.own = cputime.Process()
	u.machine, _ = ReadMachine() // 0 without /proc
	u.at = time.Now()
	return u, nil
}

// RelayLoad is what one relay process spent in the window.
type RelayLoad struct {
	PID     int     `json:"pid"`
	CPU     float64 `json:"cpu_s"`   // seconds, user and system
	Percent float64 `json:"cpu_pct"` // of one core
	RSS     float64 `json:"rss_mib"` // resident at the end
	Peak    float64 `json:"rss_peak_mib"`
}

// Load is what everybody spent in the window. Percentages are of one core.
type Load struct {
	Seconds float64     `json:"window_s"`
	Relays  []RelayLoad `json:"relays,omitempty"`
	// The generator: its share, the largest share in one second of the window, the cores that it may use, and whether it
	// was at its limit, so that the figures say more about it than about the relay.
	Own       float64 `json:"gen_cpu_pct"`
	OwnPeak   float64 `json:"gen_cpu_peak_pct"`
	OwnCores  int     `json:"gen_cores"`
	Saturated bool    `json:"gen_saturated"`
	// Others is the rest of the machine.
	Others float64 `json:"other_cpu_pct"`
}

// relayCPU is the CPU time of all relays, in seconds.
func (l Load) relayCPU() (sum float64) {
	for _, r := range l.Relays {
		sum += r.CPU
	}
	return sum
}

// saturatedAt is the share of its cores from which on the generator counts as saturated, in percent: bursts need room.
const saturatedAt = 85

// load is what was spent from a to b; peak is the generator's largest share in between, in percent.
func (m meter) load(a, b usage, peak float64) Load {
	window := b.at.Sub(a.at).Seconds()
	percent := func(d time.Duration) float64 { return round(100 * d.Seconds() / window) }
	own := b.own - a.own
	l := Load{Seconds: round(window), Own: percent(own), OwnCores: runtime.GOMAXPROCS(0)}
	l.OwnPeak = max(round(peak), l.Own)
	others := b.machine - a.machine - own
	for i, pid := range m.pids {
		cpu := b.relays[i].CPU - a.relays[i].CPU
		others -= cpu
		l.Relays = append(l.Relays, RelayLoad{
			PID: pid, CPU: round(cpu.Seconds()), Percent: percent(cpu),
			RSS: round(mebi(b.relays[i].RSS)), Peak: round(mebi(b.relays[i].Peak)),
		})
	}
	l.Others = max(0, percent(others))
	l.Saturated = l.Own >= saturatedAt*float64(l.OwnCores)
	return l
}

func mebi(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// window lets d pass and measures. It fails if ctx ends or a relay is gone.
func (m meter) window(ctx context.Context, d time.Duration) (Load, usage, error) {
	return m.during(func() error { return sleep(ctx, d) })
}

// during measures while f runs, and looks at the generator every second. The usage is that of the end.
func (m meter) during(f func() error) (Load, usage, error) {
	begin, err := m.read()
	if err != nil {
		return Load{}, begin, err
	}
	peak, stop := watchPeak(begin)
	err = f()
	close(stop)
	if most := <-peak; err == nil {
		var end usage
		if end, err = m.read(); err == nil {
			return m.load(begin, end, most), end, nil
		}
	}
	return Load{}, begin, err
}

// watchPeak delivers the generator's largest share of a core in one second, in percent, once stop is closed.
func watchPeak(begin usage) (peak <-chan float64, stop chan<- struct{}) {
	result, stopped := make(chan float64, 1), make(chan struct{})
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		most, was, at := 0.0, begin.own, begin.at
		for {
			select {
			case <-tick.C:
				own, now := cputime.Process(), time.Now()
				most = max(most, 100*(own-was).Seconds()/now.Sub(at).Seconds())
				was, at = own, now
			case <-stopped:
				result <- most
				return
			}
		}
	}()
	return result, stopped
}

// sleep returns the cause if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
