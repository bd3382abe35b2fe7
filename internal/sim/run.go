package sim

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/origin"
)

// Run is the execution of a plan.
type Run struct {
	*Cluster
	plan    *Plan
	history *History
	pubs    []*Publisher // the one that counts now, by the number in the plan
	views   []*Viewer    // likewise
	listen  []*Watcher   // by relay
	began   time.Time    // when the cluster was linked

	faults []string
	said   map[string]bool // complaints that are going on
}

// Execute runs the plan of a seed and returns it and what was wrong. The cluster has been stopped then; its log says what
// happened, down to a level.
func Execute(seed uint64, level slog.Level) (plan *Plan, faults []string, log string) {
	p := newPlan(seed)
	c, err := New(Config{
		Seed: seed, Topology: p.Topology, Net: p.Net, Level: level,
		Relay: func(i int, cfg *RelayConfig) { *cfg = p.Relays[i] },
	})
	if err != nil {
		return p, []string{err.Error()}, ""
	}
	r := &Run{Cluster: c, plan: p, said: make(map[string]bool)}
	r.play()
	c.Stop()
	r.faults = append(r.faults, c.Blunders()...)
	return p, r.faults, c.Log()
}

// fault notes something wrong. A run ends with its first hundred at the latest.
func (r *Run) fault(format string, args ...any) {
	if len(r.faults) < 100 {
		text := fmt.Sprintf(format, args...)
		r.Logf("FAULT %s", text)
		r.faults = append(r.faults, fmt.Sprintf("%v: %s", time.Since(epoch), text))
	}
}

// complain notes something wrong that lasts, once until it is over.
func (r *Run) complain(wrong bool, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if wrong && !r.said[text] {
		r.fault("%s", text)
	}
	r.said[text] = wrong
}

// play goes through the whole plan.
func (r *Run) play() {
	if !r.Await(20*time.Second, r.Linked) {
		r.fault("not linked after 20 s")
		return
	}
	r.began = time.Now()
	r.history = newHistory(r.Cluster)
	r.faulty = r.history.look
	for i := range r.Relays {
		r.listen = append(r.listen, r.begin(r.Listen(Access{Relay: i})))
	}
	r.pubs, r.views = make([]*Publisher, len(r.plan.Publishers)), make([]*Viewer, len(r.plan.Viewers))
	for i, p := range r.plan.Publishers {
		r.publish(i, p.Relay)
	}
	for i := range r.plan.Viewers {
		r.watch(i)
	}
	r.Sampled(r.check)
	for _, s := range r.plan.steps() {
		r.Run(time.Until(r.began.Add(s.at)))
		r.Logf("STEP %s", s.what)
		s.do(r)
	}
	r.Run(time.Until(r.began.Add(allMended)))
	r.calm()
	r.judge()
	r.depart()
	r.faulty, r.samplers = nil, nil
	r.faults = append(r.faults, r.Empty()...)
}

// begin takes the error of starting a client, which can only be the run's own mistake.
func (r *Run) begin(w *Watcher, err error) *Watcher {
	if err != nil {
		panic(err)
	}
	return w
}

// publish starts publisher n at a relay.
func (r *Run) publish(n, relay int) {
	cfg := r.plan.Publishers[n]
	cfg.Relay = relay
	p, err := r.Publish(cfg)
	if err != nil {
		panic(err)
	}
	r.pubs[n] = p
}

// watch starts viewer n.
func (r *Run) watch(n int) {
	v, err := r.Watch(r.plan.Viewers[n])
	if err != nil {
		panic(err)
	}
	r.views[n] = v
}

