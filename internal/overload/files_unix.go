//go:build unix

package overload

import "syscall"

// FileLimit is how many descriptors this process may have open; 0 = unknown.
func FileLimit() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // it is signed on some systems
}
