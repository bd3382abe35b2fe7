package qmux

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/moqmesh/moqmesh/wire"
)

// carrier moves records (in the formats without records: frames), in order. One goroutine reads and one writes, at the same
// time; the other methods may be called by any.
type carrier interface {
	// next waits for the next record. It is valid until the next call. A *ProtocolError means that the peer is at fault;
	// any other error is the end of the carrier.
	next() ([]byte, error)
	// send writes what batch holds and returns when the system has taken it. It may change the batch.
	send(*batch) error
	// pings reports whether the carrier has pings of its own. ping has the writer send one; it must be called by the
	// writer.
	pings() bool
	ping() error
	// finish sends nothing more, and tells the peer so where that is possible.
	finish()
	// conn is what the carrier runs on.
	conn() net.Conn
}

// prefix is the room in front of each record of a batch for what the carrier puts there, in bytes.
const prefix = 2

// batch is one or more records to send, each after prefix bytes of room.
type batch struct {
	b    []byte
	ends []int // where each record ends
}

func (b *batch) reset() { b.b, b.ends = b.b[:0], b.ends[:0] }

// begin makes room for a record, and returns where it starts.
func (b *batch) begin() int {
	b.b = append(b.b, make([]byte, prefix)...)
	return len(b.b)
}

// end completes the record that starts at a place; an empty one is dropped.
func (b *batch) end(start int) bool {
	if len(b.b) == start {
		b.b = b.b[:start-prefix]
		return false
	}
	b.ends = append(b.ends, len(b.b))
	return true
}

// each calls f with each record.
func (b *batch) each(f func(record []byte) error) error {
	start := 0
	for _, end := range b.ends {
		if err := f(b.b[start+prefix : end]); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// byteStream is a carrier on a stream of bytes: TLS, TCP or a Unix socket. Where the draft has records, each has its size in
// front; else frames follow each other.
type byteStream struct {
	nc     net.Conn
	parser parser
	buf    []byte // [start:end] has been read and not yet returned
	start  int
	end    int
}

// streamBuffer holds two records, so that one read of the system can bring more than one.
const streamBuffer = 32 << 10

func newByteStream(nc net.Conn, d Draft) *byteStream {
	return &byteStream{nc: nc, parser: parser{draft: d}, buf: make([]byte, 4<<10)}
}

var errEmptyRecord = violation("empty record")

func (s *byteStream) next() ([]byte, error) {
	for {
		record, n, err := s.cut(s.buf[s.start:s.end])
		if n > 0 || err != nil {
			s.start += n
			return record, err
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// cut takes a record off b. n is 0 if b does not hold a whole one.
func (s *byteStream) cut(b []byte) (record []byte, n int, err error) {
	if !s.parser.draft.records() {
		return s.cutFrame(b)
	}
	size, head, short := wire.ParseVarint(b)
	switch {
	case short != nil:
		return nil, 0, nil
	case size == 0:
		return nil, 0, errEmptyRecord
	case size > maxRecord:
		return nil, 0, violation("record of %d bytes", size)
	case uint64(len(b)-head) < size:
		return nil, 0, nil
	}
	n = head + int(size)
	return b[head:n], n, nil
}

func (s *byteStream) cutFrame(b []byte) (record []byte, n int, err error) {
	_, n, err = s.parser.parse(b)
	switch {
	case errors.Is(err, wire.ErrTruncated) && len(b) < maxFrame00:
		return nil, 0, nil
	case err != nil:
		return nil, 0, violation("%v", err)
	case n > maxFrame00:
		return nil, 0, violation("frame of %d bytes", n)
	}
	return b[:n], n, nil
}

// fill reads more. The buffer grows with what arrives, and an idle connection has the small one.
func (s *byteStream) fill() error {
	if s.start == s.end {
		s.start, s.end = 0, 0
	}
	if s.start > 0 && s.end == len(s.buf) {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buf) {
		grown := make([]byte, streamBuffer)
		copy(grown, s.buf[:s.end])
		s.buf = grown
	}
	n, err := s.nc.Read(s.buf[s.end:])
	if s.end += n; n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

func (s *byteStream) send(b *batch) error {
	if s.parser.draft.records() {
		_, err := s.nc.Write(prefixed(b))
		return err
	}
	return b.each(func(frame []byte) error { _, err := s.nc.Write(frame); return err })
}

// prefixed puts the size in front of each record. All but a short first record have it in two bytes.
func prefixed(b *batch) []byte {
	start := 0
	for _, end := range b.ends {
		size := end - start - prefix
		b.b[start], b.b[start+1] = 0x40|byte(size>>8), byte(size)
		start = end
	}
	if size := b.ends[0] - prefix; wire.VarintLen(uint64(size)) == 1 {
		b.b[1] = byte(size)
		return b.b[1:]
	}
	return b.b
}

func (s *byteStream) pings() bool { return false }
func (s *byteStream) ping() error { return nil }

func (s *byteStream) finish() {
	if half, ok := s.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // of a connection that is about to be closed
		return
	}
	_ = s.nc.Close()
}

func (s *byteStream) conn() net.Conn { return s.nc }

// closeWait is how long an end that closes waits for the other one to do so too.
const closeWait = 500 * time.Millisecond
