package endpoint

import (
	"net"
)

// Socket is one UDP socket with the QUIC machinery on it. Listeners and dialers share it.
type Socket struct{}

// Addr is the local address.
func (s *Socket) Addr() net.Addr { return nil }
