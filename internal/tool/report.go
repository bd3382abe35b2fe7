package tool

import (
	"github.com/moqmesh/moqmesh/internal/latency"
	"github.com/moqmesh/moqmesh/internal/testmedia"
)

// delays are quantiles of latency in milliseconds; absent where frames say nothing of their time.
type delays struct {
	P50 *float64 `json:"p50_ms,omitempty"`
	P99 *float64 `json:"p99_ms,omitempty"`
	Max *float64 `json:"max_ms,omitempty"`
}

func delaysOf(h *latency.Histogram) delays {
	if h.Count() == 0 {
		return delays{}
	}
	p50, p99, top := milliseconds(h.Quantile(0.5)), milliseconds(h.Quantile(0.99)), milliseconds(h.Max())
	return delays{&p50, &p99, &top}
}

// secondLine sums up one second of all viewers; faults are totals.
type secondLine struct {
	head
	Viewers int    `json:"viewers"` // that have received anything
	Frames  uint64 `json:"frames"`
	Bytes   uint64 `json:"bytes"`
	delays
	Gaps  uint64 `json:"gaps"` // missing and unfinished groups
	Wrong uint64 `json:"wrong"`
	Twice uint64 `json:"twice"`
}

// second reports what came since the last call; false as long as nothing ever came.
func (c *Sub) second(viewers []*viewer) (secondLine, bool) {
	line := secondLine{head: event("second")}
	var h latency.Histogram
	for _, v := range viewers {
		v.mu.Lock()
		r := v.check.Report(v.clean)
		h.Merge(&v.second)
		v.second = latency.Histogram{}
		line.Frames += r.Frames - v.told.Frames
		line.Bytes += r.Bytes - v.told.Bytes
		v.told = r
		v.mu.Unlock()
		if r.Frames > 0 {
			line.Viewers++
		}
		line.Gaps += r.Missing + r.Cut
		line.Wrong += r.Wrong
		line.Twice += r.Twice
	}
	line.delays = delaysOf(&h)
	return line, line.Viewers > 0
}

// summaryLine is the last line.
type summaryLine struct {
	head
	OK      bool        `json:"ok"`
	Viewers int         `json:"viewers"`
	Failed  int         `json:"failed"` // viewers with a fault
	Frames  uint64      `json:"frames"`
	Bytes   uint64      `json:"bytes"`
	Groups  uint64      `json:"groups"` // complete ones
	First   uint64      `json:"first"`
	Last    uint64      `json:"last"`
	Gaps    [][2]uint64 `json:"gaps"` // of the first viewer that has any
	Missing uint64      `json:"missing"`
	Cut     uint64      `json:"cut"`
	Wrong   uint64      `json:"wrong"`
	Twice   uint64      `json:"twice"`
	delays
	Stall float64 `json:"longest_stall_ms"`
	Ended string  `json:"ended,omitempty"`
	Error string  `json:"error,omitempty"`
}

// summary judges. It is called when all viewers are done.
func (c *Sub) summary(viewers []*viewer) summaryLine {
	line := summaryLine{head: event("summary"), Viewers: len(viewers), Gaps: [][2]uint64{}}
	var h latency.Histogram
	for _, v := range viewers {
		r := v.check.Report(v.clean)
		if !c.good(r) || v.err != nil {
			line.Failed++
		}
		if r.Frames > 0 && (line.Frames == 0 || r.First < line.First) {
			line.First = r.First
		}
		line.Last = max(line.Last, r.Last)
		line.Frames += r.Frames
		line.Bytes += r.Bytes
		line.Groups += r.Groups
		line.Missing += r.Missing
		line.Cut += r.Cut
		line.Wrong += r.Wrong
		line.Twice += r.Twice
		if len(line.Gaps) == 0 && len(r.Gaps) > 0 {
			line.Gaps = r.Gaps
		}
		h.Merge(&v.total)
		line.Stall = max(line.Stall, milliseconds(v.stall))
		if line.Ended == "" {
			line.Ended = v.ended
		}
		if line.Error == "" && v.err != nil {
			line.Error = v.err.Error()
		}
	}
	line.delays = delaysOf(&h)
	line.OK = line.Failed == 0
	return line
}

// good judges one viewer.
func (c *Sub) good(r testmedia.Report) bool {
	if c.Datagrams {
		r.Missing = 0
	}
	return r.OK()
}
