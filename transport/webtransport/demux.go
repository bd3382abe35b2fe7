package webtransport

import (
	"context"
	"errors"
	"io"
	"os"
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
	// promptHeader is how long accepting waits for a header in place. Nearly always it came with the
	// first packet of the stream; one that did not is waited for in a goroutine.
	promptHeader = time.Millisecond
)

// demux sorts the streams that the peer opens on an HTTP/3 connection: the session's and those of HTTP/3. Until the
// session is there its own goroutines accept them; from then on those do that accept the session's streams, so that
// a session that is there costs none.
type demux struct {
	q       *quic.Conn
	control func(*quic.ReceiveStream) // takes a unidirectional stream of HTTP/3, may block
	request func(*quic.Stream)        // takes a bidirectional stream of HTTP/3, may block

	slots   chan struct{}
	begun   context.CancelFunc // ends the accepting before the session
	ready   chan struct{}      // closed when session is set
	session *Conn

	mu   sync.Mutex
	over bool // nothing starts any more
	wg   sync.WaitGroup
}

func newDemux(q *quic.Conn, control func(*quic.ReceiveStream), request func(*quic.Stream)) *demux {
	return &demux{
		q: q, control: control, request: request,
		slots: make(chan struct{}, maxHeaders),
		ready: make(chan struct{}),
	}
}

// start accepts streams until there is a session or the connection ends.
func (d *demux) start() {
	ctx, cancel := context.WithCancel(context.Background())
	d.begun = cancel
	context.AfterFunc(d.q.Context(), cancel)
	d.wg.Go(func() {
		for {
			str, err := d.q.AcceptStream(ctx)
			if err != nil {
				return
			}
			d.slots <- struct{}{}
			d.wg.Go(func() { d.bidi(str) })
		}
	})
	d.wg.Go(func() {
		for {
			str, err := d.q.AcceptUniStream(ctx)
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
	d.begun()
}

// spawn runs f, which holds a slot, in a goroutine that wait waits for. It waits for the slot and reports false, and
// does nothing, if the connection ends first.
func (d *demux) spawn(f func()) bool {
	select {
	case d.slots <- struct{}{}:
	case <-d.q.Context().Done():
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return false
	}
	d.wg.Go(f)
	return true
}

// wait returns when the connection has ended and with it every goroutine that was started for it.
func (d *demux) wait() {
	<-d.q.Context().Done()
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.wg.Wait()
}

// bidi takes a stream for which it holds a slot, however long its header takes.
func (d *demux) bidi(str *quic.Stream) {
	ours, id, err := readHeader(str, bidiStreamType, headerTimeout)
	switch {
	case err != nil:
		<-d.slots
		headless(str, str)
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

// uni does the same for a unidirectional stream.
func (d *demux) uni(str *quic.ReceiveStream) {
	ours, id, err := readHeader(str, uniStreamType, headerTimeout)
	switch {
	case err != nil:
		<-d.slots
		headless(str, nil)
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

// sortBidi looks at a stream that was accepted for the session, and reports whether it is the session's. Any other it
// deals with.
func (d *demux) sortBidi(str *quic.Stream) bool {
	ours, id, err := readHeader(str, bidiStreamType, promptHeader)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), err == nil && !ours:
		if !d.spawn(func() { d.bidi(str) }) {
			headless(str, str)
		}
		return false
	case err != nil:
		headless(str, str)
		return false
	}
	if _, ok := d.find(id); !ok {
		str.CancelRead(codeStreamRejected)
		str.CancelWrite(codeStreamRejected)
		return false
	}
	return true
}

// sortUni does the same for a unidirectional stream.
func (d *demux) sortUni(str *quic.ReceiveStream) bool {
	ours, id, err := readHeader(str, uniStreamType, promptHeader)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), err == nil && !ours:
		if !d.spawn(func() { d.uni(str) }) {
			headless(str, nil)
		}
		return false
	case err != nil:
		headless(str, nil)
		return false
	}
	if _, ok := d.find(id); !ok {
		str.CancelRead(codeStreamRejected)
		return false
	}
	return true
}

// headless gives up a stream that ended, or was too slow, before its header was there. out is nil for one that has no
// sending side.
func headless(in interface{ CancelRead(quic.StreamErrorCode) }, out interface{ CancelWrite(quic.StreamErrorCode) }) {
	in.CancelRead(quic.StreamErrorCode(http3.ErrCodeRequestIncomplete))
	if out != nil {
		out.CancelWrite(quic.StreamErrorCode(http3.ErrCodeRequestIncomplete))
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

// readHeader reads type and session id of a stream of type want, and nothing of any other, nor before all of it is
// there, which may take limit.
func readHeader(str headerReader, want uint64, limit time.Duration) (ours bool, id uint64, err error) {
	_ = str.SetReadDeadline(time.Now().Add(limit)) // never fails
	defer func() { _ = str.SetReadDeadline(time.Time{}) }()
	var b [2 * maxVarint]byte
	n, typ, err := peekVarint(str, b[:], 0)
	if err != nil || typ != want {
		return false, 0, err
	}
	if n, id, err = peekVarint(str, b[:], n); err != nil {
		return false, 0, err
	}
	_, err = io.ReadFull(str, b[:n])
	return err == nil, id, err
}

// maxVarint is the longest varint, in bytes.
const maxVarint = 8

// peekVarint looks at the varint that begins at offset at of a stream, and returns the offset of its end. b is scratch.
func peekVarint(str headerReader, b []byte, at int) (end int, v uint64, err error) {
	if _, err := str.Peek(b[:at+1]); err != nil {
		return at, 0, err
	}
	end = at + 1<<(b[at]>>6)
	if end > at+1 {
		if _, err := str.Peek(b[:end]); err != nil {
			return at, 0, err
		}
	}
	v, _, err = quicvarint.Parse(b[at:end])
	return end, v, err
}
