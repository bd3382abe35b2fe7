package media_test

import (
	"testing"

	"github.com/moqmesh/moqmesh/media"
)

// TestLeft: what a reader has not taken of a group, and frames that a second copy brings again.
func TestLeft(t *testing.T) {
	r := newRig(t)
	a, b := r.track.NewCopy(nil), r.track.NewCopy(nil)
	v := r.view(any2)
	s := r.open(a, 4, 0).send(3)
	g, err := v.reader.Next()
	if err != nil || g == nil {
		t.Fatal(g, err)
	}
	defer g.Close()
	frames, bytes := g.Left()
	if frames != 3 || bytes == 0 {
		t.Errorf("%d frames, %d bytes left", frames, bytes)
	}
	batch, err := g.Next(media.NewWaiter())
	if err != nil || batch.PayloadBytes() != bytes {
		t.Errorf("%d bytes came of %d, %v", batch.PayloadBytes(), bytes, err)
	}
	if frames, bytes = g.Left(); frames != 0 || bytes != 0 {
		t.Errorf("%d frames, %d bytes left", frames, bytes)
	}
	s.send(1)
	if frames, _ = g.Left(); frames != 1 {
		t.Errorf("%d frames left", frames)
	}
	r.open(b, 4, 0).send(4)
	if n := r.cache.Stats().Repeated; n != 4 {
		t.Errorf("%d frames came again", n)
	}
}
