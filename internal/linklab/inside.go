//go:build linux

package linklab

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Inside runs f on a thread in a network namespace that "ip netns" has made. Sockets that f opens, on its own goroutine, stay
// there.
func Inside(namespace string, f func() error) error {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer own.Close()
	there, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	err = f()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		return back // the thread stays locked and is thrown away
	}
	runtime.UnlockOSThread()
	return err
}
