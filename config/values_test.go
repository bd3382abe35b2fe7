package config_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/moqmesh/moqmesh/config"
	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	good := map[string]time.Duration{
		"300ms": 300 * time.Millisecond, "10s": 10 * time.Second, "5m": 5 * time.Minute, "1h 30m": 90 * time.Minute, "1h30m": 90 * time.Minute,
		"0s": 0, " 10s ": 10 * time.Second, "10 s": 10 * time.Second, "2days 3hours": 51 * time.Hour, "1w": 168 * time.Hour, "7us": 7 * time.Microsecond,
		"7µs": 7 * time.Microsecond, "9ns": 9, "1min": time.Minute, "9223372036854775807ns": 1<<63 - 1, "1s 1s": 2 * time.Second,
	}
	for text, want := range good {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "10", "0", "-1s", "+1s", "1.5s", "1e3s", "s", "10x", "10S", "1h,30m", "1h 30", "9223372036854775808ns", "300000000000000000w", "9223372036s 9223372036s", "1s\n", "١s"} {
		if got, err := config.ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestParseDurationReadsWhatGoWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "seconds")).Truncate(time.Second)
		if got, err := config.ParseDuration(want.String()); err != nil || got != want {
			t.Fatalf("%s: %v, %v", want, got, err)
		}
	})
}

func TestParseSize(t *testing.T) {
	good := map[string]int64{
		"0": 0, "512": 512, "512B": 512, "512MB": 512e6, "8GiB": 8 << 30, "8 GiB": 8 << 30, "1kB": 1000, "1KiB": 1024, "1k": 1000, "1TiB": 1 << 40,
		"9223372036854775807": 1<<63 - 1,
	}
	for text, want := range good {
		if got, err := config.ParseSize(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "MB", "-1", "1.5GB", "1mb", "1 2", "1MB 2MB", "9223372036854775808", "9007199254740992KiB", "20000000000TB", "0x10"} {
		if got, err := config.ParseSize(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// TestCapacityResolves: a percentage is that of the tightest limit that the process is under.
func TestCapacityResolves(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const gib = 1 << 30
	machine := file("MemFree: 1 kB\nMemTotal:       8388608 kB\n")
	tests := map[string]struct {
		system fstest.MapFS
		want   int64 // of half
	}{
		"no control groups": {fstest.MapFS{"proc/meminfo": machine}, 4 * gib},
		"no limit":          {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 4 * gib},
		"container":         {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("2147483648\n")}, gib},
		"service": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("0::/system.slice/moqmesh.service\n"),
			"sys/fs/cgroup/system.slice/moqmesh.service/memory.max": file("2147483648\n"), "sys/fs/cgroup/system.slice/memory.max": file("max\n"),
		}, gib},
		"slice above the service": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("0::/system.slice/moqmesh.service\n"),
			"sys/fs/cgroup/system.slice/moqmesh.service/memory.max": file("max\n"), "sys/fs/cgroup/system.slice/memory.max": file("2147483648\n"),
		}, gib},
		"version 1": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("5:cpu,memory:/docker/x\n1:name=systemd:/y\n0::/\n"),
			"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": file("2147483648\n"),
		}, gib},
		"version 1, no limit": {fstest.MapFS{
			"proc/meminfo": machine, "proc/self/cgroup": file("5:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 4 * gib},
		"odd lines": {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("x\n0::/../..\n\n"), "sys/fs/cgroup/memory.max": file("0\n")}, 4 * gib},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := (config.Capacity{Percent: 50}).ResolveIn(tt.system); err != nil || got != tt.want {
				t.Errorf("got %d, %v, want %d", got, err, tt.want)
			}
		})
	}
	for name, system := range map[string]fstest.MapFS{"no meminfo": {}, "no total": {"proc/meminfo": file("MemFree: 1 kB\n")}, "absurd total": {"proc/meminfo": file("MemTotal: 99999999999999999999 kB\n")}} {
		if got, err := (config.Capacity{Percent: 50}).ResolveIn(system); err == nil {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got, err := (config.Capacity{Bytes: 5}).ResolveIn(fstest.MapFS{}); got != 5 || err != nil {
		t.Errorf("bytes resolve to %d, %v", got, err)
	}
	if got, err := (config.Capacity{Percent: 100}).Resolve(); err != nil || got < 1<<20 {
		t.Errorf("this machine has %d bytes, %v", got, err)
	}
}
