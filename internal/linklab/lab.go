//go:build linux

package linklab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotRoot means that the process may not make namespaces.
var ErrNotRoot = errors.New("network namespaces need root")

// Lab is two hosts with a link between them.
type Lab struct {
	A, B *Host
	ab   *direction // from A to B
	ba   *direction
	wg   sync.WaitGroup
}

// Host is one end: a network namespace.
type Host struct {
	Name string // of the namespace
	IP   string // IPv4 address
	tun  *os.File
}

// New builds a lab. The caller must Close it.
func New(link Link) (_ *Lab, err error) {
	if os.Geteuid() != 0 {
		return nil, ErrNotRoot
	}
	name := fmt.Sprintf("lk%d", time.Now().UnixNano()%1e7)
	l := &Lab{A: &Host{Name: name + "a", IP: "10.98.0.1"}, B: &Host{Name: name + "b", IP: "10.98.0.2"}}
	defer func() {
		if err != nil {
			_ = l.Close()
		}
	}()
	for _, pair := range [][2]*Host{{l.A, l.B}, {l.B, l.A}} {
		if err := pair[0].build(pair[1].IP); err != nil {
			return nil, err
		}
	}
	l.ab, l.ba = newDirection(l.A.tun, l.B.tun, link), newDirection(l.B.tun, l.A.tun, link)
	for i, d := range []*direction{l.ab, l.ba} {
		rng := rand.New(rand.NewPCG(uint64(i), 7)) // the same losses each time
		l.wg.Go(func() { d.read(rng) })
		l.wg.Go(d.deliver)
	}
	return l, nil
}

// build makes the namespace with its end of the link, which leads to a peer.
func (h *Host) build(peer string) error {
	if err := ip("netns", "add", h.Name); err != nil {
		return err
	}
	dev := h.Name
	tun, err := openTUN(dev)
	if err != nil {
		return err
	}
	h.tun = tun
	for _, args := range [][]string{
		{"link", "set", dev, "netns", h.Name},
		{"-n", h.Name, "link", "set", "lo", "up"},
		{"-n", h.Name, "addr", "add", h.IP, "peer", peer, "dev", dev},
		{"-n", h.Name, "link", "set", dev, "txqueuelen", "10000", "up"},
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	return nil
}

// openTUN makes a TUN device, which stays the file's when it moves to another namespace.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("TUN device: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("TUN device: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func ip(args ...string) error {
	if out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Set changes the link for packets to come, in both directions, and counts anew.
func (l *Lab) Set(link Link) {
	l.ab.set(link)
	l.ba.set(link)
}

// Counters are what happened since the last Set, from A to B and back.
func (l *Lab) Counters() (ab, ba Counters) { return l.ab.count(), l.ba.count() }

// Close ends the link and removes both hosts.
func (l *Lab) Close() error {
	var errs []error
	for _, h := range []*Host{l.A, l.B} {
		if h.tun != nil {
			errs = append(errs, h.tun.Close())
		}
	}
	l.wg.Wait()
	for _, h := range []*Host{l.A, l.B} {
		errs = append(errs, ip("netns", "del", h.Name))
	}
	return errors.Join(errs...)
}

// Do runs f on a thread in the host's namespace. Sockets that f opens, on its own goroutine, stay there.
func (h *Host) Do(f func() error) error { return Inside(h.Name, f) }

// Sysctl sets one of the host's own settings, by its path below /proc/sys.
func (h *Host) Sysctl(path, value string) error {
	return h.Do(func() error { return os.WriteFile("/proc/sys/"+path, []byte(value), 0o644) }) //nolint:gosec // it exists
}

// Listen opens a TCP listener on the host.
func (h *Host) Listen() (ln net.Listener, err error) {
	err = h.Do(func() error {
		ln, err = net.Listen("tcp4", h.IP+":0")
		return err
	})
	return ln, err
}

// ListenPacket opens a UDP socket on the host.
func (h *Host) ListenPacket() (pc net.PacketConn, err error) {
	err = h.Do(func() error {
		pc, err = net.ListenPacket("udp4", h.IP+":0")
		return err
	})
	return pc, err
}

// Dial opens a TCP connection from the host to an address with numbers.
func (h *Host) Dial(addr string) (nc net.Conn, err error) {
	err = h.Do(func() error {
		nc, err = net.DialTimeout("tcp4", addr, 30*time.Second)
		return err
	})
	return nc, err
}
