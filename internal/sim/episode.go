package sim

import (
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/route"
)

// Episode is something that goes wrong and is put right again. Those of one relay, link or publisher do not overlap; all
// others may.
type Episode struct {
	steps []step
}

// When episodes begin and end, since the cluster is linked.
const (
	firstFault = 4 * time.Second
	lastFault  = 50 * time.Second
	allMended  = 65 * time.Second
)

// resource is what an episode is about.
type resource struct {
	kind string
	n    int
}

// episodes draws what goes wrong.
func (d *drawer) episodes() {
	busy := make(map[resource]time.Duration) // until when
	for range 1 + d.IntN(8) {
		begin := d.between(firstFault, lastFault)
		if d.chance(30) && len(d.plan.Episodes) > 0 { // right after the one before
			steps := d.plan.Episodes[len(d.plan.Episodes)-1].steps
			begin = steps[0].at + d.between(0, time.Second)
		}
		what, draw := d.kind()
		if busy[what] != 0 {
			continue
		}
		e := &Episode{}
		draw(e, begin, what.n)
		busy[what] = e.steps[len(e.steps)-1].at
		d.plan.Episodes = append(d.plan.Episodes, *e)
	}
}

func (e *Episode) add(at time.Duration, do func(*Run), format string, args ...any) {
	e.steps = append(e.steps, step{at, fmt.Sprintf(format, args...), do})
}

// kind draws what goes wrong, and with what.
func (d *drawer) kind() (resource, func(e *Episode, begin time.Duration, n int)) {
	top := d.plan.Topology
	switch n := d.IntN(100); {
	case n < 45:
		what := resource{"relay", d.IntN(top.Relays)}
		return what, []func(*Episode, time.Duration, int){d.restart, d.restart, d.drain, d.silence, d.unplug}[d.IntN(5)]
	case n < 75:
		what := resource{"link", d.IntN(len(top.Links))}
		return what, []func(*Episode, time.Duration, int){d.cut, d.flap, d.degrade}[d.IntN(3)]
	case n < 90:
		what := resource{"publisher", d.IntN(len(d.plan.Publishers))}
		return what, []func(*Episode, time.Duration, int){d.republish, d.overlap, d.reprice}[d.IntN(3)]
	default:
		return resource{"viewer", d.IntN(len(d.plan.Viewers))}, d.comeAndGo
	}
}

// pause draws how long something is gone: shorter or longer than the idle timeout.
func (d *drawer) pause() time.Duration {
	if d.chance(50) {
		return d.between(100*time.Millisecond, 6*time.Second)
	}
	return d.between(6*time.Second, 20*time.Second)
}

// restart ends a relay, cleanly or not, and starts it again, with the same id or another.
func (d *drawer) restart(e *Episode, begin time.Duration, n int) {
	if d.chance(60) {
		e.add(begin, func(r *Run) {
			r.history.quiet()
			r.Relays[n].Crash()
		}, "relay %d crashes", n)
	} else {
		e.add(begin, func(r *Run) { r.Relays[n].Close() }, "relay %d stops", n)
	}
	d.start(e, begin+time.Second+d.pause(), n)
}

// start starts a relay again.
func (d *drawer) start(e *Episode, at time.Duration, n int) {
	id := route.Hop(n + 1)
	if d.chance(40) {
		id = route.Hop(100 + n)
	}
	e.add(at, func(r *Run) {
		r.Relays[n].cfg.ID = id
		if err := r.Relays[n].Start(); err != nil {
			r.fault("relay %d does not start: %v", n, err)
		}
	}, "relay %d starts with id %d", n, id)
}

// drain drains a relay and starts it again.
func (d *drawer) drain(e *Episode, begin time.Duration, n int) {
	window := d.between(500*time.Millisecond, 8*time.Second)
	e.add(begin, func(r *Run) { r.Relays[n].Drain(window) }, "relay %d drains for %v", n, window)
	d.start(e, begin+window+2*time.Second+d.pause()/2, n)
}

// silence isolates a relay that runs on.
func (d *drawer) silence(e *Episode, begin time.Duration, n int) {
	e.add(begin, func(r *Run) {
		r.history.quiet()
		r.Relays[n].Isolate()
	}, "relay %d falls silent", n)
	e.add(begin+d.pause(), func(r *Run) { r.Relays[n].Rejoin() }, "relay %d is heard again", n)
}

// unplug cuts the sessions that a relay has dialed, and those alone.
func (d *drawer) unplug(e *Episode, begin time.Duration, n int) {
	e.add(begin, func(r *Run) {
		r.history.quiet()
		r.Relays[n].Unplug(true)
	}, "relay %d is unplugged from what it has dialed", n)
	e.add(begin+d.pause(), func(r *Run) { r.Relays[n].Unplug(false) }, "relay %d is plugged in again", n)
}

