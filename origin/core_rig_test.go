package origin

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// What the versions of moq-lite can carry.
var (
	lite06 = session.Caps{
		TrackInfo: true, Update: true, Fetch: true, FrameBounds: true, Floor: true, Range: true, Timestamps: true,
	}
	lite05 = session.Caps{TrackInfo: true, Update: true, Fetch: true, Range: true, Timestamps: true}
	lite04 = session.Caps{Update: true, Range: true}
	lite02 = session.Caps{}
)

var errTest = errors.New("scripted refusal")

// coreRig runs a core on a real media track. Sources are named A, B, ...; it answers questions and confirms requests by
// itself unless a source is held back, and logs effects as text.
type coreRig struct {
	tester
	core    core
	cache   *media.Cache
	sources map[string]*scripted
	copies  map[copyID]*scriptedCopy
	log     []string
	mu      sync.Mutex // guards queue: readers wake copies too
	queue   []event
	busy    bool
	demand  demand
	readers map[string]*testReader
	waiting int
	full    bool                  // there is no place for hedges
	slow    bool                  // the owner does not answer what the core asks
	asked   uint64                // what it asked last
	became  [hedgeRefused + 1]int // hedges, by outcome
	stamp   func() string
	ts      *uint64 // of the frames to be sent, if not as usual
}

// tester is what testing.T and rapid.T share.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Error(args ...any)
	Fatalf(format string, args ...any)
}

type scripted struct {
	name string
	source
	info  media.Info
	err   error  // of the answer
	held  bool   // questions and requests stay open
	ahead uint64 // of its timestamps
	deaf  bool   // nothing arrives from its session
	late  []event
}

// answer says what was held back.
func (r *coreRig) answer(name string) {
	s := r.sources[name]
	s.held = false
	for _, ev := range s.late {
		r.do(ev)
	}
	s.late = nil
}

// reply gives an answer of a source, now or later.
func (r *coreRig) reply(s *scripted, ev event) {
	if s.held {
		s.late = append(s.late, ev)
	} else {
		r.post(ev)
	}
}

type scriptedCopy struct {
	of      *scripted
	media   *media.Copy
	writers map[uint64]*media.GroupWriter
	next    map[uint64]uint64
}

// coreTest runs a test of the core in a bubble.
func coreTest(t *testing.T, f func(r *coreRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newCoreRig(t)
		f(r)
		for _, tr := range r.readers {
			tr.close()
		}
	})
}

func newCoreRig(t tester) *coreRig {
	r := &coreRig{
		tester: t, cache: media.NewCache(media.CacheConfig{}),
		sources: make(map[string]*scripted), copies: make(map[copyID]*scriptedCopy),
		readers: make(map[string]*testReader), stamp: func() string { return "" },
	}
	r.core = core{
		who:    make(audience),
		linger: media.Linger, maxAge: media.Unlimited, newTrack: r.cache.NewTrack,
		out: make(map[sourceID]exclusion), infos: make(map[sourceID]media.Info),
		waker: func(id copyID) media.Waker { return coreWaker{r, id} },
	}
	r.cache.Sweep(time.Now())
	return r
}

// coreWaker turns what a media copy has to tell into an event.
type coreWaker struct {
	r  *coreRig
	id copyID
}

func (w coreWaker) Wake() { w.r.post(copyMoved{w.id}) }

// post queues an event.
func (r *coreRig) post(ev event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, ev)
}

// take returns the next event.
func (r *coreRig) take() (event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil, false
	}
	ev := r.queue[0]
	r.queue = r.queue[1:]
	return ev, true
}

// testInfo is what all sources say unless told otherwise: milliseconds, 10 s of retention.
func testInfo() media.Info {
	return media.Info{Priority: 127, MaxAge: 10 * time.Second, Timescale: 1000}
}

