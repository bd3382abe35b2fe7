package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux that Go runs on.
const tick = 10 * time.Millisecond

var errProc = errors.New("unexpected form")

// Process is what /proc says of a process at one time.
type Process struct {
	CPU time.Duration // user and system time since it started
	RSS int64         // resident bytes
	// Peak is the most that was ever resident, in bytes; 0 where the system does not tell.
	Peak int64
}

// ReadProcess reads /proc/PID/stat, and the peak from /proc/PID/status.
func ReadProcess(pid int) (Process, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(name)
	if err != nil {
		return Process{}, err
	}
	p, err := parseStat(text)
	if err != nil {
		return Process{}, fmt.Errorf("%s: %w", name, err)
	}
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
		p.Peak = parsePeak(status)
	}
	return p, nil
}

// parsePeak finds VmHWM in /proc/PID/status; 0 if it is not there.
func parsePeak(text []byte) int64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			if fields := bytes.Fields(rest); len(fields) == 2 {
				kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
				if err == nil && kib >= 0 && kib < 1<<50 {
					return kib << 10
				}
			}
		}
	}
	return 0
}

// parseStat reads the fields utime, stime and rss: the 14th, 15th and 24th. The second, the name of the command, may
// hold anything, parentheses and spaces included.
func parseStat(text []byte) (Process, error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const third = 3
	if len(fields) <= 24-third {
		return Process{}, errProc
	}
	var n [3]int64
	for i, field := range []int{14, 15, 24} {
		v, err := strconv.ParseInt(string(fields[field-third]), 10, 64)
		if err != nil {
			return Process{}, errProc
		}
		n[i] = v
	}
	return Process{CPU: time.Duration(n[0]+n[1]) * tick, RSS: n[2] * int64(os.Getpagesize())}, nil
}

// ReadMachine reads the CPU time that the whole machine has spent on anything, from /proc/stat.
func ReadMachine() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	busy, err := parseMachine(text)
	if err != nil {
		return 0, fmt.Errorf("/proc/stat: %w", err)
	}
	return busy, nil
}

// parseMachine adds up the first line: user, nice, system, then idle and iowait, which do not count, irq, softirq and
// steal. Guest time is part of user time.
func parseMachine(text []byte) (time.Duration, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return 0, errProc
	}
	var busy int64
	for i, f := range fields[1:9] {
		v, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, errProc
		}
		if i != 3 && i != 4 {
			busy += v
		}
	}
	return time.Duration(busy) * tick, nil
}
