// Package webtransport carries MoQ over WebTransport sessions on HTTP/3: one session on one QUIC
// connection, which ends with it.
//
// Both ends are built on quic-go's HTTP/3 alone. The streams of a session are plain QUIC streams behind
// a short header, so that priorities work on all of them, closing delivers its code to browsers, and the client
// also talks to servers without RESET_STREAM_AT.
package webtransport

import (
	"errors"
	"fmt"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// ErrNotSupported means that the server speaks HTTP/3 but does not offer extended CONNECT.
var ErrNotSupported = errors.New("server does not support WebTransport")

// ErrProtocol means that the server chose a sub-protocol we did not offer.
var ErrProtocol = errors.New("server chose a protocol that was not offered")

// StatusError reports a server that refused the session with an HTTP status.
type StatusError struct {
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("server refused the WebTransport session with status %d", e.Status)
}

const (
	protocolHeader  = "Wt-Protocol"
	protocolsHeader = "Wt-Available-Protocols"

	// The values of :protocol in use: up to draft 14, and since.
	connectProtocol    = "webtransport"
	connectProtocolNew = "webtransport-h3"

	bidiStreamType = 0x41
	uniStreamType  = 0x54

	closeCapsule http3.CapsuleType = 0x2843

	codeStreamRejected quic.StreamErrorCode = 0x3994bd84 // WT_BUFFERED_STREAM_REJECTED
	codeSessionGone    quic.StreamErrorCode = 0x170d7b68 // WT_SESSION_GONE

	// maxReason is the limit of a close reason, in bytes.
	maxReason = 1024
)

// settings announce WebTransport in the words of every draft that is still in use.
func settings(client bool) map[uint64]uint64 {
	s := map[uint64]uint64{
		0x2b603742: 1, // ENABLE_WEBTRANSPORT, drafts 02 to 06
		0x2c7cf000: 1, // WT_ENABLED, draft 15
		// WT_MAX_SESSIONS, drafts 13 and 14. Safari wants to see it.
		0x14e9cd29: 1,
	}
	if client {
		s[0xc671706a] = 1 // WEBTRANSPORT_MAX_SESSIONS, drafts 07 to 12: of clients, servers ignore it
	}
	return s
}
