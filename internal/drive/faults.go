package drive

import (
	"fmt"
	"time"
)

// ClockGroup is the newest group at a time of a track whose publishers run with --start clock, at 30 frames per second and
// group.
func ClockGroup(at time.Time) uint64 { return uint64(at.UnixNano() / int64(time.Second/30*30)) }

// Faults lists what is wrong with what a viewer saw, ours or another library's, by its summary: frames that are missing,
// wrong, or came twice, no frame for longer than limit, an end, or that the groups before until did not come.
func Faults(summary Event, limit time.Duration, until uint64) (faults []string) {
	if summary["ok"] != true {
		faults = append(faults, "not ok")
	}
	if gaps, _ := summary["gaps"].([]any); len(gaps) > 0 {
		faults = append(faults, fmt.Sprintf("gaps %v", gaps))
	}
	for _, count := range []string{"missing", "cut", "wrong", "twice"} {
		if n := summary.Number(count); n > 0 {
			faults = append(faults, fmt.Sprintf("%v %s", n, count))
		}
	}
	if stall := summary.Stall(); stall > limit {
		faults = append(faults, fmt.Sprintf("no frame for %v", stall))
	}
	if ended, _ := summary["ended"].(string); ended != "" {
		faults = append(faults, "ended: "+ended)
	}
	if last := summary.last(); last+1 < until {
		faults = append(faults, fmt.Sprintf("the last group is %d, not %d", last, until-1))
	}
	return faults
}

// Stall is the longest time without a frame that a summary tells of.
func (e Event) Stall() time.Duration {
	return time.Duration(e.Number("longest_stall_ms") * float64(time.Millisecond))
}

// last is the highest group of a summary: a number, or a list of one.
func (e Event) last() uint64 {
	if list, _ := e["last"].([]any); len(list) == 1 {
		n, _ := list[0].(float64)
		return uint64(n)
	}
	return uint64(e.Number("last"))
}
