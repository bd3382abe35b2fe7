package bench

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Table is the result for people: one figure a line.
func (r Result) Table() []byte {
	var b bytes.Buffer
	t := &table{w: tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)}
	t.line("%s\t%s", r.Mode, strings.TrimSpace(r.Version+" "+r.Carrier))
	switch {
	case r.Media != nil:
		t.media(r.Media)
	case r.Join != nil:
		t.join(r.Join)
	case r.Announce != nil:
		t.announce(r.Announce)
	case r.Idle != nil:
		t.idle(r.Idle)
	case r.Failover != nil:
		t.failover(r.Failover)
	}
	t.load(&r.Load)
	verdict := "good"
	if !r.Good {
		verdict = "BAD: " + strings.Join(r.Faults, ", ")
	}
	t.line("result\t%s", verdict)
	for _, w := range r.Warnings {
		t.line("WARNING\t%s", w)
	}
	_ = t.w.Flush() // into a buffer
	return b.Bytes()
}

type table struct{ w *tabwriter.Writer }

func (t *table) line(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

func (t *table) delays(what string, d Delays) {
	t.line("%s\tp50 %.2f ms, p95 %.2f, p99 %.2f, max %.2f", what, d.P50, d.P95, d.P99, d.Max)
}

// relay prints a figure of the relays, which is 0 where nobody told their process ids.
func (t *table) relay(what, format string, v float64) {
	if v != 0 {
		t.line("%s\t"+format, what, v)
	}
}

func (t *table) media(m *MediaFigures) {
	pace := "as fast as it goes"
	if m.Rate > 0 {
		pace = fmt.Sprintf("%g a second", m.Rate)
	}
	t.line("load\t%d viewers, frames of %d bytes, %s, %d a group", m.Viewers, m.Size, pace, m.Group)
	t.line("delivered\t%d frames, %.1f Mbit/s", m.Frames, m.Mbit)
	t.line("frames lost, twice, wrong\t%d, %d, %d", m.Lost, m.Twice, m.Wrong)
	t.line("viewers that ended\t%d", m.Ended)
	t.delays("latency", m.Delay)
	t.delays("sent late by", m.Late)
	t.relay("relay CPU per Gbit", "%.3f s", m.PerGbit)
	t.relay("relay CPU per frame and viewer", "%.1f µs", m.PerFrame)
	t.relay("relay memory per viewer", "%.0f KiB", m.PerViewer)
	t.line("generator per frame and viewer\t%.1f µs", m.OwnPerFrame)
}

func (t *table) join(j *JoinFigures) {
	t.line("load\t%d joins, %d viewers before", j.Joiners, j.Viewers)
	t.line("joins that failed\t%d", j.Failed)
	t.delays("total", j.Total)
	t.delays("connect", j.Connect)
	t.delays("announcement", j.Announced)
	t.delays("first frame", j.Frame)
	t.delays("begun late by", j.Late)
	if j.Viewers > 0 {
		t.delays("latency of the viewers", j.Delay)
		t.line("frames they lost, got twice\t%d, %d", j.Lost, j.Twice)
	}
	t.relay("relay CPU per join", "%.2f ms", j.CPU)
}

func (t *table) announce(a *AnnounceFigures) {
	t.line("load\t%d broadcasts, %d watchers", a.Broadcasts, a.Watchers)
	t.line("all announced\t%.1f ms", a.Announced)
	t.line("all to a late watcher\t%.1f ms", a.Late)
	t.line("all withdrawn\t%.1f ms", a.Withdrawn)
	t.line("missing\t%d", a.Missing)
	if a.AnnounceCPU > 0 {
		t.line("relay CPU\t%.2f s to announce, %.2f for the late watcher, %.2f to withdraw", a.AnnounceCPU, a.LateCPU, a.WithdrawCPU)
	}
	t.relay("relay memory per broadcast", "%.2f KiB", a.KiB)
	t.line("generator CPU\t%.2f s to announce", a.OwnCPU)
}

func (t *table) idle(i *IdleFigures) {
	t.line("load\t%d sessions, %d alive at the end", i.Sessions, i.Alive)
	t.delays("ready", i.Ready)
	t.relay("relay memory per session", "%.1f KiB", i.KiB)
	t.relay("relay CPU per handshake", "%.2f ms", i.Handshake)
	t.relay("relay CPU per session and second", "%.1f µs", i.CPU)
	t.line("generator per session and second\t%.1f µs", i.OwnCPU)
	t.line("while connecting\tgenerator %.0f %%, others %.0f %%", i.RampPct, i.RampOthers)
}

func (t *table) failover(f *FailoverFigures) {
	t.line("load\t%d viewers, a frame every %.1f ms", f.Viewers, f.Interval)
	t.line("event\t%s", f.Event)
	t.line("longest gap\t%.1f ms", f.Gap)
	t.line("frames lost, twice, wrong\t%d, %d, %d", f.Lost, f.Twice, f.Wrong)
	t.line("viewers that ended, get nothing\t%d, %d", f.Ended, f.Silent)
	t.delays("latency", f.Delay)
	t.delays("sent late by", f.Late)
}

func (t *table) load(l *Load) {
	for _, r := range l.Relays {
		t.line("relay %d\t%.1f %% of a core, %.1f MiB (peak %.1f)", r.PID, r.Percent, r.RSS, r.Peak)
	}
	t.line("generator\t%.1f %% of a core (peak %.1f) of %d", l.Own, l.OwnPeak, l.OwnCores)
	t.line("others\t%.1f %% of a core", l.Others)
	t.line("window\t%.1f s", l.Seconds)
}
