//go:build interop

package interop

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestManyBroadcasts announces 2,000 broadcasts at one end of a chain and withdraws them; everybody at the other end
// sees each of them come and go once.
func TestManyBroadcasts(t *testing.T) {
	const count = 2000
	relays := drive.Chain(t, 3)
	var watchers []*drive.Process
	for _, v := range []peer{js05, js04, jsMoql, rustQUIC, rustWT} {
		watchers = append(watchers, v.run(t, relays[2], "announced", "many", "--seconds", "60"))
	}
	time.Sleep(2 * time.Second)
	pub := script(t, relays[0], "many.py", relays[0].MOQT(), "--seconds", "8")
	pub.Expect(t, "published", 20*time.Second)
	for _, w := range watchers {
		drive.WaitFor(t, 20*time.Second, w.Name+" sees all", func() bool { return distinct(w, "announced") == count })
	}
	pub.Expect(t, "withdrawn", 20*time.Second)
	for _, w := range watchers {
		drive.WaitFor(t, 20*time.Second, w.Name+" sees them go", func() bool { return distinct(w, "withdrawn") == count })
		if n := len(w.Find("announced")); n != count {
			t.Errorf("%s: %d announcements of %d names", w.Name, n, count)
		}
		if n := len(w.Find("withdrawn")); n != count {
			t.Errorf("%s: %d withdrawals of %d names", w.Name, n, count)
		}
	}
}

func distinct(p *drive.Process, name string) int {
	seen := map[any]bool{}
	for _, e := range p.Find(name) {
		seen[e["path"]] = true
	}
	return len(seen)
}

// TestHopsAndCosts looks at what the Rust library is told at the end of a chain of three unpriced links.
func TestHopsAndCosts(t *testing.T) {
	relays := drive.Chain(t, 3)
	rustQUIC.run(t, relays[0], "pub", "priced", "video", "--price", "5").Expect(t, "published", 15*time.Second)
	watch := rustQUIC.run(t, relays[2], "announced", "priced", "--seconds", "30")
	got := watch.Expect(t, "announced", 10*time.Second)
	hops, _ := got["hops"].([]any)
	// The publisher and three relays; the price of the publisher, of its link, of two links between relays and
	// of the viewer's own.
	if len(hops) != 4 || got["warm"] != 9.0 || got["cold"] != 9.0 {
		t.Errorf("announced as %v", got)
	}
}
