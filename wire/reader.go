package wire

import (
	"math"
	"time"
	"unicode/utf8"
)

// MaxDuration is the longest duration that decoding yields: the wire may hold more milliseconds than a
// time.Duration does, and longer ones become this.
const MaxDuration = math.MaxInt64 / time.Millisecond * time.Millisecond

// Reader decodes the fields of a complete body. The first error sticks: later calls return zero values, and
// Done reports it. A field that runs past the end is ErrTruncated, because nothing will follow.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a Reader of body. It does not copy body.
func NewReader(body []byte) Reader { return Reader{b: body} }

// Err is the first error so far.
func (r *Reader) Err() error { return r.err }

// Len is the number of bytes left.
func (r *Reader) Len() int { return len(r.b) }

// Fail sets the error unless there is one already.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
		r.b = nil
	}
}

// Done returns the first error, or ErrTrailing if bytes are left: a body must be consumed exactly.
func (r *Reader) Done() error {
	if r.err == nil && len(r.b) > 0 {
		r.Fail(ErrTrailing)
	}
	return r.err
}

// Varint reads a number up to MaxVarint.
func (r *Reader) Varint() uint64 {
	v, n, err := ParseVarint(r.b)
	if err != nil {
		r.Fail(ErrTruncated)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Zigzag reads a signed number.
func (r *Reader) Zigzag() int64 { return Unzigzag(r.Varint()) }

// U8 reads one byte.
func (r *Reader) U8() uint8 {
	if len(r.b) == 0 {
		r.Fail(ErrTruncated)
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// Bool reads one byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	c := r.U8()
	if c > 1 {
		r.Fail(ErrBool)
	}
	return c == 1
}

// Option reads an optional number: 0 is absent, else the value plus one.
func (r *Reader) Option() (v uint64, ok bool) {
	if v = r.Varint(); v == 0 {
		return 0, false
	}
	return v - 1, true
}

// Duration reads whole milliseconds, at most MaxDuration.
func (r *Reader) Duration() time.Duration {
	return Milliseconds(r.Varint())
}

// Milliseconds converts a number of milliseconds, at most MaxDuration.
func Milliseconds(ms uint64) time.Duration {
	if ms > uint64(MaxDuration/time.Millisecond) {
		return MaxDuration
	}
	return time.Duration(ms) * time.Millisecond
}

// Bytes reads a length and that many bytes. The result aliases the body.
func (r *Reader) Bytes() []byte {
	n := r.Varint()
	if n > uint64(len(r.b)) {
		r.Fail(ErrTruncated)
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

// String reads a length and that many bytes of UTF-8.
func (r *Reader) String() string {
	return r.text(r.Bytes())
}

// StringMax is String with a limit on the length in bytes. A longer one is ErrTooLarge, which is reported
// from the length alone.
func (r *Reader) StringMax(limit uint64) string {
	if n, _, err := ParseVarint(r.b); err == nil && n > limit {
		r.Fail(ErrTooLarge)
		return ""
	}
	return r.String()
}

// Rest takes all bytes that are left. The result aliases the body.
func (r *Reader) Rest() []byte {
	p := r.b
	r.b = nil
	return p
}

// RestString takes all bytes that are left as UTF-8.
func (r *Reader) RestString() string { return r.text(r.Rest()) }

// text is p as a string.
func (r *Reader) text(p []byte) string {
	if !utf8.Valid(p) {
		r.Fail(ErrUTF8)
		return ""
	}
	return string(p)
}