// cut cuts a link, in both or one direction.
func (d *drawer) cut(e *Episode, begin time.Duration, n int) {
	l := d.plan.Topology.Links[n]
	a, b := l.From, l.To
	if d.chance(50) {
		a, b = b, a
	}
	cut, how := (*Cluster).Cut, "is cut"
	if d.chance(40) {
		cut, how = (*Cluster).CutOneWay, "is cut one way"
	}
	e.add(begin, func(r *Run) {
		r.history.quiet()
		cut(r.Cluster, a, b)
	}, "the link from %d to %d %s", a, b, how)
	e.add(begin+d.pause(), func(r *Run) { r.Mend(a, b) }, "the link from %d to %d is mended", a, b)
}

// flap cuts a link several times for a moment.
func (d *drawer) flap(e *Episode, begin time.Duration, n int) {
	l := d.plan.Topology.Links[n]
	for range 2 + d.IntN(5) {
		e.add(begin, func(r *Run) {
			r.history.quiet()
			r.Cut(l.From, l.To)
		}, "the link from %d to %d flaps", l.From, l.To)
		begin += d.between(100*time.Millisecond, 2*time.Second)
		e.add(begin, func(r *Run) { r.Mend(l.From, l.To) }, "the link from %d to %d is back", l.From, l.To)
		begin += d.between(50*time.Millisecond, 2*time.Second)
	}
}

// degrade makes a link lose packets for a while.
func (d *drawer) degrade(e *Episode, begin time.Duration, n int) {
	l := d.plan.Topology.Links[n]
	bad := *l.Net
	bad.Loss += 0.02 + d.Float64()*0.08
	e.add(begin, func(r *Run) { r.SetLink(l.From, l.To, bad) }, "the link from %d to %d loses %.1f %%", l.From, l.To, 100*bad.Loss)
	e.add(begin+d.pause(), func(r *Run) { r.SetLink(l.From, l.To, *l.Net) }, "the link from %d to %d is good again", l.From, l.To)
}

// republish ends a publisher and starts it again, there or at another relay.
func (d *drawer) republish(e *Episode, begin time.Duration, n int) {
	if d.chance(50) {
		e.add(begin, func(r *Run) {
			r.history.quiet()
			r.pubs[n].Crash()
		}, "publisher %d crashes", n)
	} else {
		e.add(begin, func(r *Run) { r.pubs[n].Leave() }, "publisher %d stops", n)
	}
	relay := d.plan.Publishers[n].Relay
	if d.chance(30) {
		relay = d.IntN(d.plan.Topology.Relays)
	}
	e.add(begin+d.pause(), func(r *Run) { r.publish(n, relay) }, "publisher %d starts at relay %d", n, relay)
}

// overlap starts a second session of a publisher, and ends the first a little later.
func (d *drawer) overlap(e *Episode, begin time.Duration, n int) {
	relay := d.plan.Publishers[n].Relay
	if d.chance(30) {
		relay = d.IntN(d.plan.Topology.Relays)
	}
	var old *Publisher
	e.add(begin, func(r *Run) {
		old = r.pubs[n]
		r.publish(n, relay)
	}, "publisher %d connects to relay %d, too", n, relay)
	end := begin + d.between(100*time.Millisecond, 3*time.Second)
	if d.chance(50) {
		e.add(end, func(r *Run) {
			r.history.quiet()
			old.Crash()
		}, "the old session of publisher %d dies", n)
	} else {
		e.add(end, func(r *Run) { old.Leave() }, "the old session of publisher %d ends", n)
	}
}

// reprice changes the price of a publisher a few times.
func (d *drawer) reprice(e *Episode, begin time.Duration, n int) {
	for range 1 + d.IntN(4) {
		price := d.Uint64N(30)
		e.add(begin, func(r *Run) {
			r.pubs[n].Reprice(route.Cost{Warm: price, Cold: price})
		}, "publisher %d costs %d", n, price)
		begin += d.between(10*time.Millisecond, time.Second)
	}
}

// comeAndGo ends a viewer, cleanly or not, and starts it again.
func (d *drawer) comeAndGo(e *Episode, begin time.Duration, n int) {
	if d.chance(50) {
		e.add(begin, func(r *Run) { r.views[n].Isolate() }, "viewer %d falls silent", n)
		e.add(begin+d.pause(), func(r *Run) { r.views[n].Rejoin() }, "viewer %d is heard again", n)
		return
	}
	e.add(begin, func(r *Run) { r.views[n].Leave() }, "viewer %d leaves", n)
	e.add(begin+d.pause(), func(r *Run) { r.watch(n) }, "viewer %d comes back", n)
}
