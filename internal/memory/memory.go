// Package memory tells how much memory there is for this process: of the machine, and within the limits of the control
// groups that it is in, version 1 and 2.
package memory

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

// ErrUnknown says that the memory of this machine cannot be determined.
var ErrUnknown = errors.New("the memory of this machine is unknown")

// System is the file system that the kernel tells about memory in.
func System() fs.FS { return os.DirFS("/") }

// Total is what the process may use, in bytes: the memory of the machine, or the tightest limit of its groups.
func Total(system fs.FS) (int64, error) {
	total, err := machine(system, "MemTotal:")
	if err != nil {
		return 0, err
	}
	for _, g := range groups(system) {
		total = min(total, g.limit)
	}
	return total, nil
}

// Available is what could still be taken, in bytes, before the machine, or a group, runs short. Caches of files count as
// free.
func Available(system fs.FS) (int64, error) {
	left, err := machine(system, "MemAvailable:")
	if err != nil {
		return 0, err
	}
	for _, g := range groups(system) {
		left = min(left, max(0, g.limit-g.used))
	}
	return left, nil
}

// machine reads one line of meminfo.
func machine(system fs.FS, name string) (int64, error) {
	data, err := fs.ReadFile(system, "proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if kb, ok := field(data, name); ok && kb < math.MaxInt64>>10 && (kb > 0 || name != "MemTotal:") {
		return kb << 10, nil
	}
	return 0, fmt.Errorf("%w: no %s", ErrUnknown, strings.TrimSuffix(name, ":"))
}

// field finds the number behind a name at the start of a line.
func field(data []byte, name string) (int64, bool) {
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != name {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		return n, err == nil && n >= 0
	}
	return 0, false
}

// group is one control group with a limit.
type group struct{ limit, used int64 }

// hierarchy names the files of one version of control groups.
type hierarchy struct{ root, limit, usage, cached string }

var (
	version2 = hierarchy{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
	version1 = hierarchy{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
)

// groups lists the limited groups that the process is in, and those above them. What cannot be read does not limit.
func groups(system fs.FS) (out []group) {
	data, err := fs.ReadFile(system, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		h := version2
		switch {
		case parts[0] == "0" && parts[1] == "":
		case strings.Contains(","+parts[1]+",", ",memory,"):
			h = version1
		default:
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if g, ok := h.read(system, dir); ok {
				out = append(out, g)
			}
			if dir == "/" {
				break
			}
		}
	}
	return out
}

func (h hierarchy) read(system fs.FS, dir string) (group, bool) {
	limit, ok := number(system, path.Join(h.root, dir, h.limit))
	if !ok || limit == 0 {
		return group{}, false
	}
	used, _ := number(system, path.Join(h.root, dir, h.usage))
	if stat, err := fs.ReadFile(system, path.Join(h.root, dir, "memory.stat")); err == nil {
		cached, _ := field(stat, h.cached)
		used = max(0, used-cached)
	}
	return group{limit, used}, true
}

// number reads a file that holds one; "max" is none.
func number(system fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(system, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n >= 0
}