// source makes a source. It is not a route yet.
func (r *coreRig) source(name string, caps session.Caps) *scripted {
	s := &scripted{name: name, info: testInfo()}
	s.source = source{id: sourceID(len(r.sources) + 1), caps: caps}
	s.path, s.link, s.peer = name, &link{}, route.Hop(s.id)
	s.hops = hopString([]route.Hop{s.peer})
	r.sources[name] = s
	return s
}

// rank tells the core its sources, best first; "|" begins the next prefix, a "!" after a name means GOAWAY.
func (r *coreRig) rank(names ...string) {
	layers := [][]source{nil}
	for _, n := range names {
		if n == "|" {
			layers = append(layers, nil)
			continue
		}
		s := r.sources[strings.TrimSuffix(n, "!")]
		if s == nil {
			s = r.source(n, lite06)
		}
		src := s.source
		src.goaway = strings.HasSuffix(n, "!")
		layers[len(layers)-1] = append(layers[len(layers)-1], src)
	}
	if len(names) == 0 {
		layers = nil
	}
	if r.core.track == nil && r.waiting == 0 {
		r.core.layers = layers // a track begins with its sources and a request
		return
	}
	r.do(routesChanged{layers: layers})
}

// suspend tells the core that there are stale routes only.
func (r *coreRig) suspend() { r.do(routesChanged{suspended: true}) }

// do gives the core an event and whatever follows from it.
func (r *coreRig) do(ev event) {
	r.post(ev)
	if r.busy {
		return
	}
	r.busy = true
	defer func() { r.busy = false }()
	for ev, some := r.take(); some; ev, some = r.take() {
		for _, e := range r.core.apply(time.Now(), ev) {
			r.carryOut(e)
		}
		r.check()
	}
}

// check holds what must be so at any time (invariant 3 of the design).
func (r *coreRig) check() {
	r.Helper()
	n := 0
	for _, u := range r.core.copies {
		if u.phase == serving {
			n++
		}
	}
	if n > 1 {
		r.Errorf("%d copies serve", n)
	}
	if len(r.core.copies) > maxCopies {
		r.Errorf("%d copies at a time", len(r.core.copies))
	}
	hedged := 0
	for _, u := range r.core.copies {
		if u.hedge {
			hedged++
			if s := r.core.in(serving); s != nil && s.src.link == u.src.link {
				r.Error("the hedge is on the session that is silent")
			}
		} else if u.phase == standby {
			r.Error("a hedge that is none")
		}
	}
	if h := &r.core.hedge; hedged > 1 || hedged == 1 && !h.on || h.on && r.core.here+r.core.wait == 0 {
		r.Errorf("%d hedges, one is on: %v, %d readers", hedged, h.on, r.core.here)
	}
	if r.core.here == 0 && len(r.core.copies) > 0 {
		r.Errorf("%d copies without a reader", len(r.core.copies))
	}
}

func (r *coreRig) carryOut(e effect) {
	say := func(format string, args ...any) { r.log = append(r.log, r.stamp()+fmt.Sprintf(format, args...)) }
	switch e := e.(type) {
	case askInfo:
		s := r.sources[e.src.path]
		say("info %s", s.name)
		r.reply(s, infoAnswered{e.id, s.info, s.err})
	case cancelInfo:
		say("cancel info")
	case expel:
		say("expel %s", e.src.path)
	case trackReady:
	case checkRoutes:
		if r.asked = e.id; r.slow {
			say("check")
		} else {
			r.post(routesChecked(e))
		}
	case openCopy:
		s := r.sources[e.src.path]
		r.copies[e.id] = &scriptedCopy{
			of: s, media: e.media, writers: make(map[uint64]*media.GroupWriter), next: make(map[uint64]uint64),
		}
		say("open %s %s", s.name, ask(e.sub))
		r.reply(s, copyOpened{e.id})
	case updateCopy:
		say("update %s %s", r.copies[e.id].of.name, ask(e.sub))
	case cancelCopy:
		say("cancel %s", r.copies[e.id].of.name)
	case wantHedge:
		if !r.full {
			r.post(hedgeGranted{})
		}
	case unwantHedge:
	case hedged:
		r.became[e.hedgeOutcome]++
		say("hedge %s %s", e.src.path, e.hedgeOutcome)
	case suspect:
		say("suspect %s", e.src.path)
		e.src.link.suspicious.Store(true)
	case servedBy:
		say("serve %s", e.src.path)
	case excluded:
		say("exclude %s", e.src.path)
	case partTrack:
		say("part")
	case failTrack:
		say("fail: %v", e.err)
	case forgetTrack:
		say("forget")
	default:
		r.Fatalf("unknown effect %T", e)
	}
}

