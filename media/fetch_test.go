package media_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

// frames polls all that is there.
func frames(t *testing.T, g *media.GroupReader) (payloads []string, err error) {
	t.Helper()
	for {
		b, err := g.Poll()
		if err != nil || b.Frames() == 0 {
			return payloads, err
		}
		for i := range b.Frames() {
			payloads = append(payloads, string(b.Frame(i).Payload))
		}
	}
}

func wantFrames(t *testing.T, g *media.GroupReader, first, n uint64, end error) {
	t.Helper()
	got, err := frames(t, g)
	if !errors.Is(err, end) || uint64(len(got)) != n {
		t.Errorf("%d frames, then %v; want %d, then %v", len(got), err, n, end)
		return
	}
	for i, p := range got {
		if p != string(payload(g.Sequence(), first+uint64(i))) {
			t.Errorf("frame %d is %q", i, p)
		}
	}
}

func (r *rig) fetch(seq, frame uint64) (*media.GroupReader, *media.Fetch) {
	g, f := r.track.Fetch(seq, frame)
	r.t.Cleanup(g.Close)
	return g, f
}

func TestFetchCached(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	r.whole(a, 4, 5)
	open := r.open(a, 5, 0).send(2)
	g, f := r.fetch(4, 3)
	if f != nil || g.FirstFrame() != 3 {
		t.Fatal("4 is cached")
	}
	wantFrames(t, g, 3, 2, io.EOF)
	g, _ = r.fetch(4, 9)
	wantFrames(t, g, 9, 0, io.EOF)
	g, _ = r.fetch(4, 1)
	g.Limit(3)
	wantFrames(t, g, 1, 2, io.EOF)
	g, f = r.fetch(5, 1)
	if f != nil {
		t.Fatal("5 is being fed")
	}
	wantFrames(t, g, 1, 1, nil)
	open.send(1)
	wantFrames(t, g, 2, 1, nil)
	r.open(a, 6, 0).send(1)
	r.open(a, 8, 0).send(1)
	if g.TooOld() {
		t.Error("a fetch is exempt from age (F10)")
	}
	a.Close()
	if _, f := r.fetch(5, 0); f == nil {
		t.Error("a parked group is a miss (F41)")
	} else {
		f.Close(nil)
	}
}

