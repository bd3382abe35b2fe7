package message

import (
	"bufio"
	"errors"
	"io"

	"github.com/moqmesh/moqmesh/wire"
)

// Limits of frames (moq-lite 10).
const (
	MaxFrame           = 32 << 20       // bytes of a frame's payload
	MaxDatagramPayload = 65535          // bytes
	MaxTimestamp       = wire.MaxVarint // units of the track's timescale
)

// Errors of frames.
var (
	ErrFrameTooLarge  = errors.New("frame is larger than allowed")
	ErrFrameTruncated = errors.New("stream ends inside a frame")
	ErrTimestamp      = errors.New("timestamp is out of range")
)

// MaxFrameHeaderLen is the most that a FrameHeader takes, in bytes.
const MaxFrameHeaderLen = 2 * wire.MaxVarintLen

// FrameHeader precedes each payload in a group and in the answer to FETCH (moq-lite 5.12).
type FrameHeader struct {
	Delta int64  // timestamp minus that of the previous frame on the stream; 0 where v has no timestamps
	Size  uint64 // of the payload that follows
}

// AppendFrameHeader appends a header. It fails with wire.ErrRange, and returns b, if the delta is outside the range
// of a zigzag number (half of what a timestamp can be) or the size is above MaxFrame.
func AppendFrameHeader(b []byte, v Version, h FrameHeader) ([]byte, error) {
	if h.Size > MaxFrame {
		return b, ErrFrameTooLarge
	}
	if v.HasTimestamps() {
		if h.Delta < wire.MinZigzag || h.Delta > wire.MaxZigzag {
			return b, wire.ErrRange
		}
		b = wire.AppendZigzag(b, h.Delta)
	}
	return wire.AppendVarint(b, h.Size), nil
}

// ParseFrameHeader decodes the header at the start of b and returns how many bytes it takes. The error is wire.ErrShort
// if b ends inside it, or ErrFrameTooLarge.
func ParseFrameHeader(b []byte, v Version) (h FrameHeader, n int, err error) {
	if v.HasTimestamps() {
		if h.Delta, n, err = wire.ParseZigzag(b); err != nil {
			return FrameHeader{}, 0, err
		}
	}
	size, m, err := wire.ParseVarint(b[n:])
	if err != nil {
		return FrameHeader{}, 0, err
	}
	if size > MaxFrame {
		return FrameHeader{}, 0, ErrFrameTooLarge
	}
	h.Size = size
	return h, n + m, nil
}

// NextTimestamp is the timestamp delta after prev; ok is false if it leaves the range of timestamps.
func NextTimestamp(prev uint64, delta int64) (ts uint64, ok bool) {
	ts = prev + uint64(delta) // modulo 2^64: a negative sum is far above the range
	return ts, ts <= MaxTimestamp
}

// FrameReader reads the frames that follow a GROUP header or answer a FETCH. It is not for concurrent use.
type FrameReader struct {
	r         *bufio.Reader
	v         Version
	timestamp uint64
	held      int    // bytes of r that the last payload aliases
	large     []byte // for payloads that r cannot hold
}

// keepLarge is the largest buffer that a FrameReader keeps from one frame to the next, in bytes.
const keepLarge = 1 << 20

// NewFrameReader returns a FrameReader. It reads from r alone and never past the frame that was asked for, apart from
// what r itself buffers.
func NewFrameReader(r *bufio.Reader, v Version) *FrameReader {
	return &FrameReader{r: r, v: v}
}

// Next reads one frame. Payload is valid until the next call. Before 05 the timestamp is 0: the wire has none. The error
// is io.EOF if the stream ends between frames. ErrTimestamp, ErrFrameTooLarge and ErrFrameTruncated mean that the peer
// broke the rules; a size is checked before anything is allocated, and the buffer grows as bytes arrive. Everything else
// comes from the stream.
func (f *FrameReader) Next() (timestamp uint64, payload []byte, err error) {
	if _, err := f.r.Discard(f.held); err != nil {
		return 0, nil, err // cannot be: Peek has buffered them
	}
	f.held = 0
	h, err := f.header()
	if err != nil {
		return 0, nil, err
	}
	ts, ok := NextTimestamp(f.timestamp, h.Delta)
	if !ok {
		return 0, nil, ErrTimestamp
	}
	if payload, err = f.payload(h.Size); err != nil {
		return 0, nil, err
	}
	f.timestamp = ts
	return ts, payload, nil
}

// header reads the header of a frame.
func (f *FrameReader) header() (h FrameHeader, err error) {
	if f.v.HasTimestamps() {
		delta, err := wire.ReadVarint(f.r)
		if err != nil {
			return h, truncated(err)
		}
		h.Delta = wire.Unzigzag(delta)
	}
	h.Size, err = wire.ReadVarint(f.r)
	switch {
	case errors.Is(err, io.EOF) && f.v.HasTimestamps():
		return h, ErrFrameTruncated
	case err != nil:
		return h, truncated(err)
	case h.Size > MaxFrame:
		return h, ErrFrameTooLarge
	}
	return h, nil
}

// payload reads a payload, without a copy if the buffer of r holds it.
func (f *FrameReader) payload(size uint64) ([]byte, error) {
	if size <= uint64(f.r.Size()) {
		p, err := f.r.Peek(int(size))
		if errors.Is(err, io.EOF) {
			err = ErrFrameTruncated
		}
		f.held = len(p)
		return p, err
	}
	buf := f.large[:0]
	if cap(buf) > keepLarge {
		buf = nil
	}
	f.large = nil
	buf, err := wire.AppendFull(buf, f.r, size)
	if err != nil {
		return nil, truncated(err)
	}
	f.large = buf
	return buf, nil
}

// truncated names the end of a stream inside a frame.
func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrFrameTruncated
	}
	return err
}
