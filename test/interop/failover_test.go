//go:build interop

package interop

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

const (
	// silence is how long a peer may be silent before its tracks are asked for elsewhere.
	silence = 500 * time.Millisecond
	// grace is what may be added to any time; what a loaded machine adds is measured.
	grace = time.Second
)

// watched is a viewer, and whether what it sees has a second publisher.
type watched struct {
	*drive.Process
	alone bool
}

// TestFailover loses a relay that serves viewers of both libraries: at a third relay, which dials it and a standby, and at
// the standby itself. Two publishers, of which the standby's is dearer even than the way around, make the same groups.
// Viewers of a broadcast without a second publisher are the control: the same check must find them at fault.
func TestFailover(t *testing.T) {
	for name, strike := range map[string]func(*testing.T, drive.Relay){
		"clean close": func(t *testing.T, r drive.Relay) { r.Signal(t, syscall.SIGTERM) },
		"kill -9":     func(_ *testing.T, r drive.Relay) { r.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			victim, standby := drive.StartRelay(t, "victim"), drive.StartRelay(t, "standby")
			third := drive.StartRelayWith(t, "third", func(drive.Relay) string {
				return fmt.Sprintf("%shedge = %q\n", drive.Connect(victim, standby), silence)
			})
			ticking(t, victim, "shared")
			ticking(t, victim, "alone")
			ticking(t, standby, "shared", "--cost", "20")
			ticking(t, standby, "calm")
			viewers := watchAll(t, third, standby)
			calm := []*drive.Process{look(t, js05, third, "calm"), look(t, rustQUIC, third, "calm")}
			time.Sleep(5 * time.Second) // all of them have begun, and the rhythm of the tracks is known
			if n := victim.Metric(t, "moq_relay_subscriptions_opened_total", "publisher"); n < 2 {
				t.Fatalf("the victim serves %v subscriptions, not both broadcasts", n)
			}
			strike(t, victim)
			time.Sleep(8 * time.Second)
			select {
			case <-victim.Done():
			default:
				t.Error("the victim lives")
			}
			judge(t, viewers, calm)
		})
	}
}

// ticking publishes what the clients can check, in step with all others of that name.
func ticking(t *testing.T, r drive.Relay, path string, more ...string) {
	t.Helper()
	args := []string{"pub", r.MOQT(), path, "--hash", r.Hash, "--format", "js", "--start", "clock", "--rate", "30", "--group", "30", "--size", "400", "--max-age", "30s"}
	drive.Start(t, path+" at "+r.Name, drive.Env(t, "MOQMESH_BIN"), append(args, more...)...).Expect(t, "published", 15*time.Second)
}

// look starts a viewer that goes on until it is told to stop.
func look(t *testing.T, p peer, r drive.Relay, path string) *drive.Process {
	t.Helper()
	v := p.run(t, r, "sub", path, "video", "--seconds", "600")
	v.Name = fmt.Sprintf("%s of %s at %s", p, path, r.Name)
	return v
}

func watchAll(t *testing.T, third, standby drive.Relay) []watched {
	t.Helper()
	all := []watched{
		{look(t, js05, third, "alone"), true},
		{look(t, rustQUIC, third, "alone"), true},
		{look(t, js05, third, "shared"), false},
		{look(t, rustQUIC, third, "shared"), false},
		{look(t, js05, standby, "shared"), false},
		{look(t, rustWT, standby, "shared"), false},
	}
	for _, v := range all {
		v.Expect(t, "subscribed", 20*time.Second)
	}
	return all
}

// judge looks at what the viewers saw. What the slower of the calm ones had to wait is the machine's doing.
func judge(t *testing.T, viewers []watched, calm []*drive.Process) {
	t.Helper()
	var load time.Duration
	for _, v := range calm {
		load = max(load, finish(t, v).Stall())
	}
	t.Logf("gap of viewers whom the fault does not concern: %v", load)
	until := drive.ClockGroup(time.Now().Add(-2*time.Second - load))
	for _, v := range viewers {
		summary := finish(t, v.Process)
		faults := drive.Faults(summary, 2*silence+grace+2*load, until)
		t.Logf("%s: gap %v, faults %q", v.Name, summary.Stall(), faults)
		if v.alone != (len(faults) > 0) {
			t.Errorf("%s: faults %q", v.Name, faults)
		}
	}
}

// finish asks a viewer for its summary.
func finish(t *testing.T, p *drive.Process) drive.Event {
	t.Helper()
	select {
	case <-p.Done():
	default:
		_ = p.Cmd.Process.Signal(syscall.SIGINT) // it may end by itself just now
	}
	return p.Expect(t, "summary", 15*time.Second)
}