// TestX43X44: requests are merged, and a fetch follows a route switch.
func TestX43X44(t *testing.T) {
	r := newRig(t)
	g0, f := r.fetch(4, 0)
	if f == nil || f.Group() != 4 || f.Frame() != 0 {
		t.Fatal("nothing is cached")
	}
	g3, again := r.fetch(4, 3)
	if again != nil {
		t.Fatal("the running fetch covers it")
	}
	w := f.Writer(0)
	send := func(w *media.GroupWriter, first, n uint64) {
		t.Helper()
		for i := range n {
			if err := w.WriteFrame(1000+first+i, payload(4, first+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(w, 0, 2)
	wantFrames(t, g0, 0, 2, nil)
	wantFrames(t, g3, 3, 0, nil)
	w.Abort(errors.New("session lost"))
	if f.Frame() != 2 {
		t.Errorf("asks again from %d, want 2", f.Frame())
	}
	r.pass(5 * time.Second)
	w = f.Writer(0) // moq-lite 05: whole
	send(w, 0, 5)
	w.Finish()
	if !f.Complete() {
		t.Error("not complete")
	}
	f.Close(nil)
	wantFrames(t, g0, 2, 3, io.EOF)
	wantFrames(t, g3, 3, 2, io.EOF)
	g, f := r.fetch(4, 1)
	if f != nil {
		t.Error("what was fetched is cached")
	}
	wantFrames(t, g, 1, 4, io.EOF)

	// It does not count as delivered (F41).
	v := r.view(from(10, at(0, 0)))
	if p := r.track.Lacking(any2); p != nil {
		t.Errorf("lacking %v, want the aggregate", p)
	}
	a := r.track.NewCopy(nil)
	a.Start(0)
	v.read().got()
	r.whole(a, 4, 1) // and is no duplicate for copies
	v.read().got(4)
}

func TestFetchBelow(t *testing.T) {
	r := newRig(t)
	g3, f3 := r.fetch(4, 3)
	g0, f0 := r.fetch(4, 0)
	if f3 == nil || f0 == nil {
		t.Fatal("a request below a running fetch gets its own")
	}
	w := f3.Writer(0) // known frames are dropped, and so are those not wanted
	for i := range uint64(5) {
		if err := w.WriteFrame(i, payload(4, i)); err != nil {
			t.Fatal(err)
		}
	}
	w.Finish()
	wantFrames(t, g3, 3, 2, io.EOF)
	f3.Close(nil)
	f0.Close(media.ErrNotFound)
	wantFrames(t, g0, 0, 0, media.ErrNotFound)
	if _, f := r.fetch(4, 4); f != nil {
		t.Error("the complete one stays")
	}
	if _, f := r.fetch(4, 0); f == nil {
		t.Error("the failed one does not")
	}
}

func TestFetchUnwanted(t *testing.T) {
	r := newRig(t)
	g1, f := r.track.Fetch(4, 0)
	g2, _ := r.track.Fetch(4, 0)
	g1.Close()
	g1.Close()
	select {
	case <-f.Unwanted():
		t.Fatal("unwanted while one reads")
	default:
	}
	g2.Close()
	<-f.Unwanted()
	g3, f3 := r.track.Fetch(4, 0)
	if f3 == nil {
		t.Error("nobody may join a fetch that is being given up")
	}
	f.Close(media.ErrCancelled)
	if err := f.Writer(0).WriteFrame(0, nil); !errors.Is(err, media.ErrCancelled) {
		t.Errorf("write after close = %v", err)
	}
	g3.Close()
	f3.Close(nil)
	if s := r.cache.Stats(); s.Bytes != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestFetchShort(t *testing.T) {
	r := newRig(t)
	g, f := r.fetch(4, 3)
	w := f.Writer(0)
	if err := w.WriteFrame(0, nil); err != nil {
		t.Fatal(err)
	}
	w.Finish() // the group has one frame
	wantFrames(t, g, 3, 0, io.EOF)
	f.Close(nil)

	g, f = r.fetch(5, 0)
	w = f.Writer(0)
	for i := range uint64(3) {
		if err := w.WriteFrame(0, payload(5, i)); err != nil {
			t.Fatal(err)
		}
	}
	w.Abort(io.ErrUnexpectedEOF)
	w = f.Writer(0)
	w.Finish() // another source has less than the first one brought (F32)
	if f.Complete() {
		t.Error("a short end counted")
	}
	f.Close(nil)
	wantFrames(t, g, 0, 0, media.ErrNotFound)
}

func TestFetchLimit(t *testing.T) {
	r := newRig(t)
	var running []*media.Fetch
	for seq := range uint64(media.MaxFetches) {
		g, f := r.fetch(seq, 0)
		if f == nil {
			t.Fatal(frames(t, g))
		}
		running = append(running, f)
	}
	if g, f := r.fetch(5000, 0); f != nil {
		t.Error("no limit")
	} else if _, err := g.Poll(); !errors.Is(err, media.ErrBusy) {
		t.Errorf("at the limit: %v", err)
	}
	g, _ := r.track.Fetch(7, 0)
	g.Close()
	running[7].Writer(0).Finish()
	if _, f := r.fetch(5000, 0); f != nil {
		t.Error("a complete one that is still read must stay")
	}
	for _, f := range running {
		f.Close(media.ErrNotFound)
	}
	if _, f := r.fetch(5000, 0); f == nil {
		t.Error("there is room again")
	}
}

func TestFetchIdle(t *testing.T) {
	r := newRig(t)
	g, f := r.track.Fetch(4, 0)
	w := f.Writer(0)
	if err := w.WriteFrame(0, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	w.Finish()
	f.Close(nil)
	g.Close()
	if b := r.cache.Stats().Bytes; b != 100+media.FrameOverhead+media.GroupOverhead {
		t.Errorf("%d bytes accounted", b)
	}
	r.pass(32 * time.Second)
	if b := r.cache.Stats().Bytes; b != 0 {
		t.Errorf("%d bytes accounted", b)
	}
	if g, f := r.fetch(4, 0); f == nil {
		t.Error("still cached")
	} else {
		g.Close()
	}
}
