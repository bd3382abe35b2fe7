package media_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
)

// fill writes one complete group of n payload bytes at media time ts.
func fill(tb testing.TB, c *media.Copy, seq, ts uint64, n int) {
	tb.Helper()
	w, err := c.Group(seq, 0)
	if err != nil {
		tb.Fatalf("group %d: %v", seq, err)
	}
	for ; n > 0; n -= 1 << 10 {
		if err := w.WriteFrame(ts, make([]byte, min(n, 1<<10))); err != nil {
			tb.Fatalf("group %d: %v", seq, err)
		}
	}
	w.Finish()
}

// TestPressure: the cache limit with one quiet catalogue and 20 busy tracks (faults: pressure evicts the live edge).
func TestPressure(t *testing.T) {
	const capacity, group = 8 << 20, 64 << 10
	r := newRigWith(t, media.CacheConfig{Capacity: capacity}, time.Hour)
	catalogue := r.track.NewCopy(nil)
	fill(t, catalogue, 0, 0, 300)
	fill(t, catalogue, 1, 0, 300)
	var tracks []*media.Track
	var copies []*media.Copy
	for range 20 {
		track := r.cache.NewTrack(media.Info{MaxAge: time.Hour, Timescale: 1000})
		defer track.Close(errors.New("over"))
		tracks, copies = append(tracks, track), append(copies, track.NewCopy(nil))
	}
	for seq := range uint64(40) {
		r.pass(250 * time.Millisecond)
		for _, c := range copies {
			fill(t, c, seq, seq, group)
		}
	}
	if used := r.cache.Stats().Bytes; used > capacity*11/10 || used < capacity/2 {
		t.Errorf("%d bytes used, want about %d", used, capacity)
	}
	if diff := cmp.Diff([]uint64{0, 1}, r.track.Cached()); diff != "" {
		t.Errorf("the quiet track paid for others (-want +got):\n%s", diff)
	}
	for i, track := range tracks {
		cached := track.Cached()
		if len(cached) == 0 || cached[len(cached)-1] != 39 {
			t.Errorf("track %d has lost its newest group: %v", i, cached)
		}
	}
	if r.cache.Stats().Evicted == 0 {
		t.Error("nothing was counted as evicted")
	}
	// Shrinking is paid for as tracks write on.
	r.cache.Resize(capacity / 2)
	for seq := range uint64(20) {
		for _, c := range copies {
			fill(t, c, 40+seq, 40, group)
		}
	}
	if used := r.cache.Stats().Bytes; used > capacity*6/10 {
		t.Errorf("%d bytes used after shrinking to %d", used, capacity/2)
	}
}

