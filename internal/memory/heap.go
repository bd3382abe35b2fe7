package memory

import "runtime"

// Live collects and says how many bytes of the heap are alive. It stops the process for a while: it is for tests and
// benchmarks that hold budgets.
func Live() int64 {
	runtime.GC()
	runtime.GC() // what finalizers let go, and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
