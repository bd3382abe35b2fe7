package memory_test

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/moqmesh/moqmesh/internal/memory"
)

const mib = 1 << 20

func system(files map[string]string) fstest.MapFS {
	out := make(fstest.MapFS)
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func TestMemory(t *testing.T) {
	const info = "MemTotal:        8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n" // 8 and 4 GiB
	tests := map[string]struct {
		files            map[string]string
		total, available int64 // MiB
	}{
		"no groups": {map[string]string{"proc/meminfo": info}, 8192, 4096},
		"no limit": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.current": "1048576\n",
		}, 8192, 4096},
		"limit": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n",
			"sys/fs/cgroup/a/b/memory.current": "536870912\n",
		}, 1024, 512},
		"file caches count as free": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n",
			"sys/fs/cgroup/memory.current": "1073741824\n", "sys/fs/cgroup/memory.stat": "anon 5\ninactive_file 268435456\n",
		}, 1024, 256},
		"limit above": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2147483648\n",
			"sys/fs/cgroup/a/b/memory.current": "0\n", "sys/fs/cgroup/a/memory.max": "1073741824\n", "sys/fs/cgroup/a/memory.current": "1073741824\n",
		}, 1024, 0},
		"version 1": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "5:cpu,memory:/a\n0::/\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "805306368\n", "sys/fs/cgroup/memory/a/memory.stat": "total_inactive_file 0\n",
		}, 1024, 256},
		"version 1 without a limit": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "805306368\n",
		}, 8192, 4096},
		"the machine is tighter": {map[string]string{
			"proc/meminfo": info, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "17179869184\n", "sys/fs/cgroup/memory.current": "0\n",
		}, 8192, 4096},
	}
	for name, tt := range tests {
		fsys := system(tt.files)
		total, err1 := memory.Total(fsys)
		available, err2 := memory.Available(fsys)
		if err1 != nil || err2 != nil || total != tt.total*mib || available != tt.available*mib {
			t.Errorf("%s: %d MiB of %d, %v, %v", name, available/mib, total/mib, err1, err2)
		}
	}
	for name, text := range map[string]string{"empty": "", "rubbish": "MemTotal: much\nMemAvailable: some\n", "negative": "MemTotal: -1 kB\nMemAvailable: -1 kB\n"} {
		fsys := system(map[string]string{"proc/meminfo": text})
		if _, err := memory.Total(fsys); !errors.Is(err, memory.ErrUnknown) {
			t.Errorf("%s: total %v", name, err)
		}
		if _, err := memory.Available(fsys); !errors.Is(err, memory.ErrUnknown) {
			t.Errorf("%s: available %v", name, err)
		}
	}
	if _, err := memory.Total(system(nil)); !errors.Is(err, memory.ErrUnknown) {
		t.Errorf("no file: %v", err)
	}
}

// TestHere: the machine that runs the tests has memory.
func TestHere(t *testing.T) {
	total, err := memory.Total(memory.System())
	if err != nil {
		t.Fatal(err)
	}
	available, err := memory.Available(memory.System())
	if err != nil || available <= 0 || available > total {
		t.Errorf("%d of %d, %v", available, total, err)
	}
}