// ask is a subscription in the notation of the worked examples.
func ask(s media.Subscription) string {
	pos := func(p *media.Position) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprintf("(%d,%d)", p.Group, p.Frame)
	}
	return fmt.Sprintf("%d %v [%s,%s)", s.Priority, s.MaxAge, pos(s.Start), pos(s.End))
}

// expect compares what was logged since the last time.
func (r *coreRig) expect(want ...string) {
	r.Helper()
	if want == nil {
		want = []string{}
	}
	got := r.log
	if got == nil {
		got = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("effects (-want +got):\n%s", diff)
	}
	r.log = nil
}

// want is a subscription: positions are "g,f" or "".
func sub(priority uint8, maxAge time.Duration, start, end string) media.Subscription {
	pos := func(s string) *media.Position {
		if s == "" {
			return nil
		}
		var p media.Position
		if _, err := fmt.Sscanf(s, "%d,%d", &p.Group, &p.Frame); err != nil {
			panic(err)
		}
		return &p
	}
	return media.Subscription{Priority: priority, MaxAge: maxAge, Start: pos(start), End: pos(end)}
}

// live is a viewer of the live edge with two seconds of patience.
func live() media.Subscription { return sub(10, 2*time.Second, "", "") }

// join adds a reader; the first one makes the core ask for the properties.
func (r *coreRig) join(name string, s media.Subscription) {
	if r.core.track == nil {
		r.waiting = 1
		r.tellDemand()
		if r.core.track == nil {
			return // the sources are held back, or have refused
		}
	}
	r.waiting = 0
	tr := newTestReader(s)
	tr.media = r.core.track.NewReader(s, tr)
	go tr.run()
	r.readers[name] = tr
	r.demand.add(s)
	r.tellDemand()
}

func (r *coreRig) update(name string, s media.Subscription) {
	tr := r.readers[name]
	tr.media.Update(s)
	r.demand.remove(tr.sub)
	tr.sub = s
	r.demand.add(s)
	r.tellDemand()
}

func (r *coreRig) leave(name string) {
	tr := r.readers[name]
	tr.close()
	r.demand.remove(tr.sub)
	delete(r.readers, name)
	r.tellDemand()
}

func (r *coreRig) tellDemand() {
	ev := demandChanged{readers: r.demand.total, waiting: r.waiting}
	if ev.readers > 0 {
		ev.want, ev.asks = r.demand.aggregate(r.core.track.Info().MaxAge)
	}
	r.do(ev)
}

// hedges turns hedged failover on, as it is by default.
func (r *coreRig) hedges() {
	r.core.hedge.floor, r.core.hedge.idle = DefaultHedge, DefaultIdleTimeout
	r.beat()
}

// step is how often the rig looks at its clock.
func (r *coreRig) step() time.Duration {
	if r.core.hedge.floor > 0 {
		return 10 * time.Millisecond
	}
	return 250 * time.Millisecond
}

// beat stamps what arrives now, and has sessions heard that are alive.
func (r *coreRig) beat() {
	if r.core.hedge.floor == 0 {
		return
	}
	now := time.Now()
	r.cache.Beat(now)
	for _, s := range r.sources {
		if !s.deaf {
			s.link.hear(now)
		}
	}
}

