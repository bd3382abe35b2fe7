package bench

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCoalesced sends a burst in one piece and wants its packets one by one.
func TestCoalesced(t *testing.T) {
	pc, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	if _, ok := pc.(*coalesced); !ok {
		t.Skip("the kernel does not coalesce")
	}
	if err := pc.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sender, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sender.Close() }()
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: pc.LocalAddr().(*net.UDPAddr).Port}
	burst := append(bytes.Repeat([]byte{1}, 1000), bytes.Repeat([]byte{2}, 1000)...)
	burst = append(burst, bytes.Repeat([]byte{3}, 300)...)
	oob := make([]byte, unix.CmsgSpace(2))
	binary.NativeEndian.PutUint64(oob, uint64(unix.CmsgLen(2)))
	binary.NativeEndian.PutUint32(oob[8:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(oob[12:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(oob[16:], 1000)
	if _, _, err := sender.WriteMsgUDP(burst, oob, to); err != nil {
		t.Skipf("no segmentation here: %v", err)
	}
	if _, err := sender.WriteTo([]byte("single"), to); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1500)
	for _, want := range [][]byte{burst[:1000], burst[1000:2000], burst[2000:], []byte("single")} {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf[:n], want) || from.(*net.UDPAddr).Port != sender.LocalAddr().(*net.UDPAddr).Port {
			t.Errorf("got %d bytes from %v, want %d", n, from, len(want))
		}
	}
	if _, err := pc.WriteTo([]byte("back"), sender.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := sender.ReadFrom(buf); err != nil || string(buf[:n]) != "back" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestSegment(t *testing.T) {
	for _, oob := range [][]byte{nil, {1, 2, 3}, make([]byte, 64)} {
		if got := segment(oob, 500); got != 500 {
			t.Errorf("%v: segments of %d", oob, got)
		}
	}
}
