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

func newPace(a Access) *pace {
	p := &pace{rate: a.Slow, awake: make(chan struct{})}
	if a.Asleep {
		p.rate = 0
	}
	return p
}

// wake lets everything be read at once from now on.
func (p *pace) wake() { p.once.Do(func() { close(p.awake) }) }

// wait returns when n more bytes may be read, or when ctx ends.
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
	s := &slowStream{ReceiveStream: st, pace: c.pace}
	s.read, s.stop = context.WithCancel(c.Context())
	return s, nil
}

type slowStream struct {
	transport.ReceiveStream
	pace  *pace
	begun bool
	read  context.Context // while somebody wants to read
	stop  context.CancelFunc
}

// Stop implements transport.ReceiveStream: it wakes whoever reads.
func (s *slowStream) Stop(code uint64) {
	s.stop()
	s.ReceiveStream.Stop(code)
}

// Read implements transport.ReceiveStream. The first bytes are let through: they may be the peer's SETUP.
func (s *slowStream) Read(p []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return s.ReceiveStream.Read(p[:min(len(p), 64)])
	}
	s.pace.wait(s.read, min(len(p), 1000))
	return s.ReceiveStream.Read(p[:min(len(p), 1000)])
}
