package config

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Capacity is an amount of memory: bytes, or a part of what the process may use.
type Capacity struct {
	Bytes   int64
	Percent int64 // 1 to 100; counts if Bytes is 0
}

func (c Capacity) String() string {
	if c.Bytes != 0 {
		return fmt.Sprintf("%d bytes", c.Bytes)
	}
	return fmt.Sprintf("%d%%", c.Percent)
}

// ErrMemory says that the memory of this machine cannot be determined.
var ErrMemory = errors.New("the memory of this machine is unknown: give a size instead of a percentage")

// Resolve is the capacity in bytes, 0 = unbounded. A part is one of what the process may use: the limit of its
// control group, else the memory of the machine.
func (c Capacity) Resolve() (int64, error) { return c.resolve(os.DirFS("/")) }

func (c Capacity) resolve(system fs.FS) (int64, error) {
	if c.Bytes != 0 || c.Percent == 0 {
		return c.Bytes, nil
	}
	total, err := memory(system)
	if err != nil {
		return 0, err
	}
	return total/100*c.Percent + total%100*c.Percent/100, nil
}

// memory is the smaller of the machine's memory and the limits of the control groups that the process is in.
func memory(system fs.FS) (int64, error) {
	total, err := machineMemory(system)
	if err != nil {
		return 0, err
	}
	for _, limit := range groupLimits(system) {
		total = min(total, limit)
	}
	return total, nil
}

func machineMemory(system fs.FS) (int64, error) {
	data, err := fs.ReadFile(system, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			if kb, err := strconv.ParseInt(fields[1], 10, 64); err == nil && kb > 0 && kb < math.MaxInt64>>10 {
				return kb << 10, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: no MemTotal", ErrMemory)
}

// groupLimits lists the limits of the process's memory control groups and those above them, version 1 and 2. What
// cannot be read does not limit.
func groupLimits(system fs.FS) []int64 {
	data, err := fs.ReadFile(system, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var limits []int64
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, file := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[0] == "0" && parts[1] == "":
		case strings.Contains(","+parts[1]+",", ",memory,"):
			root, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if limit, ok := readLimit(system, path.Join(root, dir, file)); ok {
				limits = append(limits, limit)
			}
			if dir == "/" {
				break
			}
		}
	}
	return limits
}

func readLimit(system fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(system, name)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64) // "max" is no number
	return limit, err == nil && limit > 0
}