// pass lets time pass.
func (r *coreRig) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(r.step(), time.Until(end)))
		r.beat()
		r.cache.Sweep(time.Now())
		if due := r.core.deadline(); !due.IsZero() && !time.Now().Before(due) {
			r.do(tick{})
		}
		r.do(copyMoved{})
	}
}

// copyOf is the newest copy from a source.
func (r *coreRig) copyOf(name string) (copyID, *scriptedCopy) {
	r.Helper()
	var id copyID
	for i, c := range r.copies {
		if c.of.name == name && i > id {
			id = i
		}
	}
	if id == 0 {
		r.Fatalf("%s was not asked", name)
	}
	return id, r.copies[id]
}

// send has a copy deliver frames from..to of a group, opening the stream if need be. The payload names the frame; its
// timestamp is 1 s per group and 33 ms per frame.
func (r *coreRig) send(name string, group, from, to uint64) {
	r.Helper()
	if err := r.try(name, group, from, to); err != nil {
		r.Errorf("group %d from %s: %v", group, name, err)
	}
}

// refuses is send for what must be stopped, with want.
func (r *coreRig) refuses(name string, group, from uint64, want error) {
	r.Helper()
	if err := r.try(name, group, from, from); !errors.Is(err, want) {
		r.Errorf("group %d from %s: %v, want %v", group, name, err, want)
	}
}

func (r *coreRig) try(name string, group, from, to uint64) error {
	r.Helper()
	_, c := r.copyOf(name)
	w := c.writers[group]
	if w == nil {
		var err error
		if w, err = c.media.Group(group, from); err != nil {
			r.do(copyMoved{})
			return err
		}
		c.writers[group], c.next[group] = w, from
	}
	for f := from; f <= to; f++ {
		ts := c.of.ahead + group*1000 + f*33
		if r.ts != nil {
			ts = *r.ts
		}
		if err := w.WriteFrame(ts, fmt.Appendf(nil, "%d:%d", group, f)); err != nil {
			delete(c.writers, group)
			w.Abort(err)
			r.do(copyMoved{})
			return err
		}
	}
	r.do(copyMoved{})
	synctest.Wait() // readers take up what is there
	return nil
}

// finish ends a group stream cleanly, reset with an error.
func (r *coreRig) finish(name string, group uint64) {
	r.Helper()
	_, c := r.copyOf(name)
	if w := c.writers[group]; w != nil {
		w.Finish()
		delete(c.writers, group)
	}
	r.do(copyMoved{})
}

func (r *coreRig) reset(name string, group uint64) {
	_, c := r.copyOf(name)
	c.writers[group].Abort(errTest)
	delete(c.writers, group)
	r.do(copyMoved{})
}

// whole is a complete group of n frames.
func (r *coreRig) whole(name string, group, n uint64) {
	r.Helper()
	r.send(name, group, 0, n-1)
	r.finish(name, group)
}

func (r *coreRig) start(name string, group uint64) {
	_, c := r.copyOf(name)
	c.media.Start(group)
	r.do(copyMoved{})
}

func (r *coreRig) end(name string, group uint64) {
	_, c := r.copyOf(name)
	c.media.End(group)
	r.do(copyMoved{})
}

// done ends a subscription of a source, with its streams.
func (r *coreRig) done(name string, err error) {
	id, c := r.copyOf(name)
	for g, w := range c.writers {
		if err != nil {
			w.Abort(err)
		}
		delete(c.writers, g)
	}
	r.do(copyDone{id, err})
}

// cut ends a subscription whose streams nobody reset.
func (r *coreRig) cut(name string, err error) {
	id, c := r.copyOf(name)
	clear(c.writers)
	r.do(copyDone{id, err})
}

// die is the end of the session of a source: its subscription goes first, then its route.
func (r *coreRig) die(name string, left ...string) {
	r.done(name, net.ErrClosed)
	r.rank(left...)
}

func (r *coreRig) got(name, want string) {
	r.Helper()
	if got := r.readers[name].text(); got != want {
		r.Errorf("%s has got %q, want %q", name, got, want)
	}
}
