package wire_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/wire"
)

func TestVarintLengths(t *testing.T) {
	for _, tt := range []struct {
		v uint64
		n int
	}{
		{0, 1}, {63, 1}, {64, 2}, {16383, 2}, {16384, 4}, {1<<30 - 1, 4}, {1 << 30, 8}, {wire.MaxVarint, 8},
	} {
		b := wire.AppendVarint(nil, tt.v)
		if len(b) != tt.n || wire.VarintLen(tt.v) != tt.n {
			t.Errorf("%d takes %d bytes, VarintLen says %d, want %d", tt.v, len(b), wire.VarintLen(tt.v), tt.n)
		}
	}
}

func TestAppendVarintPanicsBeyondTheRange(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	wire.AppendVarint(nil, wire.MaxVarint+1)
}

func TestVarintRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(0, wire.MaxVarint).Draw(t, "v")
		b := wire.AppendVarint(nil, v)
		got, n, err := wire.ParseVarint(append(b, 0xff))
		if got != v || n != len(b) || err != nil {
			t.Fatalf("parsed %d, %d, %v", got, n, err)
		}
		if got, err := wire.ReadVarint(bytes.NewReader(b)); got != v || err != nil {
			t.Fatalf("read %d, %v", got, err)
		}
		for i := range b {
			if _, _, err := wire.ParseVarint(b[:i]); !errors.Is(err, wire.ErrShort) {
				t.Fatalf("parse of %d bytes: %v", i, err)
			}
			want := io.ErrUnexpectedEOF
			if i == 0 {
				want = io.EOF
			}
			if _, err := wire.ReadVarint(bytes.NewReader(b[:i])); !errors.Is(err, want) {
				t.Fatalf("read of %d bytes: %v", i, err)
			}
		}
	})
}

func TestZigzagRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(wire.MinZigzag, wire.MaxZigzag).Draw(t, "n")
		b := wire.AppendZigzag(nil, n)
		if got, size, err := wire.ParseZigzag(b); got != n || size != len(b) || err != nil {
			t.Fatalf("parsed %d, %d, %v", got, size, err)
		}
		if wire.Unzigzag(wire.Zigzag(n)) != n {
			t.Fatal("Unzigzag is not the inverse")
		}
	})
	for _, n := range []int64{math.MinInt64, math.MaxInt64} {
		if got := wire.Unzigzag(wire.Zigzag(n)); got != n {
			t.Errorf("%d becomes %d", n, got)
		}
	}
}

func TestReaderTakesFieldsInOrder(t *testing.T) {
	body := []byte{
		0x40, 0x25, // varint
		7,          // u8
		1,          // bool
		0,          // option: absent
		5,          // option: 4
		3,          // zigzag
		0x43, 0xe8, // duration
		2, 'h', 'i', // string
		2, 1, 2, // bytes
		9, 9, // rest
	}
	r := wire.NewReader(body)
	if got := r.Varint(); got != 37 {
		t.Errorf("varint: %d", got)
	}
	if got := r.U8(); got != 7 {
		t.Errorf("u8: %d", got)
	}
	if !r.Bool() {
		t.Error("bool: false")
	}
	if v, ok := r.Option(); ok {
		t.Errorf("option: %d", v)
	}
	if v, ok := r.Option(); v != 4 || !ok {
		t.Errorf("option: %d, %v", v, ok)
	}
	if got := r.Zigzag(); got != -2 {
		t.Errorf("zigzag: %d", got)
	}
	if got := r.Duration(); got != time.Second {
		t.Errorf("duration: %v", got)
	}
	if got := r.String(); got != "hi" {
		t.Errorf("string: %q", got)
	}
	if got := r.Bytes(); !bytes.Equal(got, []byte{1, 2}) {
		t.Errorf("bytes: %x", got)
	}
	if r.Len() != 2 {
		t.Errorf("%d bytes left", r.Len())
	}
	if got := r.Rest(); !bytes.Equal(got, []byte{9, 9}) {
		t.Errorf("rest: %x", got)
	}
	if err := r.Done(); err != nil {
		t.Error(err)
	}
}

func TestReaderErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		body string
		read func(*wire.Reader)
		want error
	}{
		{"no varint", "", func(r *wire.Reader) { r.Varint() }, wire.ErrTruncated},
		{"short varint", "\x40", func(r *wire.Reader) { r.Varint() }, wire.ErrTruncated},
		{"no byte", "", func(r *wire.Reader) { r.U8() }, wire.ErrTruncated},
		{"bool 2", "\x02", func(r *wire.Reader) { r.Bool() }, wire.ErrBool},
		{"long bytes", "\x03ab", func(r *wire.Reader) { r.Bytes() }, wire.ErrTruncated},
		{"huge bytes", "\xff\xff\xff\xff\xff\xff\xff\xffab", func(r *wire.Reader) { r.Bytes() }, wire.ErrTruncated},
		{"bad string", "\x01\xff", func(r *wire.Reader) { _ = r.String() }, wire.ErrUTF8},
		{"bad rest", "\xff", func(r *wire.Reader) { r.RestString() }, wire.ErrUTF8},
		{"long string", "\x03abc", func(r *wire.Reader) { r.StringMax(2) }, wire.ErrTooLarge},
		{"long string, by its length", "\x03", func(r *wire.Reader) { r.StringMax(2) }, wire.ErrTooLarge},
		{"string of the limit", "\x03abc", func(r *wire.Reader) { r.StringMax(3) }, nil},
		{"trailing", "\x00\x00", func(r *wire.Reader) { r.Varint() }, wire.ErrTrailing},
		{"the first error sticks", "\x02\xff", func(r *wire.Reader) { r.Bool(); _ = r.String(); r.Fail(io.EOF) }, wire.ErrBool},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := wire.NewReader([]byte(tt.body))
			tt.read(&r)
			if err := r.Done(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				if v, b, s := r.Varint(), r.Bytes(), r.String(); v != 0 || len(b) != 0 || s != "" {
					t.Errorf("after the error: %d, %x, %q", v, b, s)
				}
			}
		})
	}
}

