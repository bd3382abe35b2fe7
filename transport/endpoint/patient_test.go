package endpoint_test

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// flaky is a socket whose system refuses to send while fault is set.
type flaky struct {
	*net.UDPConn
	fault   atomic.Pointer[syscall.Errno]
	refused atomic.Int64
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	return &flaky{UDPConn: must(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)}
}

func (f *flaky) WriteMsgUDPAddrPort(b, oob []byte, addr netip.AddrPort) (int, int, error) {
	if fault := f.fault.Load(); fault != nil {
		f.refused.Add(1)
		return 0, 0, &net.OpError{Op: "write", Net: "udp", Addr: net.UDPAddrFromAddrPort(addr), Err: os.NewSyscallError("sendmsg", *fault)}
	}
	return f.UDPConn.WriteMsgUDPAddrPort(b, oob, addr)
}

// TestRefusedSends has the system refuse to send for a while, at either end: the connection goes on afterwards, and the log
// has a line a second at most.
func TestRefusedSends(t *testing.T) {
	loopback(t, func(t *testing.T, w *world) {
		for _, fault := range []syscall.Errno{syscall.EPERM, syscall.ENETUNREACH, syscall.ENOBUFS} {
			s := certificates(t)
			var log strings.Builder
			ours, theirs := newFlaky(t), newFlaky(t)
			l := w.listen(t, s, func(c *endpoint.Config) {
				c.PacketConn, c.Logger = ours, slog.New(slog.NewTextHandler(&log, nil))
			})
			d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.PacketConn = theirs })
			client, server := connect(t, d, l, w.target(t, l))
			for _, f := range []*flaky{ours, theirs} {
				out := must(server.OpenUniStream(timeout(t)))(t)
				f.fault.Store(&fault)
				write(t, out, "first")
				time.Sleep(100 * time.Millisecond)
				f.fault.Store(nil)
				in := must(client.AcceptUniStream(timeout(t)))(t)
				read(t, in, "first")
				if f == ours && f.refused.Load() == 0 {
					t.Error("nothing was refused")
				}
				exchange(t, client, server)
			}
			client.Close(0, "")
			<-server.Context().Done()
			if err := l.Close(); err != nil { // nobody logs any more
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), "counts as lost"); n != 1 {
				t.Errorf("%v: %d complaints: %s", fault, n, log.String())
			}
		}
	})
}

// TestDialWithoutWay: where there is no way, a dial fails at once and says why.
func TestDialWithoutWay(t *testing.T) {
	loopback(t, func(t *testing.T, w *world) {
		fault, f := syscall.ENETUNREACH, newFlaky(t)
		f.fault.Store(&fault)
		s := certificates(t)
		d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.PacketConn = f })
		begin := time.Now()
		if _, err := d.Dial(timeout(t), target(t, w.scheme+"://127.0.0.1:9/")); err == nil || !strings.Contains(err.Error(), fault.Error()) {
			t.Errorf("dial: %v", err)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("it took %v to notice", took)
		}
	})
}
