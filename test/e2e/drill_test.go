//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

const (
	// idle and keepAlive are what the relays of a drill are set to. The idle timeout of a connection begins with its last
	// packet or the first keep-alive after that.
	idle      = 5 * time.Second // the least that the QUIC library grants
	keepAlive = 400 * time.Millisecond
	// grace is what may be added to any time; what a loaded machine adds is measured.
	grace = time.Second
	// after is how long viewers watch once the fault should be overcome.
	after = 7 * time.Second
)

// fault is one way in which a relay that serves goes.
type fault struct {
	name  string
	cable bool // the relay is at the end of one
	// silent: nobody is told; who listens must find out. lossy: the relay stays.
	silent, lossy bool
	// strike makes it happen.
	strike func(*testing.T, *victim)
	// took demands that it has happened, when all is over.
	took func(*testing.T, *victim)
}

// victim is a relay, and what is published there.
type victim struct {
	fault
	drive.Relay
	cable         *drive.Cable
	shared, alone string // broadcasts: with a second publisher elsewhere, and without
	served        [2]*drive.Process
	control       *drive.Process
	// hedged is how often the third relay had hedged for what is shared before anything happened.
	hedged int
}

var (
	sigterm = fault{
		name:   "clean close",
		strike: func(t *testing.T, v *victim) { v.Signal(t, syscall.SIGTERM) },
		took: func(t *testing.T, v *victim) {
			if code := v.Wait(t, 5*time.Second); code != 0 {
				t.Errorf("exit status %d", code)
			}
		},
	}
	sigkill = fault{
		name: "kill -9", silent: true,
		strike: func(_ *testing.T, v *victim) { v.Kill() },
		took: func(t *testing.T, v *victim) {
			if code := v.Wait(t, time.Second); code != -1 {
				t.Errorf("exit status %d: it was not killed", code)
			}
		},
	}
	sigstop = fault{
		name: "SIGSTOP", silent: true,
		strike: func(t *testing.T, v *victim) { v.Signal(t, syscall.SIGSTOP) },
		took: func(t *testing.T, v *victim) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", v.Cmd.Process.Pid))
			if err != nil || !strings.Contains(string(stat), ") T ") {
				t.Errorf("it is not stopped: %s, %v", stat, err)
			}
			v.Kill() // it cannot hear that it is to end
		},
	}
	cut = fault{
		name: "cable cut", silent: true, cable: true,
		strike: func(t *testing.T, v *victim) { v.cable.Cut(t) },
		took:   dropped,
	}
	loss = fault{
		name: "loss of 5 percent", lossy: true, cable: true,
		strike: func(t *testing.T, v *victim) { v.cable.Lose(t, 0.05) },
		took:   dropped,
	}
)

func dropped(t *testing.T, v *victim) {
	t.Helper()
	in, out := v.cable.Dropped(t)
	if in == 0 || out == 0 {
		t.Errorf("dropped: %d packets towards it, %d from it", in, out)
	}
	t.Logf("dropped: %d packets towards it, %d from it", in, out)
}

// TestFailover loses relays that serve, each in another way. Two publishers make the same groups of one broadcast, one at
// that relay, a dearer one at a standby. Viewers of a third relay, which dials both, and of the standby itself must not
// lose a frame, nor wait for longer than the configuration allows. A broadcast without a second publisher is the control:
// the same check of the same viewer must find it at fault.
func TestFailover(t *testing.T) {
	for _, d := range []drill{
		{name: "hedged", hedge: 500 * time.Millisecond, faults: []fault{sigterm, sigkill, sigstop, cut, loss}},
		{name: "not hedged", faults: []fault{sigkill, cut}},
	} {
		t.Run(d.name, d.run)
	}
}

// drill is a mesh of one victim per fault, a standby, and a relay that dials all of them.
type drill struct {
	name   string
	hedge  time.Duration // cluster.hedge
	faults []fault

	standby, third drive.Relay
	victims        []*victim
	// calm watches a broadcast that nothing happens to: its longest wait is the machine's doing.
	calm *drive.Process
}