// names are those of all broadcasts, in order.
func (r *Run) names() []string {
	var all []string
	for _, p := range r.plan.Publishers {
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// check is what must be so at every moment.
func (r *Run) check() {
	for i, relay := range r.Relays {
		if relay.reachable() {
			r.checkRoutes(i, relay.Up().Origin().Routes())
		}
	}
	for i, v := range r.views {
		r.complain(r.starves(v), "viewer %d gets nothing though there is a way", i)
	}
}

// starves reports whether a viewer should have had a frame by now.
func (r *Run) starves(v *Viewer) bool {
	last := v.lastFrame()
	now, h := time.Now(), r.history
	since := last.Add(-2 * time.Second)
	return !v.stopped() && !v.slow() && now.After(h.noticed(last)) && h.held(fact{kind: attached, n: v.number}, since, now) &&
		h.Standing(v.cfg.Name, v.access.Relay, since, now)
}

// ghosts is how long a route may outlive everything that it could come from: the silent death of its publisher, that of a
// relay, and some time to tell everybody.
const ghosts = 20 * time.Second

// hidden is how long a relay may lack a route though there is a way. Relays tell each other of the best way only: when its
// publisher leaves, all that a relay knows may be stale at once, and it is told of another publisher after a hold of 300 ms
// and the delays on the way (see TestHiddenPublisher).
const hidden = 2 * time.Second

// checkRoutes looks for loops among the routes of a relay and compares them with what can and cannot be reached.
func (r *Run) checkRoutes(i int, routes []origin.RouteInfo) {
	for _, f := range r.Relays[i].loops(routes) {
		r.complain(true, "%s", f)
	}
	have := make(map[string]bool)
	for _, info := range routes {
		have[info.Prefix] = have[info.Prefix] || info.Live
	}
	now, h := time.Now(), r.history
	for _, name := range r.names() {
		h.note(routed, i, name, have[name])
		if time.Since(epoch)%time.Second != 0 {
			continue
		}
		lacks := !h.ever(fact{routed, i, name}, now.Add(-hidden), now)
		r.complain(lacks && !h.unnoticed(now) && h.Standing(name, i, now.Add(-act), now),
			"relay %d has no route to %s though there is a way", i, name)
		r.complain(have[name] && !h.Possible(name, i, now.Add(-ghosts), now),
			"relay %d has a route to %s that can lead nowhere", i, name)
	}
}

// calm waits until everything is as it was at the beginning, and checks that it is, and that then nothing more is said.
func (r *Run) calm() {
	if !r.Await(90*time.Second, r.settled) {
		r.fault("not settled 90 s after everything was mended: %s", r.unsettled())
	}
	r.Run(5*time.Second + time.Duration(len(r.Relays))*300*time.Millisecond)
	quiet := time.Now()
	r.Run(5 * time.Second)
	for i, w := range r.listen {
		for _, name := range r.names() {
			if told := w.Told(name, quiet); len(told) > 0 {
				r.fault("relay %d still announces: %+v", i, told)
			}
			r.checkHold(i, w.Told(name, epoch))
		}
		if got := w.Names(); !slices.Equal(got, r.names()) {
			r.fault("relay %d announces %v", i, got)
		}
	}
	r.checkPulls()
}

// checkHold checks that a relay has changed what it announces of a name no more often than the hold allows (R31). A peer on
// moq-lite 04 gets an end and a new start in place of a change (R33a), and passes them on as such at once; a client that reads
// both together takes them for a change.
func (r *Run) checkHold(relay int, told []Told) {
	if r.plan.Basic {
		return
	}
	const hold = 300 * time.Millisecond
	for i := 1; i < len(told); i++ {
		if after := told[i].At.Sub(told[i-1].At); told[i].Changed && told[i-1].Changed && after < hold {
			r.fault("relay %d announced two changes within %v:%s", relay, after, printTold(told[i-1:i+1], epoch))
		}
	}
}

// checkPulls checks that nobody pulls a track twice for long once everything is calm: a copy that was replaced goes when what
// it has begun is complete, or too old for everybody.
func (r *Run) checkPulls() {
	if !r.Await(careful+5*time.Second, func() bool { return r.doublePulls() == "" }) {
		r.fault("%s", r.doublePulls())
	}
}

func (r *Run) doublePulls() string {
	for i, relay := range r.Relays {
		tracks := 0
		for _, t := range relay.Up().Origin().Tracks() {
			if t.Readers > 0 {
				tracks++
			}
		}
		if n := relay.Up().Origin().Counters().Upstreams; n != tracks {
			return fmt.Sprintf("relay %d has %d upstream subscriptions for %d tracks that are read", i, n, tracks)
		}
	}
	return ""
}

// settled reports whether every link and every client has its session, and no relay has others.
func (r *Run) settled() bool { return r.unsettled() == "" }

func (r *Run) unsettled() string {
	r.history.look()
	expected := make([]int, len(r.Relays))
	for i, l := range r.links {
		expected[l.To]++
		if r.history.now[fact{kind: linkUp, n: i}] == "" {
			return fmt.Sprintf("link %d", i)
		}
	}
	for i, m := range r.machines {
		if m.stopped() {
			continue
		}
		expected[m.access.Relay]++
		if r.history.now[fact{kind: attached, n: i}] == "" {
			return fmt.Sprintf("%s %d", m.name, i)
		}
	}
	for i, relay := range r.Relays {
		if n := len(relay.Up().State().Sessions()); n != expected[i] {
			return fmt.Sprintf("relay %d has accepted %d sessions instead of %d", i, n, expected[i])
		}
	}
	return ""
}

// judge checks what viewers have seen in the whole run.
func (r *Run) judge() {
	for _, v := range r.viewers {
		for _, w := range v.Watches() {
			r.Logf("%s at relay %d: %v", v.name, v.access.Relay, &w)
			for _, f := range w.Faults {
				r.fault("%s at relay %d: %s", v.name, v.access.Relay, f)
			}
			r.judgeEnd(v, &w)
			if v.cfg.MaxAge >= careful && !r.plan.Basic && !v.slow() {
				r.judgeGroups(v, &w)
			}
		}
	}
}

// judgeEnd checks that a subscription has not ended while there was a way and the relay knew one. It need not: relays tell each
// other of the best way only, so that of two publishers one may be unknown next to the other until that has left. A clean end
// takes up to ten seconds: the client waits for groups that were cut at the end.
func (r *Run) judgeEnd(v *Viewer, w *Watch) {
	if w.Ended.IsZero() || w.SessionLost || v.stopped() {
		return
	}
	from, to := w.Ended.Add(-act), w.Ended.Add(500*time.Millisecond)
	if errors.Is(w.Err, io.EOF) {
		from = from.Add(-10 * time.Second)
	}
	if !r.history.unnoticed(w.Ended) && r.history.held(fact{routed, v.access.Relay, v.cfg.Name}, from, to) && r.history.Standing(v.cfg.Name, v.access.Relay, from, to) &&
		r.history.held(fact{kind: attached, n: v.number}, from, to) {
		r.fault("%s at relay %d lost its subscription at %v though there was a way: %v", v.name, v.access.Relay, w.Ended.Sub(epoch), w.Err)
	}
}

// judgeGroups checks that all groups have come whole for which there was a way for long enough.
func (r *Run) judgeGroups(v *Viewer, w *Watch) {
	end := time.Now()
	if !w.Ended.IsZero() {
		end = w.Ended
	}
	first := w.Asked.Add(2 * time.Second)
	if r.history.unnoticed(w.Asked) { // its relay may ask, for the first group, what has died without a word
		first = r.history.noticed(w.Asked)
	}
	length := time.Duration(v.cfg.PerGroup) * v.cfg.Interval
	for seq := uint64(first.Sub(epoch)/length) + 1; ; seq++ {
		from := v.cfg.due(seq, 0)
		to := r.history.noticed(from.Add(length))
		if to.After(end) {
			return
		}
		since := from.Add(-2 * time.Second)
		if to.Sub(from) > careful-2*time.Second || !r.history.held(fact{kind: attached, n: v.number}, since, to) ||
			!r.history.Standing(v.cfg.Name, v.access.Relay, since, to) || r.newcomer(v.cfg.Name, seq, since, to) {
			continue
		}
		if g := w.Groups[seq]; g == nil {
			r.fault("%s at relay %d lacks group %d of %v", v.name, v.access.Relay, seq, from.Sub(epoch))
		} else if !g.Whole(v.cfg.PerGroup) {
			r.fault("%s at relay %d lacks frames of group %d of %v: %+v", v.name, v.access.Relay, seq, from.Sub(epoch), *g)
		}
	}
}

// newcomer reports whether a publisher came that has not got a group. If it is the best source, the group is given up.
func (r *Run) newcomer(name string, seq uint64, from, to time.Time) bool {
	for _, p := range r.publishers {
		for _, s := range r.history.facts[fact{kind: attached, n: p.number}] {
			first := p.cfg.position(p.cfg.first(s.from)).Group
			if p.cfg.Name == name && s.from.After(from) && s.from.Before(to) && first > seq+uint64(p.cfg.Backfill) {
				return true
			}
		}
	}
	return false
}

// depart ends the publishers of the first broadcast cleanly: it vanishes everywhere, without many words.
func (r *Run) depart() {
	name, left := r.plan.Publishers[0].Name, time.Now()
	for _, p := range r.publishers {
		if p.cfg.Name == name && !p.stopped() {
			p.Leave()
		}
	}
	gone := func() bool {
		return !slices.ContainsFunc(r.listen, func(w *Watcher) bool { return slices.Contains(w.Names(), name) })
	}
	if !r.Await(5*time.Second, gone) {
		r.fault("%s is still announced 5 s after its publishers have left", name)
	}
	r.Run(3 * time.Second)
	for i, w := range r.listen {
		if told := w.Told(name, left); len(told) > r.words(name) {
			r.fault("relay %d had much to say about the end of %s:%s", i, name, printTold(told, left))
		}
	}
}

// words is how many messages a name may cost when it goes. With one publisher that is a retraction; a detour may come
// before it where delays differ as much as the hold is long. Several publishers, or wires that differ in what they tell,
// make that more, but never more than there are ways around.
func (r *Run) words(name string) int {
	n := 0
	for _, p := range r.plan.Publishers {
		if p.Name == name {
			n++
		}
	}
	if n == 1 && !r.plan.Mixed {
		return 3
	}
	return 4 + 2*len(r.Relays)
}

func printTold(told []Told, since time.Time) string {
	var b strings.Builder
	for _, m := range told {
		fmt.Fprintf(&b, "\n\tafter %v: active=%v changed=%v %v %v", m.At.Sub(since), m.Active, m.Changed, m.Hops, m.Cost)
	}
	return b.String()
}
