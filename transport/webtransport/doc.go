// Package webtransport carries MoQ over WebTransport sessions on HTTP/3: the server's and the
// client's side of one session on one QUIC connection.
package webtransport

import "fmt"

// StatusError reports a server that refused the session with an HTTP status.
type StatusError struct {
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("server refused the WebTransport session with status %d", e.Status)
}