// bound is how long viewers may be without a frame.
func (d *drill) bound(f fault) time.Duration {
	switch {
	case f.lossy:
		return 250 * time.Millisecond // a few retransmissions
	case !f.silent:
		return 50 * time.Millisecond
	case d.hedge > 0:
		return time.Second
	}
	return idle + 500*time.Millisecond
}

func (d *drill) run(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("cables take root: those drills are left out")
		d.faults = slices.DeleteFunc(d.faults, func(f fault) bool { return f.cable })
	}
	d.mesh(t)
	d.publish(t)
	d.watch(t)
	wait := after
	for _, v := range d.victims {
		v.hedged = d.hedges(v)
		v.strike(t, v)
		wait = max(wait, after+d.bound(v.fault))
	}
	time.Sleep(wait)
	calm := finish(t, d.calm).Stall()
	t.Logf("gap of a viewer whom no fault concerns: %v", calm)
	for _, v := range d.victims {
		t.Run(v.name, func(t *testing.T) { d.judge(t, v, calm) })
	}
}

// mesh starts the relays and waits until they are linked.
func (d *drill) mesh(t *testing.T) {
	t.Helper()
	lines := func(connect ...drive.Relay) func(drive.Relay) string {
		return func(drive.Relay) string {
			return fmt.Sprintf("[quic]\nidle_timeout = %q\nkeep_alive = %q\n%shedge = %q\n", idle, keepAlive, drive.Connect(connect...), d.hedge)
		}
	}
	var all []drive.Relay
	for i, f := range d.faults {
		v := &victim{fault: f, shared: fmt.Sprintf("shared/%d", i), alone: fmt.Sprintf("alone/%d", i)}
		if f.cable {
			v.cable = drive.NewCable(t)
			v.Relay = v.cable.StartRelay(t, f.name, lines())
		} else {
			v.Relay = drive.StartRelayWith(t, f.name, lines())
		}
		d.victims = append(d.victims, v)
		all = append(all, v.Relay)
	}
	d.standby = drive.StartRelayWith(t, "standby", lines())
	all = append(all, d.standby)
	d.third = drive.StartRelayWith(t, "third", lines(all...))
	drive.WaitFor(t, 20*time.Second, "linked", func() bool { return connected(t, d.third) == len(all) })
}

// publish starts the publishers. That of the standby is dearer even than the way around by the third relay.
func (d *drill) publish(t *testing.T) {
	t.Helper()
	pub := func(r drive.Relay, path string, more ...string) []string {
		return append([]string{
			"pub", r.MOQT(), path, "--hash", r.Hash, "--start", "clock", "--rate", "30", "--group", "30", "--size", "400",
			"--max-age", "30s",
		}, more...) // kept for longer than any gap
	}
	var all []*drive.Process
	for _, v := range d.victims {
		start := drive.Start
		if v.cable != nil {
			start = v.cable.Start
		}
		all = append(all, start(t, v.shared, binary(t), pub(v.Relay, v.shared)...))
		if v.lossy { // what nobody sends again shows that the loss is there
			all = append(all, start(t, v.alone, binary(t), pub(v.Relay, v.alone, "--datagrams")...))
		} else {
			all = append(all, start(t, v.alone, binary(t), pub(v.Relay, v.alone)...))
		}
	}
	all = append(all, drive.Start(t, "standby publisher", binary(t),
		pub(d.standby, "shared", "--broadcasts", fmt.Sprint(len(d.victims)), "--cost", "20")...))
	all = append(all, drive.Start(t, "calm publisher", binary(t), pub(d.standby, "calm")...))
	for _, p := range all {
		p.Expect(t, "published", 20*time.Second)
	}
}

