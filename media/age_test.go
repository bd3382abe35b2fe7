package media_test

import (
	"errors"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

// held hands out group seq and leaves it unread, as a blocked sender does.
func held(t *testing.T, r *media.Reader) *media.GroupReader {
	t.Helper()
	g, err := r.Next()
	if g == nil {
		t.Fatalf("no group: %v", err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestAgeX10X11(t *testing.T) {
	for _, tt := range []struct {
		name   string
		maxAge float64
		kept   []float64 // frames of 8 during which 7 stays
		old    float64   // the one that condemns it
	}{
		{"X10", 0, nil, 12},
		{"X11", 2, []float64{12, 12.1, 13.999}, 14},
		{"retention caps the budget", 30, []float64{12, 21.999}, 22},
		{"below zero counts as zero", -1, nil, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			c := r.track.NewCopy(nil)
			var w wakeups
			reader := r.track.NewReader(sub(tt.maxAge), &w)
			late := r.track.NewReader(sub(tt.maxAge), new(wakeups)) // looks only at the end
			defer reader.Close()
			defer late.Close()
			seven := r.open(c, 7, 0).sendAt(10, 11.9)
			g := held(t, reader)
			eight := r.open(c, 8, 0)
			w.woken()
			for _, ts := range tt.kept {
				eight.sendAt(ts)
				if g.TooOld() || w.woken() {
					t.Fatalf("too old at %v", ts)
				}
			}
			eight.sendAt(tt.old)
			if !g.TooOld() || !w.woken() {
				t.Fatalf("not too old at %v, or its reader was not told", tt.old)
			}
			seven.fin()
			if eight := held(t, late); eight.Sequence() != 8 {
				t.Fatalf("group %d, want 8", eight.Sequence())
			}
			if g, err := late.Next(); g != nil || err != nil {
				t.Fatalf("a group that was too old before it was started must be skipped: %v, %v", g, err)
			}
		})
	}
}

func TestAgeX12(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	v := r.view(sub(1))
	r.open(c, 7, 0).sendAt(10)
	v.read()
	eight := r.open(c, 8, 0)
	r.open(c, 9, 0).sendAt(14, 20)
	g := v.read().open[7]
	if g.TooOld() {
		t.Error("a successor without a timestamp protects")
	}
	eight.sendAt(12)
	if !g.TooOld() {
		t.Error("8 has a timestamp now: 20 - 12 >= 1")
	}
}

func TestAgeX13(t *testing.T) {
	begin := func() (r *rig, c *media.Copy, eight *stream, g *media.GroupReader) {
		r = newRig(t)
		c = r.track.NewCopy(nil)
		v := r.view(sub(1))
		r.open(c, 7, 0).sendAt(10)
		eight = r.open(c, 8, 0).sendAt(13)
		return r, c, eight, v.read().open[7]
	}
	r, c, _, g := begin()
	r.open(c, 9, 0).sendAt(14, 14.5)
	if !g.TooOld() {
		t.Error("control: with 8 alive, 14.5 - 13 >= 1")
	}
	r, c, eight, g := begin()
	eight.w.Abort(media.ErrOld)
	r.pass(2 * time.Second) // nobody can deliver it
	nine := r.open(c, 9, 0).sendAt(14, 14.5)
	if g.TooOld() {
		t.Error("the successor of 7 is 9 now: 14.5 - 14 < 1")
	}
	nine.sendAt(15.5)
	if !g.TooOld() {
		t.Error("15.5 - 14 >= 1")
	}
}

func TestAgeX14(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	for seq := uint64(1); seq <= 30; seq++ {
		r.open(c, seq, 0).sendAt(float64(seq), float64(seq)+0.5).fin()
	}
	r1, r2 := r.view(sub(0)).read(), r.view(sub(5)).read()
	r1.got(30)
	r2.got(30, 29, 28, 27, 26, 25)
	r1.start(30)
	r2.start(25)
}

func TestAgeRewind(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	v := r.view(sub(0))
	r.open(c, 7, 0).sendAt(100).fin()
	r.open(c, 8, 0).sendAt(101).fin()
	v.read()
	r.open(c, 9, 0).sendAt(3)
	if got := r.track.Cached(); len(got) != 3 {
		t.Fatalf("cached %v: rewinding timestamps never condemn", got)
	}
	// 8 has a successor from 3 on, and 7 shares it once 8 is gone.
	r.open(c, 10, 0).sendAt(13)
	if got := r.track.Cached(); len(got) != 2 {
		t.Errorf("cached %v, want 9 and 10: memory must not grow after a rewind", got)
	}
}

// TestAgeRange: groups that a reader cannot be served say nothing about its age.
func TestAgeRange(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	bounded := sub(0)
	bounded.End = at(9, 0)
	v := r.view(bounded)
	r.open(c, 8, 0).sendAt(8)
	r.open(c, 9, 0).sendAt(9, 12)
	g := v.read().open[8]
	if v.got(8); g.TooOld() {
		t.Error("8 is the newest group in the reader's range")
	}
	v.reader.Update(sub(0))
	if !g.TooOld() {
		t.Error("without an end, 9 makes it too old")
	}
}

// TestAgeRangeAlarm: the edge of a reader with an end may move although it is not the live edge.
func TestAgeRangeAlarm(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	bounded := sub(2)
	bounded.End = at(9, 0)
	v := r.view(bounded)
	r.open(c, 7, 0).sendAt(7)
	eight := r.open(c, 8, 0).sendAt(8)
	v.read()
	r.open(c, 9, 0).sendAt(9, 17)
	v.woken()
	eight.sendAt(9.9)
	if v.woken() || v.open[7].TooOld() {
		t.Error("9.9 - 8 < 2")
	}
	eight.sendAt(10)
	if !v.woken() || !v.open[7].TooOld() {
		t.Error("10 - 8 >= 2, and nobody was told")
	}
}

// TestAgeAlarm: a reader is told once per group, when its own budget is used up, whatever others have.
func TestAgeAlarm(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	var views []*viewer
	for _, age := range []float64{3, 1, 2, 1} {
		views = append(views, r.view(sub(age)))
	}
	r.open(c, 1, 0).sendAt(1)
	for _, v := range views {
		v.read()
	}
	two := r.open(c, 2, 0).sendAt(2)
	for _, v := range views {
		v.read()
		v.woken()
	}
	for _, step := range []struct {
		ts   float64
		want [4]bool
	}{
		{2.9, [4]bool{}},
		{3, [4]bool{false, true, false, true}},
		{3.5, [4]bool{}},
		{4, [4]bool{false, false, true, false}},
		{5, [4]bool{true, false, false, false}},
		{6, [4]bool{}},
	} {
		two.sendAt(step.ts)
		for i, v := range views {
			if got := v.woken(); got != step.want[i] {
				t.Errorf("at %v: reader %d woken = %v", step.ts, i, got)
			}
		}
	}
}

func TestRetention(t *testing.T) {
	r := newRigWith(t, media.CacheConfig{MaxAge: 2 * time.Second}, 10*time.Second)
	if got := r.track.Info().MaxAge; got != 2*time.Second {
		t.Fatalf("retention %v, want the cap (F12)", got)
	}
	c := r.track.NewCopy(nil)
	v := r.view(sub(60))
	r.open(c, 1, 0).sendAt(1)
	r.open(c, 2, 0).sendAt(2).fin()
	g := v.read().open[1]
	for seq := uint64(3); seq < 1000; seq++ {
		r.open(c, seq, 0).sendAt(float64(seq)).fin()
	}
	if got := len(r.track.Cached()); got != 3 {
		t.Errorf("%d groups cached, want 3", got)
	}
	if _, err := g.Poll(); err != nil {
		t.Errorf("a reader that holds a group keeps it, as long as it is fed: %v", err)
	}
	if _, err := c.Group(500, 0); err != nil && !errors.Is(err, media.ErrDuplicate) {
		t.Errorf("group 500: %v", err)
	}
	other := r.track.NewCopy(nil)
	if _, err := other.Group(500, 0); !errors.Is(err, media.ErrOld) {
		t.Errorf("group 500 of another copy: %v, want ErrOld", err)
	}
	if want := int64(3+1) * (media.GroupOverhead + media.FrameOverhead); r.cache.Stats().Bytes > want+20 {
		t.Errorf("%d bytes accounted, want about %d", r.cache.Stats().Bytes, want)
	}
}

// TestNobodyWantsIt: a writer learns when the last reader has let go of a group beyond the window.
func TestNobodyWantsIt(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	v := r.view(sub(60))
	one := r.open(c, 1, 0).sendAt(1)
	g := v.read().open[1]
	r.open(c, 2, 0).sendAt(2)
	r.open(c, 20, 0).sendAt(20)
	one.sendAt(1.5) // still held
	g.Close()
	delete(v.open, 1)
	if err := one.write(1600); !errors.Is(err, media.ErrOld) {
		t.Errorf("write = %v, want ErrOld", err)
	}
}
