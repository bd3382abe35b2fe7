package media

import (
	"errors"
	"testing"
	"time"
)

// TestDebt is the debt rule (F13): written x used / capacity, twice for a track whose oldest group is staler than the
// average, nothing within the capacity.
func TestDebt(t *testing.T) {
	cache := NewCache(CacheConfig{})
	now := time.Now()
	cache.Sweep(now)
	write := func(track *Track, seq uint64, sizes ...int) {
		t.Helper()
		w, err := track.copies[0].Group(seq, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range sizes {
			if err := w.WriteFrame(0, make([]byte, n)); err != nil {
				t.Fatal(err)
			}
		}
		w.Finish()
	}
	var tracks []*Track
	for range 2 {
		track := cache.NewTrack(Info{MaxAge: Unlimited})
		track.NewCopy(nil)
		defer track.Close(errors.New("over"))
		tracks = append(tracks, track)
	}
	stale, fresh := tracks[0], tracks[1]
	write(stale, 0, 1<<20)
	cache.Sweep(now.Add(time.Second))
	write(fresh, 0, 1<<20)
	write(stale, 1)
	write(fresh, 1)
	if stale.debt != 0 || fresh.debt != 0 {
		t.Fatal("an unbounded cache owes nothing")
	}
	cache.Resize(1 << 20)
	const n = 1000
	write(stale, 2, n)
	write(fresh, 2, n)
	// used / capacity is a little above 2, and the overhead of the new group counts as written.
	once := int64(2 * (n + groupOverhead + frameOverhead))
	check := func(name string, got, want int64) {
		t.Helper()
		if got < want || got > want+want/50 {
			t.Errorf("%s track owes %d, want about %d", name, got, want)
		}
	}
	check("stale", stale.debt, 2*once)
	check("fresh", fresh.debt, once)
	cache.Resize(1 << 30)
	write(stale, 3, 1)
	if stale.debt != 0 {
		t.Errorf("within the capacity it owes %d", stale.debt)
	}
}
