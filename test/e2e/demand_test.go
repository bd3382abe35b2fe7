//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestOneSubscriptionPerHop puts fifty viewers at the end of a chain of three: each hop above sees one subscription,
// and none two seconds after the last viewer has left.
func TestOneSubscriptionPerHop(t *testing.T) {
	relays := drive.Chain(t, 3)
	pub := drive.Start(t, "pub", binary(t), "pub", relays[0].MOQT(), "demo", "--hash", relays[0].Hash)
	pub.Expect(t, "published", 10*time.Second)
	sub := drive.Start(t, "sub", binary(t), "sub", relays[2].MOQT(), "demo", "--hash", relays[2].Hash, "--viewers", "50", "--seconds", "8")
	open := func(r drive.Relay, role string) float64 {
		return r.Metric(t, "moq_relay_subscriptions_opened_total", role) - r.Metric(t, "moq_relay_subscriptions_closed_total", role)
	}
	drive.WaitFor(t, 10*time.Second, "fifty viewers", func() bool { return open(relays[2], "publisher") == 50 })
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for i, r := range relays {
			if n := open(r, "subscriber"); n != 1 {
				t.Fatalf("relay %d holds %v subscriptions upstream", i, n)
			}
			if n := open(r, "publisher"); i < 2 && n != 1 {
				t.Fatalf("relay %d serves %v subscriptions", i, n)
			}
		}
	}
	summary := sub.Expect(t, "summary", 20*time.Second)
	if code := sub.Wait(t, 5*time.Second); code != 0 || summary["ok"] != true {
		t.Errorf("exit status %d, summary %v", code, summary)
	}
	drive.WaitFor(t, 2*time.Second, "no subscription left", func() bool {
		for _, r := range relays {
			if open(r, "subscriber") != 0 || open(r, "publisher") != 0 {
				return false
			}
		}
		return true
	})
}
