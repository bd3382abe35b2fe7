package webtransport

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/internal/qstream"
)

// Close implements transport.Conn. Browsers report the code only if they see capsule and FIN before anything
// else that ends the session, so the connection is closed when the peer has answered with its FIN.
func (c *Conn) Close(code uint32, reason string) {
	reason = transport.TruncateReason(reason, maxReason)
	how := &transport.SessionError{Code: code, Reason: reason}
	// The connection may have ended before watch has noticed, and streams before the connection tells.
	if lost := context.Cause(c.q.Context()); lost != nil {
		how = connectionEnd(lost)
	} else if lost := c.lost.Load(); lost != nil {
		how = lost
	}
	if !c.end(how) {
		return
	}
	_ = c.str.SetWriteDeadline(time.Now().Add(closeWait)) // never fails
	if _, err := c.str.Write(appendClose(nil, code, reason)); err == nil && c.str.Close() == nil {
		c.streams.ResetAll()
		c.awaitPeer()
	}
	c.closeConnection(code, reason)
	c.demux.wait()
}

func (c *Conn) awaitPeer() {
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-c.peerDone:
	case <-c.q.Context().Done():
	case <-timer.C:
	}
}

// closeConnection ends the connection. Its code repeats the session's in the numbering that peers
// without the capsule understand.
func (c *Conn) closeConnection(code uint32, reason string) {
	wire := quic.ApplicationErrorCode(qstream.Map(uint64(code)))
	_ = c.q.CloseWithError(wire, transport.TruncateReason(reason, maxConnReason)) // never fails
}

// maxConnReason keeps CONNECTION_CLOSE within a packet, in bytes.
const maxConnReason = 512

// end records how the session ended and stops everything that waits in it. Only the first call
// counts; the others return false.
func (c *Conn) end(how *transport.SessionError) (first bool) {
	c.ending.Do(func() {
		first = true
		c.cancel(how)
		for _, str := range c.bidi.close() {
			str.CancelRead(codeSessionGone)
			str.CancelWrite(codeSessionGone)
		}
		for _, str := range c.uni.close() {
			str.CancelRead(codeSessionGone)
		}
	})
	return first
}

// watch reads the CONNECT stream until the peer ends it, which ends the session.
func (c *Conn) watch() {
	how := readCapsules(c.str)
	close(c.peerDone)
	if !c.end(how) {
		return
	}
	_ = c.str.Close() // the connection may be gone already
	c.streams.ResetAll()
	// The peer should get our FIN before it loses the connection, which most peers close themselves now.
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-c.q.Context().Done():
	case <-timer.C:
		c.closeConnection(0, "")
	}
}

// Wait returns when the connection under the session has ended, and with it every goroutine of the
// session: at most closeWait after the session.
func (c *Conn) Wait() { c.demux.wait() }

// readCapsules returns how the peer ended the session.
func readCapsules(str io.Reader) *transport.SessionError {
	parser := http3.NewCapsuleParser(str)
	for {
		typ, body, err := parser.Next()
		if err != nil {
			return connectEnd(err)
		}
		if typ == closeCapsule {
			return readClose(body)
		}
		if err := body.Discard(); err != nil {
			return connectEnd(err)
		}
	}
}

// readClose reads the close capsule. What exceeds the longest reason is not looked at.
func readClose(body io.Reader) *transport.SessionError {
	var code [4]byte
	if _, err := io.ReadFull(body, code[:]); err != nil {
		return connectEnd(io.ErrUnexpectedEOF)
	}
	reason, err := io.ReadAll(io.LimitReader(body, maxReason))
	if err != nil {
		return connectEnd(err)
	}
	return &transport.SessionError{
		Code: binary.BigEndian.Uint32(code[:]), Reason: string(reason), Remote: true,
	}
}

func appendClose(b []byte, code uint32, reason string) []byte {
	b = quicvarint.Append(b, uint64(closeCapsule))
	b = quicvarint.Append(b, uint64(4+len(reason)))
	b = binary.BigEndian.AppendUint32(b, code)
	return append(b, reason...)
}
