package lite

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/wire"
)

// Sizes of input buffers in bytes: of a control stream, which lives long and reads little, and of a group.
const (
	controlBuffer = 512
	groupBuffer   = 4 << 10
)

// input reads what a peer sends on one stream. It is a wire.StreamReader for messages and hands out payloads
// without a copy where its buffer holds them. It is not for concurrent use.
type input struct {
	src    io.Reader
	buf    []byte
	r, w   int // buf[r:w] has arrived and is not consumed
	frames *frameBudget
	large  *[]byte // holds the payload handed out last, if buf could not
	held   int64   // bytes taken from frames for it
	stir   func()  // told of each piece of a large payload; may be nil
}

// newInput returns an input with a buffer of its own.
func newInput(src io.Reader, size int) *input {
	return &input{src: src, buf: make([]byte, size)}
}

var groupInputs = sync.Pool{New: func() any { return &input{buf: make([]byte, groupBuffer)} }}

// newGroupInput returns a pooled input for frames; free returns it.
func newGroupInput(src io.Reader, frames *frameBudget) *input {
	in := groupInputs.Get().(*input)
	in.src, in.frames = src, frames
	in.r, in.w = 0, 0
	return in
}

// free gives the buffers back. The input must not be used any more.
func (in *input) free() {
	in.release()
	in.src, in.frames, in.stir = nil, nil, nil
	groupInputs.Put(in)
}

// buffered is the number of bytes that have arrived and are not consumed.
func (in *input) buffered() int { return in.w - in.r }

// fill reads once. It makes room first; the buffer must not be full.
func (in *input) fill() error {
	switch {
	case in.r == in.w:
		in.r, in.w = 0, 0
	case in.w == len(in.buf):
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	n, err := in.src.Read(in.buf[in.w:])
	in.w += n
	if n > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// ReadByte implements io.ByteReader.
func (in *input) ReadByte() (byte, error) {
	if in.r == in.w {
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	c := in.buf[in.r]
	in.r++
	return c, nil
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	if in.r == in.w {
		if len(p) >= len(in.buf) {
			return in.src.Read(p)
		}
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.buf[in.r:in.w])
	in.r += n
	return n, nil
}

// message reads one message without a type, at most limit bytes long, or less where it cannot be that long. Errors are
// those of message.Read.
func (in *input) message(v message.Version, m message.Decoder, limit int) error {
	body, err := wire.ReadBody(in, min(uint64(limit), message.Limit(m)))
	if err != nil {
		return err
	}
	return m.Decode(body, v)
}

// malformed reports whether err says that the bytes are wrong, rather than that the stream failed.
func malformed(err error) bool {
	var bad *message.Error
	return errors.As(err, &bad) || errors.Is(err, wire.ErrTooLarge) || errors.Is(err, io.ErrUnexpectedEOF)
}

// frameHeader reads the header of a frame. The error is io.EOF if the stream ends before its first byte.
func (in *input) frameHeader(v message.Version) (message.FrameHeader, error) {
	in.release()
	for {
		h, n, err := message.ParseFrameHeader(in.buf[in.r:in.w], v)
		if err == nil {
			in.r += n
			return h, nil
		}
		if !errors.Is(err, wire.ErrShort) {
			return h, err
		}
		empty := in.r == in.w
		if err := in.fill(); err != nil {
			if errors.Is(err, io.EOF) && !empty {
				err = message.ErrFrameTruncated
			}
			return h, err
		}
	}
}

// payload reads n bytes, at most message.MaxFrame. The result is valid until the next call of any method.
func (in *input) payload(n int) ([]byte, error) {
	if n > len(in.buf) {
		return in.largePayload(n)
	}
	for in.buffered() < n {
		if in.r+n > len(in.buf) {
			in.w = copy(in.buf, in.buf[in.r:in.w])
			in.r = 0
		}
		if err := in.fill(); err != nil {
			return nil, truncated(err)
		}
	}
	p := in.buf[in.r : in.r+n]
	in.r += n
	return p, nil
}

// largePayload reads a payload into a buffer of its own. It is allocated at once while the session has upfront budget
// for it, else it grows as bytes arrive.
func (in *input) largePayload(n int) ([]byte, error) {
	size := n
	if !in.frames.upfront(n) {
		size = min(n, 2*len(in.buf))
		if err := in.frames.take(size); err != nil {
			return nil, err
		}
	}
	in.held = int64(size)
	in.large = getLarge(size)
	have := copy(*in.large, in.buf[in.r:in.w])
	in.r += have
	for {
		m, err := in.readPieces((*in.large)[have:])
		if have += m; err != nil {
			return nil, truncated(err)
		}
		if have == n {
			return *in.large, nil
		}
		if err := in.grow(min(n, 2*have)); err != nil {
			return nil, err
		}
	}
}

// readPieces fills p like io.ReadFull.
func (in *input) readPieces(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := in.src.Read(p[n:])
		n += m
		if m > 0 && in.stir != nil {
			in.stir()
		}
		if err != nil && n < len(p) {
			return n, err
		}
	}
	return n, nil
}

// grow replaces the large buffer by one of size bytes.
func (in *input) grow(size int) error {
	if err := in.frames.take(size - len(*in.large)); err != nil {
		return err
	}
	in.held = int64(size)
	next := getLarge(size)
	copy(*next, *in.large)
	putLarge(in.large)
	in.large = next
	return nil
}

// release gives the large buffer back.
func (in *input) release() {
	if in.large == nil {
		return
	}
	putLarge(in.large)
	in.large = nil
	in.frames.give(in.held)
	in.held = 0
}

// truncated names the end of a stream inside a frame.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return message.ErrFrameTruncated
	}
	return err
}

// errFrameBudget means that the frames of a session that have arrived in part take too much memory.
var errFrameBudget = fmt.Errorf("%w: memory for frames that are not complete", session.ErrNoCapacity)

// frameBudget counts the memory of a session's incomplete large frames.
type frameBudget struct {
	used    atomic.Int64
	limit   int64
	limited *atomic.Uint64 // counts what was too much; nil = nobody does
}

// upfront takes n bytes for a frame of which nothing has arrived.
func (b *frameBudget) upfront(n int) bool {
	if b.used.Add(int64(n)) <= min(maxUpfront, b.limit) {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

// take takes n bytes more.
func (b *frameBudget) take(n int) error {
	if b.used.Add(int64(n)) <= b.limit {
		return nil
	}
	b.used.Add(-int64(n))
	if b.limited != nil {
		b.limited.Add(1)
	}
	return errFrameBudget
}

func (b *frameBudget) give(n int64) { b.used.Add(-n) }

// Large buffers are pooled in classes, each twice the size of the one before; larger ones than the last class are not.
const (
	minLarge     = 8 << 10
	largeClasses = 8
)

var largePools [largeClasses]sync.Pool

// getLarge returns a buffer of n bytes.
func getLarge(n int) *[]byte {
	for i, size := 0, minLarge; i < largeClasses; i, size = i+1, 2*size {
		if n > size {
			continue
		}
		if p, ok := largePools[i].Get().(*[]byte); ok {
			*p = (*p)[:n]
			return p
		}
		b := make([]byte, n, size)
		return &b
	}
	b := make([]byte, n)
	return &b
}

// putLarge gives a buffer of getLarge back.
func putLarge(p *[]byte) {
	for i, size := 0, minLarge; i < largeClasses; i, size = i+1, 2*size {
		if cap(*p) == size {
			largePools[i].Put(p)
			return
		}
	}
}
