package webtransport

import (
	"context"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
)

const (
	// maxHeaders is how many streams may be waiting for their header or for the session, or be
	// plain requests, at once. Further streams are not looked at until one is done.
	maxHeaders = 256
	// headerTimeout is how long a stream's header may take.
	headerTimeout = 10 * time.Second
)

// demux sorts the streams that the peer opens on an HTTP/3 connection: the session's and those of HTTP/3.
type demux struct {
	q       *quic.Conn
	control func(*quic.ReceiveStream) // takes a unidirectional stream of HTTP/3, may block
	request func(*quic.Stream)        // takes a bidirectional stream of HTTP/3, may block

	slots   chan struct{}
	ready   chan struct{} // closed when session is set
	session *Conn
	wg      sync.WaitGroup
}

func newDemux(q *quic.Conn, control func(*quic.ReceiveStream), request func(*quic.Stream)) *demux {
	return &demux{
		q: q, control: control, request: request,
		slots: make(chan struct{}, maxHeaders),
		ready: make(chan struct{}),
	}
}

// start accepts streams until the connection ends.
func (d *demux) start() {
	d.wg.Go(func() {
		for {
			str, err := d.q.AcceptStream(context.Background())
			if err != nil {
				return
			}
			d.slots <- struct{}{}
			d.wg.Go(func() { d.bidi(str) })
		}
	})
	d.wg.Go(func() {
		for {
			str, err := d.q.AcceptUniStream(context.Background())
			if err != nil {
				return
			}
			d.slots <- struct{}{}
			d.wg.Go(func() { d.uni(str) })
		}
	})
}

// establish hands the session's streams to it from now on. It must be called once at most.
func (d *demux) establish(c *Conn) {
	d.session = c
	close(d.ready)
}

func (d *demux) bidi(str *quic.Stream) {
	ours, id, err := readHeader(str, bidiStreamType)
	switch {
	case err != nil:
		<-d.slots
		str.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestIncomplete))
		str.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestIncomplete))
		return
	case !ours:
		d.request(str)
		<-d.slots
		return
	}
	defer func() { <-d.slots }()
	session, ok := d.find(id)
	if !ok {
		str.CancelRead(codeStreamRejected)
		str.CancelWrite(codeStreamRejected)
	} else if !session.bidi.push(str) {
		str.CancelRead(codeSessionGone)
		str.CancelWrite(codeSessionGone)
	}
}

func (d *demux) uni(str *quic.ReceiveStream) {
	ours, id, err := readHeader(str, uniStreamType)
	switch {
	case err != nil:
		<-d.slots
		str.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestIncomplete))
		return
	case !ours:
		<-d.slots // HTTP/3's control stream stays: there is one at most
		d.control(str)
		return
	}
	defer func() { <-d.slots }()
	session, ok := d.find(id)
	if !ok {
		str.CancelRead(codeStreamRejected)
	} else if !session.uni.push(str) {
		str.CancelRead(codeSessionGone)
	}
}

// find waits for the session that a stream belongs to: its streams may overtake the request that
// opens it. An id that no session can have ends the connection.
func (d *demux) find(id uint64) (*Conn, bool) {
	if id%4 != 0 {
		_ = d.q.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeIDError), "invalid session id") // never fails
		return nil, false
	}
	select {
	case <-d.ready:
		return d.session, d.session.id == id
	case <-d.q.Context().Done():
		return nil, false
	}
}

type headerReader interface {
	Read([]byte) (int, error)
	Peek([]byte) (int, error)
	SetReadDeadline(time.Time) error
}

// readHeader reads type and session id of a stream of type want, and nothing of any other.
func readHeader(str headerReader, want uint64) (ours bool, id uint64, err error) {
	_ = str.SetReadDeadline(time.Now().Add(headerTimeout)) // never fails
	typ, err := quicvarint.Peek(str)
	if err == nil && typ == want {
		r := quicvarint.NewReader(str)
		if _, err = quicvarint.Read(r); err == nil {
			id, err = quicvarint.Read(r)
		}
	}
	_ = str.SetReadDeadline(time.Time{})
	return err == nil && typ == want, id, err
}