// watch starts the viewers, and waits until all have seen two seconds without a fault, from the victims.
func (d *drill) watch(t *testing.T) {
	t.Helper()
	sub := func(r drive.Relay, path string) *drive.Process {
		return drive.Start(t, "viewer of "+path+" at "+r.Name, binary(t), "sub", r.MOQT(), path, "--hash", r.Hash)
	}
	d.calm = sub(d.third, "calm")
	all := []*drive.Process{d.calm}
	for _, v := range d.victims {
		v.served = [...]*drive.Process{sub(d.third, v.shared), sub(d.standby, v.shared)}
		v.control = sub(d.third, v.alone)
		all = append(all, v.served[0], v.served[1], v.control)
	}
	for _, p := range all {
		drive.WaitFor(t, 20*time.Second, p.Name+" sees media", func() bool {
			n := len(p.Find("second"))
			return n >= 2 && p.Find("second")[n-1].Number("frames") >= 20
		})
		for _, s := range p.Find("second") {
			if s.Number("gaps")+s.Number("wrong")+s.Number("twice") > 0 {
				t.Fatalf("%s: a fault before any was made: %v", p.Name, s)
			}
		}
	}
	for _, v := range d.victims {
		if n := v.Metric(t, "moq_relay_subscriptions_opened_total", "publisher"); n < 2 {
			t.Fatalf("%s serves %v subscriptions, not both broadcasts", v.name, n)
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
	return p.Expect(t, "summary", 10*time.Second)
}

// judge looks at what the viewers saw, and that the fault was there. calm is the longest wait of one whom it did not
// concern.
func (d *drill) judge(t *testing.T, v *victim, calm time.Duration) {
	until := drive.ClockGroup(time.Now().Add(-2*time.Second - calm))
	bound := d.bound(v.fault)
	limit := bound + grace + 2*calm
	for i, where := range []string{"third relay", "standby"} {
		summary := finish(t, v.served[i])
		t.Logf("%s, viewer at the %s: gap %v, to be at most %v", v.name, where, summary.Stall(), bound)
		if faults := drive.Faults(summary, limit, until); len(faults) > 0 {
			t.Errorf("viewer at the %s: %q", where, faults)
		}
		if v.silent && d.hedge == 0 && summary.Stall() < idle-grace {
			t.Errorf("viewer at the %s: the relay was not missed until %v", where, summary.Stall())
		}
	}
	d.judgeHedges(t, v, calm)
	summary := finish(t, v.control)
	faults := drive.Faults(summary, limit, until)
	t.Logf("control: %q", faults)
	if len(faults) == 0 || v.lossy && summary.Number("missing") == 0 {
		t.Errorf("the control is without the fault: %q, %v", faults, summary)
	}
	v.took(t, v)
}

// hedges is how often the third relay has asked elsewhere for what a victim shares with the standby.
func (d *drill) hedges(v *victim) (n int) {
	for line := range strings.Lines(d.third.Stderr()) {
		if strings.Contains(line, "track hedged") && strings.Contains(line, "outcome=started") && strings.Contains(line, "path="+v.shared+" ") {
			n++
		}
	}
	return n
}

// judgeHedges demands that the third relay asked elsewhere once for what a silent relay had served, if it is to hedge, and
// not at all for what a lossy one serves, unless that was silent for as long. A machine that stands still for half as long
// may look like silence, too.
func (d *drill) judgeHedges(t *testing.T, v *victim, calm time.Duration) {
	t.Helper()
	hedges := d.hedges(v) - v.hedged
	least, most := 0, 0
	if v.silent && d.hedge > 0 {
		least, most = 1, 1
	}
	if d.hedge > 0 && (calm >= d.hedge/2 || !v.silent && finish(t, v.served[0]).Stall() >= d.hedge) {
		most = 100
	}
	if v.hedged > 0 {
		least = 0 // it may have been asked there already
	}
	if hedges < least || hedges > most {
		t.Errorf("hedged %d times, not %d to %d", hedges, least, most)
	}
}
