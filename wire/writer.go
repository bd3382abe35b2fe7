package wire

import (
	"time"
	"unicode/utf8"
)

// Writer appends fields to a slice. The first error sticks and is reported by Done; nothing is allocated but
// the growth of the slice.
type Writer struct {
	b     []byte
	start int
	err   error
}

// NewWriter returns a Writer that appends to b.
func NewWriter(b []byte) Writer { return Writer{b: b, start: len(b)} }

// Fail sets the error unless there is one already.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Done returns the slice with everything appended. On an error it returns what NewWriter got, unchanged in
// length.
func (w *Writer) Done() ([]byte, error) {
	if w.err != nil {
		return w.b[:w.start], w.err
	}
	return w.b, nil
}

// Varint appends a number; above MaxVarint it fails with ErrRange.
func (w *Writer) Varint(v uint64) {
	if v > MaxVarint {
		w.Fail(ErrRange)
		return
	}
	w.b = AppendVarint(w.b, v)
}

// Zigzag appends a signed number; outside MinZigzag to MaxZigzag it fails with ErrRange.
func (w *Writer) Zigzag(n int64) { w.Varint(Zigzag(n)) }

// U8 appends one byte.
func (w *Writer) U8(c uint8) { w.b = append(w.b, c) }

// Bool appends 0 or 1.
func (w *Writer) Bool(v bool) {
	if v {
		w.U8(1)
	} else {
		w.U8(0)
	}
}

// Option appends an optional number. A value of MaxVarint cannot be expressed and fails with ErrRange.
func (w *Writer) Option(v uint64, ok bool) {
	switch {
	case !ok:
		w.Varint(0)
	case v >= MaxVarint:
		w.Fail(ErrRange)
	default:
		w.Varint(v + 1)
	}
}

// Duration appends whole milliseconds, rounded down. A negative duration fails with ErrRange.
func (w *Writer) Duration(d time.Duration) {
	if d < 0 {
		w.Fail(ErrRange)
		return
	}
	w.Varint(uint64(d / time.Millisecond))
}

// Bytes appends a length and p.
func (w *Writer) Bytes(p []byte) {
	w.b = append(AppendVarint(w.b, uint64(len(p))), p...)
}

// String appends a length and s; if s is not UTF-8 it fails with ErrUTF8.
func (w *Writer) String(s string) {
	if !utf8.ValidString(s) {
		w.Fail(ErrUTF8)
		return
	}
	w.b = append(AppendVarint(w.b, uint64(len(s))), s...)
}

// Raw appends p as it is.
func (w *Writer) Raw(p []byte) { w.b = append(w.b, p...) }

// Mark is a place where a length will be filled in.
type Mark int

// Begin starts a part that is preceded by its length as a varint; End closes it. Parts may be nested.
func (w *Writer) Begin() Mark {
	w.b = append(w.b, 0)
	return Mark(len(w.b))
}

// End writes the length of everything appended since Begin in front of it. A part that is longer than limit
// fails with ErrTooLarge.
func (w *Writer) End(m Mark, limit uint64) {
	size := uint64(len(w.b) - int(m))
	if size > limit {
		w.Fail(ErrTooLarge)
		return
	}
	if extra := VarintLen(size) - 1; extra > 0 {
		var pad [MaxVarintLen]byte
		w.b = append(w.b, pad[:extra]...)
		copy(w.b[int(m)+extra:], w.b[m:])
	}
	AppendVarint(w.b[:m-1], size)
}

// Begin16 starts a part that is preceded by its length as 16 bits, big-endian; End16 closes it.
func (w *Writer) Begin16() Mark {
	w.b = append(w.b, 0, 0)
	return Mark(len(w.b))
}

// End16 writes the length of everything appended since Begin16; above 65535 bytes it fails with ErrTooLarge.
func (w *Writer) End16(m Mark) {
	size := len(w.b) - int(m)
	if size > 0xffff {
		w.Fail(ErrTooLarge)
		return
	}
	w.b[m-2], w.b[m-1] = byte(size>>8), byte(size)
}
