// Package wire holds the primitive encodings of both MoQ protocols as moq-lite uses them: QUIC varints
// (RFC 9000 section 16), zigzag numbers, optional numbers, durations, strings, and length-prefixed bodies
// (moq-lite 3). Encoders append to a slice; decoders work on complete bodies or read from a stream.
package wire

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// MaxVarint is the largest number a varint holds.
const MaxVarint = 1<<62 - 1

// MaxVarintLen is the length of the longest varint in bytes.
const MaxVarintLen = 8

// The range of a zigzag number.
const (
	MinZigzag = -1 << 61
	MaxZigzag = 1<<61 - 1
)

// Errors of this package. All but ErrShort mean that the bytes are wrong and stay wrong.
var (
	// ErrShort means that the input ends inside a value and more bytes may complete it.
	ErrShort = errors.New("wire: more bytes needed")
	// ErrTruncated means that a field runs past the end of a complete body.
	ErrTruncated = errors.New("wire: field runs past the end of the body")
	// ErrTrailing means that a body has bytes left after its last field.
	ErrTrailing = errors.New("wire: bytes left after the last field")
	// ErrRange means that a number is outside the range of its encoding.
	ErrRange = errors.New("wire: number out of range")
	// ErrBool means that a boolean byte is neither 0 nor 1.
	ErrBool = errors.New("wire: boolean is neither 0 nor 1")
	// ErrUTF8 means that a string is not UTF-8.
	ErrUTF8 = errors.New("wire: string is not UTF-8")
	// ErrTooLarge means that a length exceeds its limit.
	ErrTooLarge = errors.New("wire: length exceeds the limit")
)

// VarintLen is the length in bytes of the shortest encoding of v; v must not exceed MaxVarint.
func VarintLen(v uint64) int {
	switch n := bits.Len64(v); {
	case n <= 6:
		return 1
	case n <= 14:
		return 2
	case n <= 30:
		return 4
	default:
		return 8
	}
}

// AppendVarint appends the shortest encoding of v. It panics if v exceeds MaxVarint: numbers that are not
// known to fit go through a Writer, which reports ErrRange instead.
func AppendVarint(b []byte, v uint64) []byte {
	switch n := bits.Len64(v); {
	case n <= 6:
		return append(b, byte(v))
	case n <= 14:
		return append(b, 0x40|byte(v>>8), byte(v))
	case n <= 30:
		return append(b, 0x80|byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	case n <= 62:
		return append(b, 0xc0|byte(v>>56), byte(v>>48), byte(v>>40), byte(v>>32),
			byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	default:
		panic(fmt.Sprintf("wire: %#x does not fit into a varint", v))
	}
}

// ParseVarint decodes the varint at the start of b, in any of its lengths, and returns how many bytes it
// takes. The only error is ErrShort: b ends inside it. A varint is never malformed.
func ParseVarint(b []byte) (v uint64, n int, err error) {
	if len(b) == 0 {
		return 0, 0, ErrShort
	}
	n = 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, 0, ErrShort
	}
	v = uint64(b[0] & 0x3f)
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, n, nil
}

// ReadVarint reads a varint from a stream. The error is io.EOF if the stream ends before its first byte,
// io.ErrUnexpectedEOF if it ends inside, else that of r.
func ReadVarint(r io.ByteReader) (uint64, error) {
	c, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	v := uint64(c & 0x3f)
	for range 1<<(c>>6) - 1 {
		if c, err = r.ReadByte(); err != nil {
			return 0, unexpected(err)
		}
		v = v<<8 | uint64(c)
	}
	return v, nil
}

// Zigzag maps a signed number to the varint that stands for it: 0, -1, 1, -2 become 0, 1, 2, 3. The result
// fits into a varint if n is between MinZigzag and MaxZigzag.
func Zigzag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }

// Unzigzag is the inverse of Zigzag.
func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// AppendZigzag appends n. It panics if n is outside MinZigzag to MaxZigzag.
func AppendZigzag(b []byte, n int64) []byte { return AppendVarint(b, Zigzag(n)) }

// ParseZigzag decodes as ParseVarint does.
func ParseZigzag(b []byte) (n int64, size int, err error) {
	v, size, err := ParseVarint(b)
	return Unzigzag(v), size, err
}

// unexpected turns the end of a stream inside a value into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
