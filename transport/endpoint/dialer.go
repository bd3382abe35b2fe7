package endpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/moqmesh/moqmesh/transport"
)

// ErrScheme means that the scheme of a URL names no carrier that can be dialed. The error is a
// *DialError that names it.
var ErrScheme = errors.New("no carrier for this scheme")

// DialError reports a dial that failed. Its text never holds the path or the query of the URL.
type DialError struct {
	Scheme string
	Host   string // host:port
	Err    error  // of every address that was tried, joined
}

func (e *DialError) Error() string { return fmt.Sprintf("dial %s://%s: %v", e.Scheme, e.Host, e.Err) }
func (e *DialError) Unwrap() error { return e.Err }

// Dialer opens connections. Its methods may be called concurrently.
type Dialer struct{}

// NewDialer binds the dialer's socket, unless it shares one. The caller must Close the dialer.
func NewDialer(cfg DialConfig) (*Dialer, error) { return nil, errors.ErrUnsupported }

// Dial connects to a target. The host is resolved anew each time; its addresses are raced as in RFC
// 8305, and the first that completes its handshake wins. The caller closes the connection. The error
// is a *DialError around what failed; a server that refuses a WebTransport session with an HTTP status is a
// *webtransport.StatusError in it.
func (d *Dialer) Dial(ctx context.Context, target Target) (transport.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Close closes the connections that the dialer opened and are still open, with code 0, and the socket
// if it is the dialer's own. It returns when all goroutines have ended.
func (d *Dialer) Close() error { return nil }
