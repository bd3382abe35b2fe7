package qstream

import (
	"math"

	"github.com/quic-go/quic-go"

	"github.com/moqmesh/moqmesh/transport"
)

// Codes says how the codes of RESET_STREAM and STOP_SENDING are numbered on the wire.
type Codes bool

// The two numberings. Both accept either from the peer (moq-lite 7.3).
const (
	Mapped Codes = false // into the range of WebTransport stream codes in HTTP/3
	Plain  Codes = true  // as they are
)

// The range that WebTransport maps its 32-bit codes into. Every 31st number is left out: HTTP/3
// reserves them.
const (
	firstMapped = 0x52e4a40fa8db
	lastMapped  = 0x52e5ac983162
	mappedStep  = 0x1f

	maxVarint = 1<<62 - 1
)

// Map puts a code into WebTransport's range. Codes beyond 32 bits become the largest.
func Map(code uint64) uint64 {
	code = min(code, math.MaxUint32)
	return firstMapped + code + code/(mappedStep-1)
}

// Unmap is the inverse of Map; ok is false for a number that Map never yields.
func Unmap(wire uint64) (code uint64, ok bool) {
	if wire < firstMapped || wire > lastMapped {
		return 0, false
	}
	n := wire - firstMapped
	if n%mappedStep == mappedStep-1 {
		return 0, false
	}
	return n - n/mappedStep, true
}

func (c Codes) wire(code uint64) quic.StreamErrorCode {
	if c == Plain {
		return quic.StreamErrorCode(min(code, maxVarint))
	}
	return quic.StreamErrorCode(Map(code))
}

func (c Codes) streamError(err *quic.StreamError) *transport.StreamError {
	wire := uint64(err.ErrorCode)
	if code, ok := Unmap(wire); ok {
		return &transport.StreamError{Code: code, Remote: err.Remote}
	}
	return &transport.StreamError{Code: wire, Remote: err.Remote, Unmapped: c == Mapped}
}
