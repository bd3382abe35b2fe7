//go:build e2e

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// benchRun is what "moqmesh bench" prints.
type benchRun struct {
	Mode   string
	Good   bool
	Faults []string
	Relays []struct {
		PID int
		RSS float64 `json:"rss_mib"`
	}
	Media *struct {
		Viewers                    int
		Frames, Lost, Twice, Wrong uint64
	}
	Join     *struct{ Joiners, Failed, Viewers int }
	Announce *struct {
		Broadcasts, Missing int
		Late                float64 `json:"late_ms"`
	}
	Idle     *struct{ Sessions, Alive int }
	Failover *struct {
		Event  string
		Silent int
	}
}

// bench runs the generator to its end.
func bench(t *testing.T, status int, args ...string) benchRun {
	t.Helper()
	p := drive.Start(t, "bench", binary(t), append([]string{"bench"}, args...)...)
	if code := p.Wait(t, time.Minute); code != status {
		t.Errorf("exit status %d, want %d", code, status)
	}
	var r benchRun
	if err := json.Unmarshal([]byte(p.Stdout()), &r); err != nil {
		t.Fatalf("%v: %q", err, p.Stdout())
	}
	return r
}

// TestBench makes a short run of each mode: nothing may be lost, and the counts must be those of the load.
func TestBench(t *testing.T) {
	relays := drive.Chain(t, 2)
	near, far := relays[0], relays[1]
	trust := []string{"--json", "--hash", near.Hash, "--hash", far.Hash, "--pid", strconv.Itoa(near.Cmd.Process.Pid)}
	few := []string{"-n", "4", "--window", "1s", "--warmup", "200ms"}
	for name, test := range map[string]struct {
		args []string
		ok   func(r benchRun) bool
	}{
		"fanout":    {append([]string{"fanout", near.HTTPS()}, few...), func(r benchRun) bool { return r.Media.Viewers == 4 && r.Media.Frames >= 4*5 }},
		"fanout 05": {append([]string{"fanout", near.MOQT(), "--version", "lite-05"}, few...), func(r benchRun) bool { return r.Media.Frames >= 4*5 }},
		"audio":     {append([]string{"audio", near.MOQT(), "--group", "1"}, few...), func(r benchRun) bool { return r.Media.Frames >= 4*5 }},
		"bulk":      {append([]string{"bulk", near.MOQT(), "--size", "100000"}, few...), func(r benchRun) bool { return r.Media.Frames > 0 }},
		"chain":     {append([]string{"chain", near.MOQT(), far.HTTPS()}, few...), func(r benchRun) bool { return r.Media.Frames >= 4*5 }},
		"join":      {[]string{"join", near.MOQT(), far.HTTPS(), "-n", "10"}, func(r benchRun) bool { return r.Join.Joiners == 10 && r.Join.Failed == 0 && r.Join.Viewers == 1 }},
		"storm":     {[]string{"join", near.HTTPS(), "-n", "16", "--at-once", "8", "--stay", "--viewers", "0"}, func(r benchRun) bool { return r.Join.Joiners == 16 && r.Join.Failed == 0 }},
		"announce": {[]string{"announce", near.MOQT(), far.MOQT(), "-n", "100"}, func(r benchRun) bool {
			return r.Announce.Broadcasts == 100 && r.Announce.Missing == 0 && r.Announce.Late > 0
		}},
		"idle": {[]string{"idle", near.HTTPS(), "-n", "20", "--settle", "100ms", "--window", "500ms"}, func(r benchRun) bool { return r.Idle.Sessions == 20 && r.Idle.Alive == 20 }},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			r := bench(t, 0, append(test.args, trust...)...)
			if !r.Good || r.Mode == "" || len(r.Faults) > 0 || !test.ok(r) {
				t.Errorf("%+v", r)
			}
			if len(r.Relays) != 1 || r.Relays[0].PID != near.Cmd.Process.Pid || r.Relays[0].RSS < 1 {
				t.Errorf("relays %+v", r.Relays)
			}
			if m := r.Media; m != nil && m.Lost+m.Twice+m.Wrong > 0 {
				t.Errorf("%+v", *m)
			}
		})
	}
	plain := drive.Start(t, "table", binary(t), "bench", "fanout", near.HTTPS(), "--hash", near.Hash, "-n", "2", "--window", "1s", "--warmup", "0s")
	if code := plain.Wait(t, time.Minute); code != 0 || !strings.Contains(plain.Stdout(), "frames lost, twice, wrong") {
		t.Errorf("the table: exit status %d, %q", code, plain.Stdout())
	}
}

// TestBenchFailover kills the relay that a broadcast comes through.
func TestBenchFailover(t *testing.T) {
	a, b := drive.StartRelay(t, "a"), drive.StartRelay(t, "b")
	edge := drive.StartRelay(t, "edge", a, b)
	r := bench(t, 0, "failover", a.MOQT(), b.MOQT(), edge.MOQT(), "--json", "--hash", a.Hash, "--hash", b.Hash, "--hash", edge.Hash,
		"--kill", strconv.Itoa(a.Cmd.Process.Pid), "-n", "3", "--before", "1s", "--after", "4s")
	if !r.Good || r.Failover == nil || r.Failover.Event != "killed" || r.Failover.Silent != 0 {
		t.Errorf("%+v", r)
	}
}

// TestBenchStatus: 1 where there is no run, 2 where the relay fails its clients.
func TestBenchStatus(t *testing.T) {
	nobody := drive.Start(t, "bench", binary(t), "bench", "fanout", "moqt://127.0.0.1:1/", "--insecure")
	if code := nobody.Wait(t, 30*time.Second); code != 1 || nobody.Stdout() != "" {
		t.Errorf("nobody there: exit status %d, %q", code, nobody.Stdout())
	}
	relay := drive.StartRelay(t, "relay")
	ends := drive.Start(t, "bench", binary(t), "bench", "idle", relay.MOQT(), "--json", "--hash", relay.Hash, "-n", "5", "--settle", "4s", "--window", "200ms")
	drive.WaitFor(t, 10*time.Second, "sessions", func() bool {
		return strings.Count(drive.Get(t, relay.InternalURL("/sessions")), `"role"`) >= 6
	})
	relay.Signal(t, syscall.SIGTERM) // sessions end after a second
	if code := ends.Wait(t, time.Minute); code != 2 || !strings.Contains(ends.Stdout(), "5 sessions ended") {
		t.Errorf("a relay that leaves: exit status %d, %q", code, ends.Stdout())
	}
}
