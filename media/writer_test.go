package media_test

import (
	"errors"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

func TestWriteErrors(t *testing.T) {
	big := make([]byte, media.MaxFrameBytes+1)
	for _, tt := range []struct {
		name  string
		write func(*media.GroupWriter) error
		want  error
		fails bool // for readers, at once
	}{
		{"timestamp", func(w *media.GroupWriter) error { return w.WriteFrame(1<<62, nil) }, media.ErrMalformed, false},
		{"difference", func(w *media.GroupWriter) error { return w.WriteFrame(1<<61, nil) }, media.ErrMalformed, true},
		{"frame", func(w *media.GroupWriter) error { return w.WriteFrame(0, big) }, media.ErrFrameTooLarge, false},
		{"group", func(w *media.GroupWriter) error {
			if err := w.WriteFrame(0, big[:media.MaxGroupBytes]); err != nil {
				return err
			}
			return w.WriteFrame(0, big[:1])
		}, media.ErrGroupTooLarge, true},
		{"frames", func(w *media.GroupWriter) error {
			for range media.MaxGroupFrames {
				if err := w.WriteFrame(0, nil); err != nil {
					return err
				}
			}
			return w.WriteFrame(0, nil)
		}, media.ErrGroupTooLarge, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			c := r.track.NewCopy(nil)
			reader := r.track.NewReader(any2, new(wakeups))
			defer reader.Close()
			w, err := c.Group(1, 0)
			if err != nil {
				t.Fatal(err)
			}
			g := held(t, reader)
			if err := tt.write(w); !errors.Is(err, tt.want) {
				t.Fatalf("write = %v, want %v", err, tt.want)
			}
			if err := w.WriteFrame(0, nil); !errors.Is(err, tt.want) {
				t.Errorf("the next write = %v, want %v again", err, tt.want)
			}
			w.Finish() // does nothing
			if _, err := g.Poll(); errors.Is(err, tt.want) != tt.fails {
				t.Errorf("the reader sees %v", err)
			}
			r.pass(2 * time.Second)
			if _, err := g.Poll(); !errors.Is(err, tt.want) {
				t.Errorf("after a second the reader sees %v, want %v", err, tt.want)
			}
			if b := r.cache.Stats().Bytes; b != 0 {
				t.Errorf("%d bytes are still accounted", b)
			}
		})
	}
}

// TestHeldLimit: frames that wait for others count like those that are there.
func TestHeldLimit(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	w, err := c.Group(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFrame(0, make([]byte, media.MaxGroupBytes)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFrame(0, make([]byte, 1)); !errors.Is(err, media.ErrGroupTooLarge) {
		t.Errorf("write = %v, want ErrGroupTooLarge", err)
	}
}
