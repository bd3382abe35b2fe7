//go:build !unix

package overload

// FileLimit is how many descriptors this process may have open; 0 = unknown.
func FileLimit() uint64 { return 0 }
