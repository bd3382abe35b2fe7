package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// fact is something that is so for a while.
type fact struct {
	kind factKind
	n    int    // of the relay, link or client
	name string // of the broadcast, where there is one
}

type factKind uint8

const (
	// What the test has done, exactly.
	relayRuns factKind = iota // it runs, and packets reach it
	linkOpen                  // packets pass in both directions, and both relays run
	// What can be seen from outside, as often as it is looked at.
	linkUp   // an open link with a session that both ends hold
	attached // the client has a session that its relay holds, too, and packets pass
	routed   // the relay has a live route to the broadcast
)

// span is how long a fact held.
type span struct{ from, to time.Time }

// History records what was so when, to tell what could have been expected.
type History struct {
	c      *Cluster
	facts  map[fact][]span
	now    map[fact]string // which of its kind it was at the last look; empty = it was not so
	silent []span          // faults that nobody is told of, until they have been noticed everywhere
}

func newHistory(c *Cluster) *History {
	h := &History{c: c, facts: make(map[fact][]span), now: make(map[fact]string)}
	c.Sampled(h.look)
	return h
}

// silentDeath is how long the death of a relay, link or client without a word takes to be noticed: the idle timeout and a
// second (C14).
const silentDeath = 11 * time.Second

// quiet notes that something dies without a word, which will be noticed after a while.
func (h *History) quiet() {
	h.silent = append(h.silent, span{time.Now(), time.Now().Add(silentDeath)})
}

// look notes what is so now. It is called now and then, and right before and after each fault.
func (h *History) look() {
	for i, r := range h.c.Relays {
		up := ""
		if r.reachable() {
			up = fmt.Sprintf("%p", r.Up())
		}
		h.set(fact{kind: relayRuns, n: i}, up)
	}
	for i, l := range h.c.links {
		from, to := h.c.Relays[l.From], h.c.Relays[l.To]
		open, up := "", ""
		if from.reachable() && to.reachable() && !h.c.isCut(from.host, to.host) && !from.unplugged {
			open = "open"
			if near, far := from.dialed(l), to.accepted(from.host, from.dialPort()); near != "" && far != "" {
				up = near + far
			}
		}
		h.set(fact{kind: linkOpen, n: i}, open)
		h.set(fact{kind: linkUp, n: i}, up)
	}
	for i, m := range h.c.machines {
		up := ""
		if r := h.c.Relays[m.access.Relay]; !m.stopped() && r.reachable() && !h.c.isolated[m.host] {
			up = r.accepted(m.host, m.port)
		}
		h.set(fact{kind: attached, n: i}, up)
	}
}

// note notes whether something is so now.
func (h *History) note(kind factKind, n int, name string, is bool) {
	id := ""
	if is {
		id = "so"
	}
	h.set(fact{kind, n, name}, id)
}

// set notes which of its kind a fact is now, empty for none.
func (h *History) set(f fact, id string) {
	now, was := time.Now(), h.now[f]
	spans := h.facts[f]
	if was != "" && (id == was || id == "") {
		spans[len(spans)-1].to = now // exact where the fault was the test's: that looks before it acts
	}
	if id != "" && id != was {
		h.facts[f] = append(spans, span{now, now})
	}
	h.now[f] = id
}

// held reports whether a fact was so all the time.
func (h *History) held(f fact, from, to time.Time) bool {
	for _, s := range h.facts[f] {
		if !s.from.After(from) && !s.to.Before(to) {
			return true
		}
	}
	return false
}

// ever reports whether a fact was so at any time between.
func (h *History) ever(f fact, from, to time.Time) bool {
	for _, s := range h.facts[f] {
		if !s.from.After(to) && !s.to.Before(from) {
			return true
		}
	}
	return false
}

// act is some time to act on news: to tell everybody, to ask anew, to come out of a hold.
const act = 5 * time.Second

// unnoticed reports whether something that had died without a word may still have been in use at a time: relays that prefer
// it tell nobody of the ways they have beside it.
func (h *History) unnoticed(at time.Time) bool {
	return slices.ContainsFunc(h.silent, func(s span) bool { return !s.from.After(at) && s.to.Add(act).After(at) })
}

// noticed is when everything is known, by those whom it concerns, that has died without a word before then and was not
// known at a time, with some time to act on it.
func (h *History) noticed(since time.Time) time.Time {
	all := since.Add(act)
	for again := true; again; {
		again = false
		for _, s := range h.silent {
			if s.to.After(since) && s.from.Before(all) && s.to.Add(act).After(all) {
				all, again = s.to.Add(act), true
			}
		}
	}
	return all
}

// Standing reports whether one and the same way led from one and the same publisher of a broadcast to a relay all the time.
func (h *History) Standing(name string, relay int, from, to time.Time) bool {
	held := func(f fact) bool { return h.held(f, from, to) }
	return h.reach(name, held, linkUp, attached)[relay]
}

// Possible reports whether there was anything at any time between that a route to a broadcast could have come by.
func (h *History) Possible(name string, relay int, from, to time.Time) bool {
	ever := func(f fact) bool { return h.ever(f, from, to) }
	return h.reach(name, ever, linkOpen, attached)[relay]
}

// reach returns the relays that a broadcast can be pulled from.
func (h *History) reach(name string, is func(fact) bool, link, client factKind) map[int]bool {
	reached := make(map[int]bool)
	var queue []int
	visit := func(i int) {
		if !reached[i] && is(fact{kind: relayRuns, n: i}) {
			reached[i] = true
			queue = append(queue, i)
		}
	}
	for _, p := range h.c.publishers {
		if p.cfg.Name == name && is(fact{kind: client, n: p.number}) {
			visit(p.access.Relay)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		for i, l := range h.c.links {
			switch at := queue[0]; {
			case at != l.From && at != l.To:
			case is(fact{kind: link, n: i}):
				visit(l.From + l.To - at)
			}
		}
	}
	return reached
}

// reachable reports whether the relay runs and packets reach it.
func (r *Relay) reachable() bool { return r.Up() != nil && !r.of.isolated[r.host] }

// dialed returns the session of a link that the relay dials, empty if it has none.
func (r *Relay) dialed(l Link) string {
	url := r.of.Relays[l.To].URL(l.scheme())
	for _, p := range r.Up().Peers() {
		if p.Key == url && len(p.Sessions) > 0 {
			return fmt.Sprint(p.Sessions)
		}
	}
	return ""
}

// accepted returns the session that came from an address, empty if there is none.
func (r *Relay) accepted(host netip.Addr, port uint16) string {
	remote := netip.AddrPortFrom(host, port).String()
	for _, s := range r.Up().State().Sessions() {
		if s.Remote == remote {
			return s.ID
		}
	}
	return ""
}
