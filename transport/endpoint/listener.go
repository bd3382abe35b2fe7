package endpoint

import (
	"context"
	"errors"
	"net"

	"github.com/moqmesh/moqmesh/transport"
)

// Listener accepts MoQ connections on one UDP socket.
type Listener struct{}

// Listen binds the socket and starts to accept. The caller must Close the listener.
func Listen(cfg Config) (*Listener, error) { return nil, errors.ErrUnsupported }

// Accept waits for the next connection: a raw QUIC connection that negotiated one of the protocols,
// or a WebTransport session, with one or without. The caller closes it. After Close or StopAccepting the
// error satisfies errors.Is(err, net.ErrClosed).
func (l *Listener) Accept(ctx context.Context) (transport.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Addr is the local address of the socket.
func (l *Listener) Addr() net.Addr { return nil }

// Socket is the listener's socket, for dialing from the same address. It is closed with the
// listener.
func (l *Listener) Socket() *Socket { return nil }

// StopAccepting refuses new connections from now on and keeps the existing ones.
func (l *Listener) StopAccepting() {}

// Close stops accepting, closes every connection on the socket that is still open with code 0, dialed
// ones too, and then the socket. It returns when all of the package's goroutines for it have ended,
// at most about half a second later.
func (l *Listener) Close() error { return nil }
