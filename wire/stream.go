package wire

import (
	"io"
	"slices"
)

// readStep is how far a buffer grows ahead of the bytes that have arrived.
const readStep = 4 << 10

// StreamReader is how a stream is read: a *bufio.Reader around it, for example.
type StreamReader interface {
	io.Reader
	io.ByteReader
}

// ReadBody reads a length and that many bytes from a stream. A length above limit is ErrTooLarge and is
// reported before anything is buffered. The error is io.EOF if the stream ends before the length,
// io.ErrUnexpectedEOF if it ends later.
func ReadBody(r StreamReader, limit uint64) ([]byte, error) {
	n, err := ReadVarint(r)
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, ErrTooLarge
	}
	return ReadFull(r, n)
}

// ReadFull reads n bytes as AppendFull does.
func ReadFull(r io.Reader, n uint64) ([]byte, error) { return AppendFull(nil, r, n) }

// AppendFull reads n bytes and appends them to b. The slice grows as they arrive, so that a peer cannot make us
// allocate much more than it sends. If the stream ends early the error is io.ErrUnexpectedEOF.
func AppendFull(b []byte, r io.Reader, n uint64) ([]byte, error) {
	for n > 0 {
		step := int(min(n, uint64(max(readStep, len(b)))))
		b = slices.Grow(b, step)
		m, err := io.ReadFull(r, b[len(b):len(b)+step])
		b = b[:len(b)+m]
		if err != nil {
			return b, unexpected(err)
		}
		n -= uint64(step)
	}
	return b, nil
}
