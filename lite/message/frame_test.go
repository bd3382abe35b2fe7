package message_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/wire"
)

func TestParseFrameHeaderIsIncremental(t *testing.T) {
	for _, v := range []message.Version{message.Lite04, message.Lite05} {
		want := message.FrameHeader{Size: 100_000}
		if v.HasTimestamps() {
			want.Delta = -70_000
		}
		b, err := message.AppendFrameHeader(nil, v, want)
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			if _, _, err := message.ParseFrameHeader(b[:n], v); !errors.Is(err, wire.ErrShort) {
				t.Errorf("%v: %d bytes: got %v, want %v", v, n, err, wire.ErrShort)
			}
		}
		got, n, err := message.ParseFrameHeader(append(b, 1, 2, 3), v)
		if diff := cmp.Diff(want, got); diff != "" || n != len(b) || err != nil {
			t.Errorf("%v: %d bytes, %v, %s", v, n, err, diff)
		}
	}
}

func TestFrameHeaderLimits(t *testing.T) {
	for _, tt := range []struct {
		name string
		h    message.FrameHeader
		want error
	}{
		{"largest", message.FrameHeader{Size: message.MaxFrame, Delta: wire.MaxZigzag}, nil},
		{"size", message.FrameHeader{Size: message.MaxFrame + 1}, message.ErrFrameTooLarge},
		{"delta", message.FrameHeader{Delta: wire.MaxZigzag + 1}, wire.ErrRange},
		{"negative delta", message.FrameHeader{Delta: wire.MinZigzag - 1}, wire.ErrRange},
	} {
		b, err := message.AppendFrameHeader([]byte("before"), message.Lite06, tt.h)
		if !errors.Is(err, tt.want) || err != nil && string(b) != "before" {
			t.Errorf("%s: got %q, %v, want %v", tt.name, b, err, tt.want)
		}
	}
	b := wire.AppendVarint([]byte{0}, message.MaxFrame+1)
	if _, _, err := message.ParseFrameHeader(b, message.Lite06); !errors.Is(err, message.ErrFrameTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestNextTimestamp(t *testing.T) {
	for _, tt := range []struct {
		prev  uint64
		delta int64
		want  uint64
		ok    bool
	}{
		{0, 0, 0, true},
		{1000, -40, 960, true},
		{5, -5, 0, true},
		{5, -6, 0, false},
		{wire.MaxVarint, 0, wire.MaxVarint, true},
		{wire.MaxVarint, 1, 0, false},
		{wire.MaxVarint, wire.MaxZigzag, 0, false},
		{0, wire.MinZigzag, 0, false},
	} {
		if got, ok := message.NextTimestamp(tt.prev, tt.delta); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%d and %d make %d, %v", tt.prev, tt.delta, got, ok)
		}
	}
}

func TestFrameReader(t *testing.T) {
	want := frames{
		{1000, []byte("small")},
		{960, []byte{}},
		{960, bytes.Repeat([]byte("large"), 50_000)},
		{2000, bytes.Repeat([]byte("fits"), 4)},
		{wire.MaxZigzag, bytes.Repeat([]byte("huge"), 500_000)},
		{wire.MaxZigzag + 1, []byte("last")},
	}
	for _, v := range []message.Version{message.Lite01, message.Lite06} {
		b, err := want.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []io.Reader{bytes.NewReader(b), iotest.HalfReader(bytes.NewReader(b)), iotest.DataErrReader(bytes.NewReader(b))} {
			got, err := readFrames(bufio.NewReaderSize(stream, 16), v)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if v.HasTimestamps() != (got[i].Timestamp == want[i].Timestamp) || !bytes.Equal(got[i].Payload, want[i].Payload) {
					t.Errorf("%v: frame %d is wrong: %d, %d bytes", v, i, got[i].Timestamp, len(got[i].Payload))
				}
			}
			if len(got) != len(want) {
				t.Errorf("%v: %d frames", v, len(got))
			}
		}
	}
}

func TestFrameReaderErrors(t *testing.T) {
	failure := errors.New("reset")
	frame := "\x00\x05hello"
	for _, tt := range []struct {
		name   string
		stream string
		then   error // how the stream ends
		frames int
		want   error
	}{
		{"end between frames", frame, io.EOF, 1, io.EOF},
		{"end after a delta", frame + "\x00", io.EOF, 1, message.ErrFrameTruncated},
		{"end inside a delta", frame + "\x40", io.EOF, 1, message.ErrFrameTruncated},
		{"end inside a size", frame + "\x00\x40", io.EOF, 1, message.ErrFrameTruncated},
		{"end before a payload", frame + "\x00\x05", io.EOF, 1, message.ErrFrameTruncated},
		{"end inside a payload", frame + "\x00\x05hel", io.EOF, 1, message.ErrFrameTruncated},
		{"end inside a large payload", frame + "\x00\x47\xd0hel", io.EOF, 1, message.ErrFrameTruncated},
		{"reset between frames", frame, failure, 1, failure},
		{"reset inside a payload", frame + "\x00\x05hel", failure, 1, failure},
		{"reset inside a large payload", frame + "\x00\x47\xd0hel", failure, 1, failure},
		{"too large", frame + "\x00\x82\x00\x00\x01", failure, 1, message.ErrFrameTooLarge},
		{"negative timestamp", frame + "\x01\x00", failure, 1, message.ErrTimestamp},
		{"timestamp beyond the range", "\xff\xff\xff\xff\xff\xff\xff\xfe\x00\xff\xff\xff\xff\xff\xff\xff\xfe\x00\x04\x00", failure, 2, message.ErrTimestamp},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := io.MultiReader(bytes.NewReader([]byte(tt.stream)), iotest.ErrReader(tt.then))
			got := message.NewFrameReader(bufio.NewReaderSize(r, 16), message.Lite06)
			for i := range tt.frames {
				if _, _, err := got.Next(); err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
			}
			if _, _, err := got.Next(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Neither a declared size nor a frame after the first costs memory.
func TestFrameReaderMemory(t *testing.T) {
	var before, after runtime.MemStats
	r := bufio.NewReader(bytes.NewReader(wire.AppendVarint([]byte{0}, message.MaxFrame)))
	runtime.ReadMemStats(&before)
	if _, _, err := message.NewFrameReader(r, message.Lite06).Next(); !errors.Is(err, message.ErrFrameTruncated) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("allocated %d bytes for a frame that never came", n)
	}
	var l frames
	for range 1200 {
		l = append(l, frame{0, make([]byte, 100)}, frame{0, make([]byte, 10_000)})
	}
	b, err := l.Append(nil, message.Lite06)
	if err != nil {
		t.Fatal(err)
	}
	fr := message.NewFrameReader(bufio.NewReader(bytes.NewReader(b)), message.Lite06)
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := fr.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
