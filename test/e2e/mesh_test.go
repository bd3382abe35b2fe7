//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// list writes a peer list of a relay, by renaming.
type list struct {
	t    *testing.T
	file string
}

func (l list) set(entries ...string) {
	l.t.Helper()
	err := os.WriteFile(l.file+".new", []byte("["+strings.Join(entries, ", ")+"]"), 0o600)
	if err == nil {
		err = os.Rename(l.file+".new", l.file)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func priced(r drive.Relay, cost int) string {
	return fmt.Sprintf(`{"url": %q, "cost": %d}`, r.HTTPS(), cost)
}

// via tells which peer of a relay its track comes from.
func via(t *testing.T, r drive.Relay) string {
	t.Helper()
	page := drive.Get(t, r.InternalURL("/tracks"))
	for _, p := range cluster(t, r).Peers {
		for _, id := range p.Sessions {
			if strings.Contains(page, fmt.Sprintf(`"session":%d,`, id)) {
				return p.Key
			}
		}
	}
	return ""
}

// TestMeshChangesWhileWatched: peers are added, re-priced, removed and restarted, by a list, while a viewer watches across
// three relays: it misses no frame and gets none twice.
func TestMeshChangesWhileWatched(t *testing.T) {
	dir := t.TempDir()
	start := func(name string) (drive.Relay, list) {
		l := list{t, filepath.Join(dir, name+".json")}
		l.set()
		r := drive.StartRelayWith(t, name, func(drive.Relay) string {
			return fmt.Sprintf("[connect.tls]\ninsecure = true\n[cluster]\nconnect_api = %q\n", l.file)
		})
		return r, l
	}
	source, _ := start("source")
	middle, ofMiddle := start("middle")
	edge, ofEdge := start("edge")
	ofMiddle.set(priced(source, 1))
	ofEdge.set(priced(middle, 1))
	drive.Start(t, "pub", binary(t), "pub", source.MOQT(), "demo", "--hash", source.Hash)
	sub := drive.Start(t, "sub", binary(t), "sub", edge.MOQT(), "demo", "--hash", edge.Hash, "--seconds", "45")
	sub.Expect(t, "second", 15*time.Second)
	comesFrom := func(what string, r drive.Relay) {
		t.Helper()
		drive.WaitFor(t, 15*time.Second, what, func() bool { return via(t, edge) == r.HTTPS() })
		time.Sleep(1200 * time.Millisecond) // some frames
	}
	comesFrom("at first through the middle", middle)

	ofEdge.set(priced(middle, 1), priced(source, 5))
	drive.WaitFor(t, 5*time.Second, "peer added", func() bool { return connected(t, edge) == 2 })
	comesFrom("the dear link is not used", middle)

	ofEdge.set(priced(middle, 1), priced(source, 1))
	comesFrom("re-priced, the direct link is used", source)

	ofEdge.set(priced(middle, 1))
	comesFrom("removed, the middle is used again", middle)
	if n := len(cluster(t, edge).Peers); n != 1 {
		t.Errorf("%d peers", n)
	}

	ofEdge.set(priced(middle, 1), priced(source, 5))
	drive.WaitFor(t, 5*time.Second, "peer added again", func() bool { return connected(t, edge) == 2 })
	middle.Signal(t, syscall.SIGTERM)
	comesFrom("the middle drains, the direct link is used", source)
	if code := middle.Wait(t, 5*time.Second); code != 0 {
		t.Errorf("the middle exits with %d", code)
	}
	middle.Restart(t)
	comesFrom("restarted, the cheap way is used again", middle)

	sub.Signal(t, syscall.SIGINT)
	summary := sub.Expect(t, "summary", 10*time.Second)
	if summary["ok"] != true || summary.Number("frames") < 200 {
		t.Errorf("the viewer missed something: %v", summary)
	}
}