func TestDurationSaturates(t *testing.T) {
	r := wire.NewReader(wire.AppendVarint(nil, wire.MaxVarint))
	d := r.Duration()
	if d != wire.MaxDuration {
		t.Errorf("got %v, want %v", d, wire.MaxDuration)
	}
	w := wire.NewWriter(nil)
	w.Duration(d)
	b, err := w.Done()
	if err != nil {
		t.Fatal(err)
	}
	if r = wire.NewReader(b); r.Duration() != d {
		t.Error("the largest duration does not read back")
	}
}

func TestWriterErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		write func(*wire.Writer)
		want  error
	}{
		{"varint", func(w *wire.Writer) { w.Varint(wire.MaxVarint + 1) }, wire.ErrRange},
		{"zigzag", func(w *wire.Writer) { w.Zigzag(wire.MaxZigzag + 1) }, wire.ErrRange},
		{"zigzag below", func(w *wire.Writer) { w.Zigzag(wire.MinZigzag - 1) }, wire.ErrRange},
		{"option", func(w *wire.Writer) { w.Option(wire.MaxVarint, true) }, wire.ErrRange},
		{"option of any value", func(w *wire.Writer) { w.Option(math.MaxUint64, true) }, wire.ErrRange},
		{"absent option", func(w *wire.Writer) { w.Option(math.MaxUint64, false) }, nil},
		{"negative duration", func(w *wire.Writer) { w.Duration(-1) }, wire.ErrRange},
		{"string", func(w *wire.Writer) { w.String("\xff") }, wire.ErrUTF8},
		{"limit", func(w *wire.Writer) { m := w.Begin(); w.Raw([]byte("abc")); w.End(m, 2) }, wire.ErrTooLarge},
		{"16 bits", func(w *wire.Writer) { m := w.Begin16(); w.Raw(make([]byte, 1<<16)); w.End16(m) }, wire.ErrTooLarge},
		{"the first error sticks", func(w *wire.Writer) { w.Fail(wire.ErrUTF8); w.Varint(math.MaxUint64) }, wire.ErrUTF8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := wire.NewWriter([]byte("kept"))
			w.U8(1)
			tt.write(&w)
			b, err := w.Done()
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.want != nil && string(b) != "kept" {
				t.Errorf("slice is %q", b)
			}
		})
	}
}

func TestWriterLengths(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 16383, 16384, 70000} {
		w := wire.NewWriter([]byte{0xaa})
		outer := w.Begin()
		inner := w.Begin()
		w.Raw(bytes.Repeat([]byte{7}, n))
		w.End(inner, wire.MaxVarint)
		w.Bool(true)
		w.End(outer, wire.MaxVarint)
		b, err := w.Done()
		if err != nil {
			t.Fatal(err)
		}
		r := wire.NewReader(b[1:])
		out := wire.NewReader(r.Bytes())
		if in := out.Bytes(); !bytes.Equal(in, bytes.Repeat([]byte{7}, n)) {
			t.Errorf("%d bytes: inner part has %d", n, len(in))
		}
		if !out.Bool() || out.Done() != nil || r.Done() != nil {
			t.Errorf("%d bytes: the outer part is wrong", n)
		}
	}
	w := wire.NewWriter(nil)
	m := w.Begin16()
	w.Raw(make([]byte, 0x0102))
	w.End16(m)
	if b, err := w.Done(); err != nil || b[0] != 1 || b[1] != 2 || len(b) != 2+0x0102 {
		t.Errorf("16-bit length is %x, %v", b[:2], err)
	}
}

func TestReadBody(t *testing.T) {
	large := strings.Repeat("x", 300_000)
	for _, tt := range []struct {
		name   string
		stream string
		limit  uint64
		want   string
		err    error
	}{
		{"empty", "\x00", 0, "", nil},
		{"small", "\x02hi and more", 2, "hi", nil},
		{"above the limit", "\x03", 2, "", wire.ErrTooLarge},
		{"large", string(wire.AppendVarint(nil, uint64(len(large)))) + large, 1 << 20, large, nil},
		{"end before", "", 2, "", io.EOF},
		{"end in the length", "\x40", 2, "", io.ErrUnexpectedEOF},
		{"end after the length", "\x02", 2, "", io.ErrUnexpectedEOF},
		{"end in the body", "\x02h", 2, "", io.ErrUnexpectedEOF},
		{"end in the second step", string(wire.AppendVarint(nil, 1<<20)) + large, 1 << 20, "", io.ErrUnexpectedEOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := wire.ReadBody(strings.NewReader(tt.stream), tt.limit)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, string(got)); err == nil && diff != "" {
				t.Error("wrong bytes")
			}
		})
	}
	failure := errors.New("reset")
	_, err := wire.ReadFull(io.MultiReader(strings.NewReader("a"), iotest.ErrReader(failure)), 5)
	if !errors.Is(err, failure) {
		t.Errorf("got %v, want that of the stream", err)
	}
}

// A length costs the peer as many bytes as it costs us.
func TestReadFullDoesNotTrustTheLength(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := wire.ReadFull(strings.NewReader("only this"), 1<<30); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

func TestAppendFullKeepsWhatIsThere(t *testing.T) {
	b, err := wire.AppendFull([]byte("ab"), iotest.OneByteReader(strings.NewReader("cdef")), 3)
	if string(b) != "abcde" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}
