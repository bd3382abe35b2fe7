package overload

import "sync"

// Files keeps some file descriptors for what the process itself must open: connections to its auth server, certificates,
// key files. It is safe for concurrent use. The nil Files refuses nobody.
type Files struct {
	limit, reserve uint64

	mu    sync.Mutex
	short bool
}

// NewFiles makes one for a process that may have limit descriptors open, and keeps a tenth of them, but 16 to 256.
func NewFiles(limit uint64) *Files {
	return &Files{limit: limit, reserve: min(max(limit/10, 16), 256)}
}

// Refuse reports whether a connection with this descriptor is one too many. A new descriptor is the lowest that was free, so
// that at least as many are in use. Once there are too many, half as many again as are kept must be free before anybody
// is let in.
func (f *Files) Refuse(descriptor uint64) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.reserve
	if f.short {
		kept += f.reserve / 2
	}
	f.short = descriptor+kept >= f.limit
	return f.short
}
