package bench

import (
	"math"
	"time"

	"github.com/moqmesh/moqmesh/internal/latency"
)

// Result of a run: what all modes have, and the figures of one.
type Result struct {
	Mode    string `json:"mode"`
	Carrier string `json:"carrier,omitempty"` // of the viewers
	Version string `json:"version,omitempty"`
	// Good says that nothing was lost, came twice, was damaged or failed; Faults lists what did.
	Good     bool     `json:"good"`
	Faults   []string `json:"faults"`
	Warnings []string `json:"warnings"` // why the figures may mislead
	Load

	Media    *MediaFigures    `json:"media,omitempty"`
	Join     *JoinFigures     `json:"join,omitempty"`
	Announce *AnnounceFigures `json:"announce,omitempty"`
	Idle     *IdleFigures     `json:"idle,omitempty"`
	Failover *FailoverFigures `json:"failover,omitempty"`
}

// Delays are quantiles in milliseconds.
type Delays struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func delays(h *latency.Histogram) Delays {
	return Delays{ms(h.Quantile(0.5)), ms(h.Quantile(0.95)), ms(h.Quantile(0.99)), ms(h.Max())}
}

// ms is d in milliseconds with three decimals.
func ms(d time.Duration) float64 { return round(d.Seconds() * 1000) }

// round keeps three decimals.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// per is a share, 0 where there is nothing to share.
func per(v, n float64) float64 {
	if n == 0 {
		return 0
	}
	return round(v / n)
}

// speaks notes what a viewer speaks.
func (r *Result) speaks(t *thin) {
	r.Carrier, r.Version = string(t.conn.Info().Kind), t.v.String()
}

// fault adds one if n is not 0.
func (r *Result) fault(n uint64, text string) {
	if n > 0 {
		r.Faults = append(r.Faults, count(n, text))
	}
}

// mediaFaults adds those of a track that was watched.
func (r *Result) mediaFaults(lost, twice, wrong uint64, ended int) {
	r.fault(lost, "frames lost")
	r.fault(twice, "frames twice")
	r.fault(wrong, "frames wrong")
	r.fault(uint64(ended), "viewers ended")
}

// lateLimit is how far behind its schedule 1 in 100 frames may be sent before the latencies are doubtful.
const lateLimit = 20 * time.Millisecond

// finish judges, and warns where the generator was the limit. late is how far it was behind its schedule.
func (r *Result) finish(late *latency.Histogram) Result {
	if r.Saturated {
		r.Warnings = append(r.Warnings, "the generator was at its limit: latencies, losses and rates are its own, not the relay's")
	} else if r.OwnPeak >= saturatedAt*float64(r.OwnCores) && r.OwnCores > 0 {
		r.Warnings = append(r.Warnings, "the generator was at its limit for a part of the window: the largest latencies may be its own")
	}
	if late != nil && late.Quantile(0.99) > lateLimit {
		r.Warnings = append(r.Warnings, "frames were sent late: the generator had too little of the machine, and latencies include that")
	}
	r.Good = len(r.Faults) == 0
	if r.Faults == nil {
		r.Faults = []string{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	return *r
}
