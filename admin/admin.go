// Package admin holds the HTTP endpoints of a relay: the public ones, which serve content to plain HTTP clients, and
// the internal ones, which show operators what the relay is doing. It has handlers only and opens no sockets; what it
// shows it reads through interfaces that it declares itself.
package admin

import (
	"net/http"
	"time"
)

// Limits of the HTTP servers.
const (
	maxHeaderBytes = 32 << 10
	idleTimeout    = 2 * time.Minute
)

// Server returns a server for one of the handlers, with the limits that keep slow and large requests off. Request
// headers must arrive within headerTimeout; 0 = no limit.
func Server(h http.Handler, headerTimeout time.Duration) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}
