package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
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
// happened.
func Execute(seed uint64) (plan *Plan, faults []string, log string) {
	p := newPlan(seed)
	c, err := New(Config{
		Seed: seed, Topology: p.Topology, Net: p.Net,
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
	for _, f := range r.Loops() {
		r.complain(true, "%s", f)
	}
	for i, v := range r.views {
		r.complain(r.starves(v), "viewer %d gets nothing though there is a way", i)
	}
	if time.Since(epoch)%time.Second == 0 {
		r.checkRoutes()
	}
}

// starves reports whether a viewer should have had a frame by now.
func (r *Run) starves(v *Viewer) bool {
	last := v.lastFrame()
	now, h := time.Now(), r.history
	since := last.Add(-2 * time.Second)
	return !v.stopped() && now.After(h.noticed(last)) && h.held(fact{attached, v.number}, since, now) &&
		h.Standing(v.cfg.Name, v.access.Relay, since, now)
}

// ghosts is how long a route may outlive everything that it could come from: the silent death of its publisher, that of a
// relay, and some time to tell everybody.
const ghosts = 20 * time.Second

// checkRoutes compares the routes of all relays with what can and cannot be reached.
func (r *Run) checkRoutes() {
	now, h := time.Now(), r.history
	for i, relay := range r.Relays {
		if !relay.reachable() {
			continue
		}
		have := make(map[string]bool)
		for _, info := range relay.Up().Origin().Routes() {
			have[info.Prefix] = have[info.Prefix] || info.Live
		}
		for _, name := range r.names() {
			since := now.Add(-5 * time.Second)
			r.complain(!have[name] && !h.noticed(since.Add(-clientDeath)).After(now) && h.Standing(name, i, since, now),
				"relay %d has no route to %s though there is a way", i, name)
			r.complain(have[name] && !h.Possible(name, i, now.Add(-ghosts), now),
				"relay %d has a route to %s that can lead nowhere", i, name)
		}
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
		}
		if got := w.Names(); !slices.Equal(got, r.names()) {
			r.fault("relay %d announces %v", i, got)
		}
	}
	r.checkPulls()
}

// checkPulls checks that nobody pulls a track twice once everything is calm.
func (r *Run) checkPulls() {
	for i, relay := range r.Relays {
		tracks := 0
		for _, t := range relay.Up().Origin().Tracks() {
			if t.Readers > 0 {
				tracks++
			}
		}
		if n := relay.Up().Origin().Counters().Upstreams; n != tracks {
			r.fault("relay %d has %d upstream subscriptions for %d tracks that are read", i, n, tracks)
		}
	}
}

// settled reports whether every link and every client has its session, and no relay has others.
func (r *Run) settled() bool { return r.unsettled() == "" }

func (r *Run) unsettled() string {
	r.history.look()
	expected := make([]int, len(r.Relays))
	for i, l := range r.links {
		expected[l.To]++
		if r.history.now[fact{linkUp, i}] == "" {
			return fmt.Sprintf("link %d", i)
		}
	}
	for i, m := range r.machines {
		if m.stopped() {
			continue
		}
		expected[m.access.Relay]++
		if r.history.now[fact{attached, i}] == "" {
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
			for _, f := range w.Faults {
				r.fault("%s at relay %d: %s", v.name, v.access.Relay, f)
			}
			r.judgeEnd(v, &w)
			if v.cfg.MaxAge >= careful && !r.plan.Basic {
				r.judgeGroups(v, &w)
			}
		}
	}
}

// judgeEnd checks that a subscription has not ended while there was a way.
func (r *Run) judgeEnd(v *Viewer, w *Watch) {
	if w.Ended.IsZero() || w.SessionLost || v.stopped() {
		return
	}
	from, to := w.Ended.Add(-6*time.Second), w.Ended.Add(500*time.Millisecond)
	if r.history.Standing(v.cfg.Name, v.access.Relay, from, to) && r.history.held(fact{attached, v.number}, from, to) {
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
	length := time.Duration(v.cfg.PerGroup) * v.cfg.Interval
	for seq := uint64(first.Sub(epoch)/length) + 1; ; seq++ {
		from := v.cfg.due(seq, 0)
		to := r.history.noticed(from.Add(length))
		if to.After(end) {
			return
		}
		since := from.Add(-2 * time.Second)
		if to.Sub(from) > careful-2*time.Second || !r.history.held(fact{attached, v.number}, since, to) ||
			!r.history.Standing(v.cfg.Name, v.access.Relay, since, to) {
			continue
		}
		if g := w.Groups[seq]; g == nil {
			r.fault("%s at relay %d lacks group %d of %v", v.name, v.access.Relay, seq, from.Sub(epoch))
		} else if !g.Whole(v.cfg.PerGroup) {
			r.fault("%s at relay %d lacks frames of group %d of %v: %+v", v.name, v.access.Relay, seq, from.Sub(epoch), *g)
		}
	}
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
		// A second publisher costs an update, and so may a detour that is only cut off after the hold.
		if told := w.Told(name, left); len(told) > 5 {
			r.fault("relay %d had much to say about the end of %s:%s", i, name, printTold(told, left))
		}
	}
}

func printTold(told []Told, since time.Time) string {
	var b strings.Builder
	for _, m := range told {
		fmt.Fprintf(&b, "\n\tafter %v: active=%v changed=%v %v %v", m.At.Sub(since), m.Active, m.Changed, m.Hops, m.Cost)
	}
	return b.String()
}
