package origin

import (
	"container/list"
	"log/slog"
	"net"
	"time"

	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// sweepEvery is how often the cache looks at its clock.
const sweepEvery = 250 * time.Millisecond

// owner is what the owner goroutine of an Origin works with; nobody else touches it. It never waits for anything but its
// next message.
type owner struct {
	o        *Origin
	table    *route.Table
	sessions map[route.SessionID]*Session
	feeds    map[route.ConsumerID]ear
	lastID   uint64 // of sessions and consumers

	fronts  map[frontKey]*front
	below   map[string]map[*front]struct{} // fronts by every prefix that covers them
	idle    *list.List                     // fronts without tracks, the longest idle first
	tracks  int                            // tracks that requests can find
	resting *list.List                     // those without readers, the longest first
	actors  map[*track]struct{}            // all whose goroutine runs

	gate gate

	closing bool
}

func newOwner(o *Origin) *owner {
	return &owner{
		o:        o,
		table:    route.New(route.Config{Hop: o.cfg.Hop, MaxHops: o.cfg.MaxHops, Quarantine: o.cfg.Quarantine}),
		sessions: make(map[route.SessionID]*Session),
		feeds:    make(map[route.ConsumerID]ear),
		fronts:   make(map[frontKey]*front),
		below:    make(map[string]map[*front]struct{}),
		idle:     list.New(),
		resting:  list.New(),
		actors:   make(map[*track]struct{}),
	}
}

func (w *owner) run() {
	defer close(w.o.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	stop := w.sweep()
	defer stop()
	if w.o.cfg.Hedge > 0 {
		stop := w.beat()
		defer stop()
	}
	for !w.closing || len(w.actors) > 0 {
		w.arm(timer)
		select {
		case m := <-w.o.inbox:
			m.handle(w)
		case <-timer.C:
			now := time.Now()
			w.carryOut(w.table.Expire(now))
			w.admitHedges(now)
		}
	}
}

// sweep tells the cache the time, in a goroutine of its own, until the function it returns is called.
func (w *owner) sweep() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				w.o.cfg.Cache.Sweep(now)
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// arm sets the timer to the next deadline, of the table or of the gate.
func (w *owner) arm(timer *time.Timer) {
	due, ok := w.table.Deadline()
	if at, waits := w.gate.deadline(); waits && (!ok || at.Before(due)) {
		due, ok = at, true
	}
	if ok {
		timer.Reset(time.Until(due))
	} else {
		timer.Stop()
	}
}

// apply gives the table an event and carries out what follows.
func (w *owner) apply(e route.Event) error {
	effects, err := w.table.Apply(time.Now(), e)
	w.carryOut(effects)
	return err
}

func (w *owner) carryOut(effects []route.Effect) {
	var changed map[*front]struct{}
	for _, e := range effects {
		switch e := e.(type) {
		case route.Tell:
			w.tell(e)
		case route.Changed:
			for f := range w.below[e.Prefix] {
				if changed == nil {
					changed = make(map[*front]struct{})
				}
				changed[f] = struct{}{}
			}
		case route.Declined:
			w.o.log.Debug("advertisement declined", "session", w.logID(e.Session), "prefix", e.Prefix,
				"reason", e.Reason)
		case route.RouteGone:
			w.o.log.Debug("route gone", "session", w.logID(e.Session), "prefix", e.Prefix, "how", e.How)
		}
	}
	for f := range changed {
		w.reselect(f)
	}
}

// logID is the id by which the embedder knows a session.
func (w *owner) logID(id route.SessionID) slog.Value {
	if s := w.sessions[id]; s != nil {
		return slog.Uint64Value(s.peer.ID)
	}
	return slog.StringValue("ended")
}

var updateKinds = map[route.TellKind]session.UpdateKind{
	route.TellNew:    session.UpdateNew,
	route.TellChange: session.UpdateChange,
	route.TellGone:   session.UpdateGone,
}

func (w *owner) tell(e route.Tell) {
	if f, ok := w.feeds[e.Consumer]; ok {
		f.put(session.Update{Kind: updateKinds[e.Kind], Name: paths.Join(f.under, e.Name), Hops: e.Hops, Cost: e.Cost})
	}
}

// newID is unique among sessions and among consumers, and not 0.
func (w *owner) newID() uint64 {
	w.lastID++
	return w.lastID
}

// shutdown is Origin.Close.
type shutdown struct{}

func (shutdown) handle(w *owner) {
	if w.closing {
		return
	}
	w.closing = true
	for _, f := range w.feeds {
		f.end(net.ErrClosed)
	}
	for t := range w.actors { // before the sessions, whose end they would take for a lost source
		t.shut()
	}
	for _, s := range w.sessions {
		s.end(net.ErrClosed)
	}
}
