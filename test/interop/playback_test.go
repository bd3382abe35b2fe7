//go:build interop

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestOneRelay plays every publisher to every viewer through one relay.
func TestOneRelay(t *testing.T) {
	r := drive.StartRelay(t, "relay")
	playEachToAll(t, r, r, everybody)
}

// TestChainOfThree plays every publisher at one end of a chain to every viewer at the other.
func TestChainOfThree(t *testing.T) {
	relays := drive.Chain(t, 3)
	playEachToAll(t, relays[0], relays[2], everybody)
}

func playEachToAll(t *testing.T, in, out drive.Relay, viewers []peer) {
	for _, publisher := range everybody {
		t.Run(publisher.String(), func(t *testing.T) {
			path := "demo/" + publisher.String()
			pub := publisher.run(t, in, "pub", path, "video")
			pub.Expect(t, "published", 15*time.Second)
			var subs []*drive.Process
			for _, v := range viewers {
				subs = append(subs, v.run(t, out, "sub", path, "video", "--seconds", "4"))
			}
			for _, sub := range subs {
				checkSummary(t, sub, 80)
			}
		})
	}
}

// TestLateJoin joins in the middle of a long group: its head must come from the cache at once.
func TestLateJoin(t *testing.T) {
	relays := drive.Chain(t, 3)
	pub := rustQUIC.run(t, relays[0], "pub", "late", "video", "--gop", "3000")
	pub.Expect(t, "published", 15*time.Second)
	first := rustWT.run(t, relays[2], "sub", "late", "video", "--seconds", "12") // keeps the track flowing
	first.Expect(t, "subscribed", 15*time.Second)
	time.Sleep(5 * time.Second)
	for _, v := range []peer{js05, js04, jsMoql, rustQUIC} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			sub := v.run(t, relays[2], "sub", "late", "video", "--seconds", "2")
			// 2 s of live frames are 60; the group had at least 150 when the viewer came.
			checkSummary(t, sub, 150)
		})
	}
}

// TestPublisherReconnects stops a publisher and starts it again with later groups: announcements follow, and viewers
// that come then are served.
func TestPublisherReconnects(t *testing.T) {
	relays := drive.Chain(t, 3)
	for _, publisher := range []peer{js05, rustQUIC} {
		t.Run(publisher.String(), func(t *testing.T) {
			path := "again/" + publisher.String()
			watch := js05.run(t, relays[2], "announced", path, "--seconds", "30")
			watch.Expect(t, "connected", 15*time.Second)
			for round := range 3 {
				pub := publisher.run(t, relays[0], "pub", path, "video", "--start", fmt.Sprint(round*1000))
				drive.WaitFor(t, 10*time.Second, "announcement", func() bool { return len(watch.Find("announced")) == round+1 })
				checkSummary(t, rustWT.run(t, relays[2], "sub", path, "video", "--seconds", "2"), 30)
				// Its session may end only with the idle timeout. While it is there the track goes on, with what is cached.
				drive.WaitFor(t, 20*time.Second, "the viewer to be gone", func() bool {
					return strings.Contains(drive.Get(t, relays[2].InternalURL("/metrics")), "\nmoqmesh_readers 0\n")
				})
				pub.Stop()
				drive.WaitFor(t, 10*time.Second, "withdrawal", func() bool { return len(watch.Find("withdrawn")) == round+1 })
			}
		})
	}
}

// TestWebSocketLink plays through two relays that are linked over WebSocket.
func TestWebSocketLink(t *testing.T) {
	origin := drive.StartRelay(t, "origin")
	edge := drive.StartRelayWith(t, "edge", func(drive.Relay) string {
		return fmt.Sprintf("[cluster]\nconnect = [%q]\n", origin.WS())
	})
	drive.WaitFor(t, 10*time.Second, "linked", func() bool { return strings.Contains(drive.Get(t, edge.InternalURL("/nodes")), `"id"`) })
	for _, ends := range [][2]drive.Relay{{origin, edge}, {edge, origin}} {
		for _, p := range []peer{rustQUIC, js05WS} {
			path := "link/" + ends[0].Name + "/" + p.String()
			p.run(t, ends[0], "pub", path, "video").Expect(t, "published", 15*time.Second)
			for _, v := range []peer{rustWT, js04WS} {
				checkSummary(t, v.run(t, ends[1], "sub", path, "video", "--seconds", "3"), 50)
			}
		}
	}
}
