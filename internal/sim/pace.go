package sim

import (
	"context"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/transport"
)

// pace is how fast a slow client reads groups. It is the client's own doing: the network brings what it is allowed to.
type pace struct {
	rate int // bytes a second; 0 = nothing until it wakes

	once  sync.Once
	awake chan struct{}
}

func newPace(rate int) *pace { return &pace{rate: rate, awake: make(chan struct{})} }

// wake lets everything be read at once from now on.
func (p *pace) wake() { p.once.Do(func() { close(p.awake) }) }

// wait returns when n more bytes may be read, or with the connection.
func (p *pace) wait(ctx context.Context, n int) {
	var due <-chan time.Time
	if p.rate > 0 {
		t := time.NewTimer(time.Duration(n) * time.Second / time.Duration(p.rate))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-p.awake:
	case <-due:
	case <-ctx.Done():
	}
}

// slowConn is a connection whose unidirectional streams, and with them the groups, are read at a pace.
type slowConn struct {
	transport.Conn
	pace *pace
}

// AcceptUniStream implements transport.Conn.
func (c *slowConn) AcceptUniStream(ctx context.Context) (transport.ReceiveStream, error) {
	st, err := c.Conn.AcceptUniStream(ctx)
	if err != nil {
		return nil, err
	}
	return &slowStream{ReceiveStream: st, of: c}, nil
}

type slowStream struct {
	transport.ReceiveStream
	of    *slowConn
	begun bool
}

// Read implements transport.ReceiveStream. The first bytes are let through: they may be the peer's SETUP.
func (s *slowStream) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return s.ReceiveStream.Read(p[:min(len(p), 64)])
	}
	s.of.pace.wait(s.of.Context(), min(len(p), 1000))
	return s.ReceiveStream.Read(p[:min(len(p), 1000)])
}