// TestEvictedUnderReader: a reader inside an evicted group loses that group only (F14), and it can be fetched again.
func TestEvictedUnderReader(t *testing.T) {
	r := newRigWith(t, media.CacheConfig{Capacity: 40 << 10}, time.Hour)
	c := r.track.NewCopy(nil)
	reader := r.track.NewReader(from(3600, at(0, 0)), new(wakeups))
	defer reader.Close()
	one, err := c.Group(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	g := held(t, reader)
	r.pass(time.Second)
	for seq := uint64(1); seq < 20; seq++ {
		fill(t, c, seq, 0, 8<<10)
	}
	if _, err := g.Poll(); !errors.Is(err, media.ErrEvicted) {
		t.Errorf("the reader of an evicted group sees %v", err)
	}
	if err := one.WriteFrame(0, nil); !errors.Is(err, media.ErrEvicted) {
		t.Errorf("its writer sees %v", err)
	}
	if g := held(t, reader); g.Sequence() != 19 {
		t.Errorf("next group is %d, want 19", g.Sequence())
	}
	g, f := r.track.Fetch(0, 0)
	if f == nil {
		t.Error("an evicted group must be fetched upstream")
	}
	g.Close()
	f.Close(nil)
}

// TestLeastRecentlyUsed: what is read stays, what nobody reads goes first.
func TestLeastRecentlyUsed(t *testing.T) {
	r := newRigWith(t, media.CacheConfig{Capacity: 64 << 10}, time.Hour)
	c := r.track.NewCopy(nil)
	for seq := range uint64(6) {
		fill(t, c, seq, 0, 8<<10)
	}
	r.pass(time.Second)
	g, _ := r.track.Fetch(0, 0)
	if _, err := g.Poll(); err != nil {
		t.Fatal(err)
	}
	g.Close()
	r.pass(time.Second)
	for seq := uint64(6); seq < 9; seq++ {
		fill(t, c, seq, 0, 8<<10)
	}
	cached := r.track.Cached()
	if len(cached) == 0 || cached[0] != 0 || cached[1] == 1 {
		t.Errorf("cached %v, want 0, which was read, to outlive 1", cached)
	}
}

func TestIdle(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	fill(t, c, 1, 1000, 100)
	fill(t, c, 2, 1000, 100)
	r.pass(20 * time.Second)
	fill(t, c, 3, 1000, 100)
	g, _ := r.track.Fetch(1, 0)
	if _, err := g.Poll(); err != nil {
		t.Fatal(err)
	}
	g.Close()
	check := func(want ...uint64) {
		t.Helper()
		if diff := cmp.Diff(want, r.track.Cached()); diff != "" {
			t.Errorf("cached (-want +got):\n%s", diff)
		}
	}
	r.pass(9 * time.Second)
	check(1, 2, 3)
	r.pass(2 * time.Second)
	check(1, 3)
	r.pass(time.Minute)
	check(3) // the newest of a track with a live copy
	c.Close()
	r.pass(29 * time.Second)
	check(3)
	r.pass(2 * time.Second)
	check()
	if s := r.cache.Stats(); s.Bytes != 0 || s.Groups != 0 || s.Evicted != 3 {
		t.Errorf("stats %+v", s)
	}
}

// TestBulk: bulk traffic within the retention window, and beyond it, does not grow the cache.
func TestBulk(t *testing.T) {
	r := newRig(t)
	c := r.track.NewCopy(nil)
	v := r.view(sub(1))
	for seq := range uint64(5000) {
		fill(t, c, seq, seq*10, 1000)
		v.read()
	}
	if n := len(r.track.Cached()); n < 1000 || n > 1002 {
		t.Errorf("%d groups cached, want the 1000 of 10 s and the newest", n)
	}
}

// TestMaxGroups: a track whose groups never age stays bounded.
func TestMaxGroups(t *testing.T) {
	r := newRigWith(t, media.CacheConfig{}, media.Unlimited)
	c := r.track.NewCopy(nil)
	for seq := range uint64(media.MaxGroups + 10) {
		w, err := c.Group(100+seq, 0)
		if err != nil {
			t.Fatal(err)
		}
		w.Finish()
	}
	if n := len(r.track.Cached()); n != media.MaxGroups {
		t.Errorf("%d groups cached, want %d", n, media.MaxGroups)
	}
	if _, err := c.Group(5, 0); !errors.Is(err, media.ErrOld) {
		t.Errorf("a group below all of a full track: %v", err)
	}
}

// TestLiveEdgeStays: the newest group of a live track is never evicted, however large it is and however tight the cache.
func TestLiveEdgeStays(t *testing.T) {
	r := newRigWith(t, media.CacheConfig{Capacity: 10 << 10}, time.Hour)
	c := r.track.NewCopy(nil)
	fill(t, c, 1, 0, 5<<10)
	w, err := c.Group(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := w.WriteFrame(0, make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]uint64{2}, r.track.Cached()); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
}

// TestPaymentLimit: one write pays at most twice what it brought, so that a small one never dumps a deep backlog.
func TestPaymentLimit(t *testing.T) {
	const size = 1 << 10
	r := newRigWith(t, media.CacheConfig{}, time.Hour)
	c := r.track.NewCopy(nil)
	for seq := range uint64(100) {
		fill(t, c, seq, 0, size)
	}
	r.cache.Resize(size)
	before := len(r.track.Cached())
	for seq := uint64(100); before > 10; seq++ {
		fill(t, c, seq, 0, size)
		now := len(r.track.Cached())
		if gone := before + 1 - now; gone < 2 || gone > 4 {
			t.Fatalf("one group of %d bytes evicted %d others", size, gone)
		}
		before = now
	}
}
