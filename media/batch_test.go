package media_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/wire"
)

// encode writes frames as moq-lite 5.12 says: the obvious way.
func encode(frames []media.Frame, timestamps bool) (b []byte) {
	prev := uint64(0)
	for _, f := range frames {
		if timestamps {
			b = wire.AppendZigzag(b, int64(f.Timestamp)-int64(prev))
			prev = f.Timestamp
		}
		b = wire.AppendVarint(b, uint64(len(f.Payload)))
		b = append(b, f.Payload...)
	}
	return b
}

// TestWireForms: for any frames, read from any frame on, and however reading and writing interleave, the batches
// together are the wire form of both kinds of version.
func TestWireForms(t *testing.T) {
	size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(15<<10, 17<<10), rapid.IntRange(63<<10, 66<<10))
	rapid.Check(t, func(rt *rapid.T) {
		track := media.NewCache(media.CacheConfig{}).NewTrack(media.Info{MaxAge: time.Second, Timescale: 1000})
		defer track.Close(errors.New("over"))
		c := track.NewCopy(nil)
		n := rapid.IntRange(1, 30).Draw(rt, "frames")
		first := rapid.IntRange(0, n-1).Draw(rt, "first")
		reader := track.NewReader(media.Subscription{Start: at(1, uint64(first))}, new(wakeups))
		defer reader.Close()
		w, err := c.Group(1, 0)
		if err != nil {
			rt.Fatal(err)
		}
		g, err := reader.Next()
		if g == nil || g.FirstFrame() != uint64(first) {
			rt.Fatalf("no group from frame %d: %v", first, err)
		}
		defer g.Close()
		var all []media.Frame
		var got, legacy, scratch []byte
		frames, sum := 0, 0
		poll := func() error {
			b, err := g.Poll()
			if b.Frames() > 0 {
				got = append(got, b.Bytes()...)
				legacy = append(legacy, b.Legacy(&scratch)...)
				frames += b.Frames()
				sum += b.PayloadBytes()
			}
			return err
		}
		for i := range n {
			f := media.Frame{
				Timestamp: rapid.Uint64Range(0, wire.MaxZigzag).Draw(rt, "ts"),
				Payload:   bytes.Repeat([]byte{byte(i)}, size.Draw(rt, "size")),
			}
			all = append(all, f)
			if err := w.WriteFrame(f.Timestamp, f.Payload); err != nil {
				rt.Fatal(err)
			}
			if rapid.Bool().Draw(rt, "read") {
				if err := poll(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		w.Finish()
		for err = nil; err == nil; {
			err = poll()
		}
		if !errors.Is(err, io.EOF) {
			rt.Fatal(err)
		}
		want := 0
		for _, f := range all[first:] {
			want += len(f.Payload)
		}
		if frames != n-first || sum != want {
			rt.Errorf("%d frames of %d bytes, want %d of %d", frames, sum, n-first, want)
		}
		if !bytes.Equal(got, encode(all[first:], true)) {
			rt.Errorf("wire form of 05 and 06 is wrong")
		}
		if !bytes.Equal(legacy, encode(all[first:], false)) {
			rt.Errorf("wire form of 01 to 04 is wrong")
		}
	})
}

// TestWireVector is the group of the worked example (moq-lite 13).
func TestWireVector(t *testing.T) {
	r := newRig(t)
	w, err := r.track.NewCopy(nil).Group(7, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []media.Frame{{Timestamp: 1000, Payload: []byte("key")}, {Timestamp: 1033, Payload: []byte("d1")}} {
		if err := w.WriteFrame(f.Timestamp, f.Payload); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := r.fetch(7, 0)
	b, err := g.Poll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte("\x47\xd0\x03key\x40\x42\x02d1"), b.Bytes()); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	var scratch []byte
	if diff := cmp.Diff([]byte("\x03key\x02d1"), b.Legacy(&scratch)); diff != "" {
		t.Errorf("legacy bytes (-want +got):\n%s", diff)
	}
}

// TestBatchesAreShared: a batch stays valid when the group goes on and goes away, and reading copies nothing.
func TestBatchesAreShared(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	s := r.open(c, 1, 0).send(3)
	g1, _ := r.fetch(1, 0)
	g2, _ := r.fetch(1, 0)
	b1, _ := g1.Poll()
	b2, _ := g2.Poll()
	if &b1.Bytes()[0] != &b2.Bytes()[0] {
		t.Error("two readers got different buffers")
	}
	before := bytes.Clone(b1.Bytes())
	s.send(300)
	r.track.Close(errors.New("over"))
	if !bytes.Equal(before, b1.Bytes()) || cap(b1.Bytes()) != len(b1.Bytes()) {
		t.Error("the batch has changed, or can be appended to in place")
	}
}

// TestAbsoluteTooLarge: a timestamp that only differences reach cannot be the first on a stream.
func TestAbsoluteTooLarge(t *testing.T) {
	r := newRig(t)
	w, err := r.track.NewCopy(nil).Group(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, ts := range []uint64{1<<61 - 1, 1<<62 - 2} {
		if err := w.WriteFrame(ts, nil); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := r.fetch(1, 1)
	if _, err := g.Poll(); !errors.Is(err, media.ErrMalformed) {
		t.Errorf("from frame 1: %v, want ErrMalformed", err)
	}
	g, _ = r.fetch(1, 0)
	if b, err := g.Poll(); err != nil || b.Frames() != 2 {
		t.Errorf("from frame 0: %d frames, %v", b.Frames(), err)
	}
}

func TestReadFrame(t *testing.T) {
	r := newRig(t)
	r.whole(r.track.NewCopy(nil), 1, 3)
	g, _ := r.fetch(1, 1)
	w := media.NewWaiter()
	for i := uint64(1); i < 3; i++ {
		f, err := g.ReadFrame(w)
		if err != nil || string(f.Payload) != string(payload(1, i)) || f.Timestamp != 1000+100*i {
			t.Errorf("frame %d: %+v, %v", i, f, err)
		}
	}
	if _, err := g.ReadFrame(w); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}
