package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport"
)

// sessionSelf closes a session whose peer declares our own hop id (C22a). It is an application code, 409 as in HTTP, so
// that a relay which dialed learns it even if our SETUP does not reach it any more.
const sessionSelf = lite.CodeApplication + 409

const selfReason = "the peer declares our own hop id"

// errSelf says that the other end is ourselves or a copy of us (C22a).
var errSelf = errors.New(selfReason)

// selfError is what a dial to ourselves, or to a relay with our id, ends with.
func selfError(info transport.Info) error {
	return &cluster.SelfError{Local: addr(info.Local), Remote: addr(info.Remote)}
}

// saysSelf reports whether a session was closed by a peer because we have its id.
func saysSelf(err error) bool {
	var closed *transport.SessionError
	return errors.As(err, &closed) && closed.Remote && closed.Transport == nil && closed.Code == sessionSelf
}

// maxSaid bounds how many addresses are remembered; with more, some are told anew.
const maxSaid = 256

// selfLog warns of accepted sessions that declare our own id, once per address: a relay with a copied cluster.id comes
// back for ever.
type selfLog struct {
	mu   sync.Mutex
	said map[netip.Addr]bool
}

func (s *selfLog) tell(log *slog.Logger, info transport.Info) {
	level := slog.LevelDebug
	if s.first(hostOf(info.Remote)) {
		level = slog.LevelWarn
	}
	log.Log(context.Background(), level,
		"session refused: "+selfReason+": a dial to ourselves, or a relay with a copied cluster.id", "local", addr(info.Local))
}

func (s *selfLog) first(host netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said[host] {
		return false
	}
	if s.said == nil || len(s.said) >= maxSaid {
		s.said = make(map[netip.Addr]bool)
	}
	s.said[host] = true
	return true
}

// hostOf is the address without port.
func hostOf(a net.Addr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
