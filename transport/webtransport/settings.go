package webtransport

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

// Types of HTTP/3's unidirectional streams.
const (
	controlStream = 0
	pushStream    = 1
	encoderStream = 2
	decoderStream = 3
)

const (
	settingsFrame   = 4
	settingDatagram = 0x33
	maxSettings     = 8 << 10 // bytes
)

// peerStreams takes the client's unidirectional HTTP/3 streams. The library would keep a goroutine on the control stream
// and another one on datagrams, for each connection. All we want to know is in the first frame; what follows it there
// (GOAWAY, priorities of plain requests, GREASE) means nothing to us and stays unread, within flow control.
type peerStreams struct {
	q         *quic.Conn
	seen      [decoderStream + 1]atomic.Bool
	known     chan struct{} // closed when SETTINGS have come
	datagrams bool          // the client has them
}

func newPeerStreams(q *quic.Conn) *peerStreams {
	return &peerStreams{q: q, known: make(chan struct{})}
}

// serve takes one stream, of which nothing was read. It returns once it is done with it.
func (p *peerStreams) serve(str *quic.ReceiveStream) {
	typ, err := quicvarint.Read(quicvarint.NewReader(str))
	if err != nil {
		return
	}
	switch {
	case typ > decoderStream:
		str.CancelRead(quic.StreamErrorCode(http3.ErrCodeStreamCreationError))
	case typ == pushStream, p.seen[typ].Swap(true): // clients push nothing; one of each other kind
		p.fail(http3.ErrCodeStreamCreationError)
	case typ == controlStream:
		if code, err := p.readSettings(str); err != nil {
			p.fail(code)
			return
		}
		close(p.known)
	}
	// We announce no dynamic table for QPACK, so its streams say nothing.
}

func (p *peerStreams) fail(code http3.ErrCode) {
	_ = p.q.CloseWithError(quic.ApplicationErrorCode(code), "") // never fails
}

var errSettings = errors.New("bad SETTINGS")

// readSettings reads the first frame of the control stream (RFC 9114, 7.2.4). code goes with an error.
func (p *peerStreams) readSettings(str io.Reader) (code http3.ErrCode, err error) {
	r := quicvarint.NewReader(str)
	typ, err := quicvarint.Read(r)
	if err != nil {
		return http3.ErrCodeClosedCriticalStream, err
	}
	if typ != settingsFrame {
		return http3.ErrCodeMissingSettings, errSettings
	}
	size, err := quicvarint.Read(r)
	if err != nil {
		return http3.ErrCodeClosedCriticalStream, err
	}
	if size > maxSettings {
		return http3.ErrCodeExcessiveLoad, errSettings
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return http3.ErrCodeClosedCriticalStream, err
	}
	return p.parseSettings(body)
}

func (p *peerStreams) parseSettings(body []byte) (http3.ErrCode, error) {
	seen := make(map[uint64]struct{})
	for len(body) > 0 {
		id, n, err := quicvarint.Parse(body)
		if err != nil {
			return http3.ErrCodeFrameError, err
		}
		value, m, err := quicvarint.Parse(body[n:])
		if err != nil {
			return http3.ErrCodeFrameError, err
		}
		body = body[n+m:]
		if _, twice := seen[id]; twice {
			return http3.ErrCodeSettingsError, errSettings
		}
		seen[id] = struct{}{}
		if id != settingDatagram {
			continue
		}
		if value > 1 || value == 1 && !p.q.ConnectionState().SupportsDatagrams.Remote {
			return http3.ErrCodeSettingsError, errSettings
		}
		p.datagrams = value == 1
	}
	return 0, nil
}
