package media_test

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/media"
)

// stamps reads the timestamps of a group.
func stamps(t *testing.T, r *rig, seq uint64) []uint64 {
	t.Helper()
	g, fetch := r.track.Fetch(seq, 0)
	if fetch != nil {
		t.Fatalf("group %d is not cached", seq)
	}
	defer g.Close()
	w := media.NewWaiter()
	var out []uint64
	for {
		f, err := g.ReadFrame(w)
		if err != nil {
			return out
		}
		out = append(out, f.Timestamp)
	}
}

// A copy with another clock goes on where the track is, by the time passed since (F24).
func TestForeignClock(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, other float64 // seconds that the clocks of the two copies are ahead of the rig's
	}{
		{"a publisher's clock, then the time of receipt", 0, 1_700_000_000},
		{"the time of receipt, then a publisher's clock", 1_700_000_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			a := r.track.NewCopy(nil)
			v := r.view(sub(2))
			r.open(a, 7, 0).sendAt(c.first+7, c.first+7.5)
			r.open(a, 8, 0).sendAt(c.first+8, c.first+8.1)
			v.read()
			r.pass(500 * time.Millisecond)
			b := r.track.NewCopy(nil)
			b.Foreign()
			b.Ask(sub(2))
			a.Close()
			// The known frames of group 7 come again: they are no measure.
			r.open(b, 7, 0).sendAt(c.other, c.other+1, c.other+2).fin()
			r.open(b, 8, 0).sendAt(c.other+9, c.other+9, c.other+2.1, c.other+2.2).fin()
			r.open(b, 9, 0).sendAt(c.other + 3).fin()
			for seq, n := range map[uint64]int{7: 3, 8: 4, 9: 1} {
				v.read().complete(seq, n)
			}
			base := c.first + 8.6
			for seq, want := range map[uint64][]uint64{
				7: {ms(c.first + 7), ms(c.first + 7.5), ms(base)},
				8: {ms(c.first + 8), ms(c.first + 8.1), ms(base + .1), ms(base + .2)},
				9: {ms(base + 1)},
			} {
				got := stamps(t, r, seq)
				if len(got) != len(want) {
					t.Fatalf("group %d: %v, want %v", seq, got, want)
				}
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("frame %d of group %d: %d, want %d", i, seq, got[i], want[i])
					}
				}
			}
		})
	}
}

// Without anything to go on from, the clock of a copy is taken as it is; what lies outside of the range is cut.
func TestForeignClockAlone(t *testing.T) {
	r := newRig(t)
	a := r.track.NewCopy(nil)
	a.Foreign()
	r.open(a, 1, 0).sendAt(5).fin()
	if got := stamps(t, r, 1); len(got) != 1 || got[0] != ms(5) {
		t.Errorf("group 1: %v", got)
	}
	b := r.track.NewCopy(nil)
	b.Foreign()
	r.open(b, 2, 0).sendAt(1000, 0).fin()
	if got := stamps(t, r, 2); len(got) != 2 || got[0] != ms(5) || got[1] != 0 {
		t.Errorf("group 2: %v", got)
	}
}
