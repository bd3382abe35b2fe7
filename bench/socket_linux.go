package bench

import (
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"
)

// coalesce turns UDP_GRO on; false if the kernel has none.
func coalesce(udp *net.UDPConn) bool {
	raw, err := udp.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	})
	return err == nil && failed == nil
}

// segment is the length of each packet in a message of n bytes, as its control data says; n where it says nothing: the
// message is one packet.
func segment(oob []byte, n int) int {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return n
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 4 {
			if size := int(int32(binary.NativeEndian.Uint32(data))); size > 0 {
				return size
			}
		}
		oob = rest
	}
	return n
}
