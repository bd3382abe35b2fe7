package route_test

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"pgregory.net/rapid"
)

// chooser makes the random decisions: rapid, or the input of the fuzzer.
type chooser interface {
	below(n int) int // 0 to n-1
	more() bool
	Fatalf(format string, args ...any)
}

type rapidChooser struct {
	*rapid.T
	left int
}

func (c *rapidChooser) below(n int) int { return rapid.IntRange(0, n-1).Draw(c.T, "choice") }

func (c *rapidChooser) more() bool {
	c.left--
	return c.left >= 0
}

type byteChooser struct {
	testing.TB
	data []byte
}

func (c *byteChooser) below(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0]) % n
	c.data = c.data[1:]
	return v
}

func (c *byteChooser) more() bool { return len(c.data) > 0 }

func TestRandomEventsAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newRandomRun(&rapidChooser{T: t, left: rapid.IntRange(1, 80).Draw(t, "events")}).run()
	})
}

func FuzzApply(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"))
	for seed := range 8 {
		data := make([]byte, 150)
		for i := range data {
			data[i] = byte((i*i*7 + i*seed*13 + seed) >> (i % 3))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 300 {
			return
		}
		newRandomRun(&byteChooser{TB: t, data: data}).run()
	})
}

func pick[T any](c chooser, of ...T) T { return of[c.below(len(of))] }

// randomRun feeds the same random events to a table and to the model and compares all that can be seen.
type randomRun struct {
	c     chooser
	table *route.Table
	twin  *route.Table // another of the same: whatever happens must not depend on chance
	model *model
	now   time.Duration
	fresh int // for ids that are used once
	log   []string
}

func newRandomRun(c chooser) *randomRun {
	cfg := route.Config{Hop: 1, MaxHops: pick(c, 0, 3, 4), Quarantine: c.below(3) == 2}
	m := &model{hop: 1, maxHops: cfg.MaxHops, quarantine: cfg.Quarantine}
	if m.maxHops == 0 {
		m.maxHops = 32
	}
	return &randomRun{c: c, table: route.New(cfg), twin: route.New(cfg), model: m}
}

func (r *randomRun) run() {
	for r.c.more() {
		r.now += time.Duration(pick(r.c, 0, 0, 0, 1, 10, 150, 299, 300, 301, 1000, 2000)) * time.Millisecond
		r.step(r.event())
	}
	r.drain()
}

// drain ends everything and checks that nothing is left.
func (r *randomRun) drain() {
	for _, c := range slices.Clone(r.model.consumers) {
		r.step(route.Unlisten{Consumer: c.id})
	}
	for _, s := range slices.Clone(r.model.sessions) {
		r.step(route.SessionDown{ID: s.ID})
	}
	if err := r.table.Empty(); err != nil {
		r.fail("after the end: %v", err)
	}
}

func (r *randomRun) fail(format string, args ...any) {
	r.c.Fatalf("%s\n%s", strings.Join(r.log, "\n"), fmt.Sprintf(format, args...))
}

// step applies an event, or only lets time pass if it is nil, on both sides.
func (r *randomRun) step(e route.Event) {
	r.log = append(r.log, fmt.Sprintf("%v %T %+v", r.now, e, e))
	before := r.views()
	var got, twin []route.Effect
	var err, wantErr error
	r.model.effects = nil
	r.model.expire(r.now)
	if e == nil {
		got = r.table.Expire(epoch.Add(r.now))
		twin = r.twin.Expire(epoch.Add(r.now))
	} else {
		got, err = r.table.Apply(epoch.Add(r.now), e)
		twin, _ = r.twin.Apply(epoch.Add(r.now), e)
		wantErr = r.model.apply(e)
	}
	if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		r.fail("error %v, want %v", err, wantErr)
	}
	if !reflect.DeepEqual(got, twin) {
		r.fail("effects are not determined: %v, %v", got, twin)
	}
	r.compareEffects(got)
	r.compareDeadline()
	r.compareState()
	for _, v := range before {
		if after := r.view(v.path, v.x); after != v.seen && !slices.ContainsFunc(got, func(e route.Effect) bool {
			c, ok := e.(route.Changed)
			return ok && paths.Covers(c.Prefix, v.path)
		}) {
			r.fail("candidates of %q for %v went from %s to %s without a Changed", v.path, v.x, v.seen, after)
		}
	}
}

func (r *randomRun) compareEffects(got []route.Effect) {
	got = slices.DeleteFunc(slices.Clone(got), func(e route.Effect) bool {
		_, ok := e.(route.Changed)
		return ok
	})
	want := slices.Clone(r.model.effects)
	slices.SortStableFunc(got, compareEffects)
	slices.SortStableFunc(want, compareEffects)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		r.fail("effects (-want +got):\n%s", diff)
	}
}

// compareEffects orders what may come in any order, but not what concerns one consumer and name, or one
// advertisement.
func compareEffects(a, b route.Effect) int {
	key := func(e route.Effect) (kind int, id, sub uint64, name string) {
		switch e := e.(type) {
		case route.Tell:
			return 0, uint64(e.Consumer), 0, e.Name
		case route.RouteGone:
			return 1, uint64(e.Session), uint64(e.Advert), ""
		case route.Declined:
			return 2, uint64(e.Session), uint64(e.Advert), ""
		}
		return 3, 0, 0, ""
	}
	kindA, idA, subA, nameA := key(a)
	kindB, idB, subB, nameB := key(b)
	return cmp.Or(cmp.Compare(kindA, kindB), cmp.Compare(idA, idB), cmp.Compare(subA, subB), cmp.Compare(nameA, nameB))
}

func (r *randomRun) compareDeadline() {
	due, ok := r.table.Deadline()
	want, fire := r.model.next()
	if ok != (fire != nil) || ok && due.Sub(epoch) != want {
		r.fail("deadline %v %v, want %v", due.Sub(epoch), ok, want)
	}
}

var (
	randomPrefixes = []string{"", "a", "a/b", "a/b/z", "a/.h", "b", ".h"}
	randomSets     = []string{"**", "**", "**", "a/**", "a/b", "a/*", "b,a/.h", "**/b", "-"}
)

// compareState compares what requests and pages see.
func (r *randomRun) compareState() {
	for _, v := range r.views() {
		refused := map[uint64]bool{}
		for {
			var want []uint64
			for _, a := range r.model.candidates(v.path, v.x, refused) {
				want = append(want, a.seq)
			}
			var got []uint64
			for _, c := range r.table.Candidates(v.path, v.x, func(c route.Route) bool { return refused[c.Seq] }) {
				got = append(got, c.Seq)
			}
			if !slices.Equal(got, want) {
				r.fail("candidates of %q for %v without %v: %v, want %v", v.path, v.x, refused, got, want)
			}
			if len(refused) == 0 {
				r.compareLookup(v.path, v.x, want)
			}
			if len(want) == 0 {
				break
			}
			refused[want[0]] = true
		}
		if got, want := r.table.Through(v.path, v.x), r.model.through(v.path, v.x); got != want {
			r.fail("%q through %v: %v", v.path, v.x, got)
		}
	}
	r.compareNames()
	r.compareSnapshot()
}

// compareNames compares the listing with what the model would tell a reader of this process.
func (r *randomRun) compareNames() {
	r.compareNamesOf("", paths.Mounts{{At: "a/b", Target: "b"}}, nil)
	r.compareNamesOf("b", paths.Mounts{{At: "a/b", Target: "b"}}, &paths.Mount{At: "a/b", Target: "b"})
	for _, root := range []string{"", "a", "a/b/z/z"} {
		r.compareNamesOf(root, nil, nil)
	}
}

func (r *randomRun) compareNamesOf(root string, mounts paths.Mounts, through *paths.Mount) {
	for i, text := range []string{"**", "a/*"} {
		subscribe, err := paths.ParseSet(text)
		if err != nil {
			r.fail("%v", err)
		}
		v := route.View{
			Root: root, Subscribe: subscribe, Mounts: mounts, Through: through, Hidden: i == 0,
			Requester: route.Requester{Session: 1, Hop: 3},
		}
		c := &modelConsumer{x: 3, root: root, through: through, s: &modelSession{SessionInfo: route.SessionInfo{
			ID: 1, Wire: route.WireLocal, Subscribe: subscribe, Mounts: mounts, Hidden: v.Hidden,
		}}}
		var want []string
		for _, prefix := range randomPrefixes {
			name, ok := c.presents(&modelAdvert{prefix: prefix})
			if ok && r.model.best(c, name) != nil {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := r.table.Names(v); !slices.Equal(got, want) {
			r.fail("names below %q for %s: %q, want %q", root, text, got, want)
		}
	}
}

func (r *randomRun) compareLookup(path string, x route.Requester, want []uint64) {
	got, ok := r.table.Lookup(path, x)
	if ok != (len(want) > 0) || ok && got.Seq != want[0] {
		r.fail("lookup of %q for %v: %+v %v, want %v", path, x, got, ok, want)
	}
}

func (r *randomRun) compareSnapshot() {
	snapshot := r.table.Snapshot()
	routes, declined, marks, holds := 0, 0, 0, 0
	for _, p := range snapshot.Prefixes {
		marks += len(p.Marks)
		declined += len(p.Declined)
		for i, ranked := range p.Routes {
			routes++
			a := r.model.advert(ranked.Session, ranked.Advert)
			want := route.Route{
				Session: a.s.ID, Advert: a.id, Prefix: a.prefix, Hops: a.hops, Cost: a.cost, Via: a.s.identity,
				Source: a.s.Source, Seq: a.seq, Goaway: a.s.goaway, Live: !a.stale,
			}
			if fmt.Sprint(ranked.Route) != fmt.Sprint(want) {
				r.fail("route %+v, want %+v", ranked.Route, want)
			}
			if (ranked.Step == route.StepNone) != (i == 0) {
				r.fail("step %v of route %d at %q", ranked.Step, i, p.Prefix)
			}
		}
	}
	for _, a := range r.model.adverts {
		if a.reason == 0 {
			routes--
		} else {
			declined--
		}
	}
	for _, c := range r.model.consumers {
		for _, n := range c.names {
			if n.due != 0 {
				holds++
			}
		}
	}
	if routes != 0 || declined != 0 || marks != len(r.model.marks) || holds != len(snapshot.Holds) {
		r.fail("snapshot has %d routes and %d declined too many, %d marks, %d holds", routes, declined, marks, len(snapshot.Holds))
	}
}

// randomView is what one requester finds for one path.
type randomView struct {
	path string
	x    route.Requester
	seen string
}

func (r *randomRun) views() []randomView {
	var out []randomView
	requesters := []route.Requester{{}, {Local: true}, {Hop: 3}}
	for _, s := range r.model.sessions {
		x := route.Requester{Session: s.ID, Hop: s.identity}
		if got := r.table.Requester(s.ID); got != x {
			r.fail("requester %v, want %v", got, x)
		}
		requesters = append(requesters, x)
	}
	for _, path := range []string{"", "a", "a/b/z/z", "a/.h", "b/z"} {
		for _, x := range requesters {
			out = append(out, randomView{path, x, r.view(path, x)})
		}
	}
	return out
}

func (r *randomRun) view(path string, x route.Requester) string {
	text := ""
	for _, a := range r.model.candidates(path, x, nil) {
		text += fmt.Sprint(a.seq, a.hops, a.cost, a.s.goaway, ";")
	}
	return text
}

// event draws an event. About one in twenty is refused.
func (r *randomRun) event() route.Event {
	c := r.c
	session := route.SessionID(c.below(6) + 1)
	if r.model.session(session) == nil && c.below(20) > 0 {
		return r.sessionUp(session)
	}
	advert := route.AdvertID(c.below(5) + 1)
	if known := r.advertsOf(session); len(known) > 0 && c.below(10) > 0 {
		advert = pick(c, known...)
	}
	switch c.below(16) {
	case 0, 1, 2, 3:
		r.fresh++
		if c.below(10) > 0 {
			advert = route.AdvertID(100 + r.fresh)
		}
		return route.Announce{Session: session, Advert: advert, Prefix: pick(c, randomPrefixes...), Advertised: r.advertised()}
	case 4, 5, 6:
		return route.Update{Session: session, Advert: advert, Advertised: r.advertised()}
	case 7, 8:
		return route.Withdraw{Session: session, Advert: advert, Explicit: c.below(4) > 0}
	case 9:
		return route.SessionDown{ID: session}
	case 10:
		return route.Goaway{Session: session}
	case 11, 12:
		return r.listen(session)
	case 13:
		return route.Unlisten{Consumer: route.ConsumerID(c.below(9) + 1)}
	case 14:
		return route.SessionGrant{ID: session, Publish: r.set(), Subscribe: r.set()}
	}
	return nil
}

func (r *randomRun) listen(session route.SessionID) route.Event {
	c := r.c
	e := route.Listen{
		Consumer: route.ConsumerID(c.below(9) + 1), Session: session, Root: pick(c, randomPrefixes...),
		Exclude: pick[route.Hop](c, 0, 0, 2, 3), Local: c.below(5) == 4,
	}
	s := r.model.session(session)
	switch {
	case s == nil || len(s.Mounts) == 0:
	case mounted(s, e.Root) || c.below(2) == 1: // who listens there looks through the mount
		m := pick(c, s.Mounts...)
		e.Through, e.Root = &m, paths.Join(m.Target, pick(c, "", "", "b", ".h"))
	}
	return e
}

// mounts are none for most sessions.
func (r *randomRun) mounts() paths.Mounts {
	return pick(r.c, nil, nil, nil, paths.Mounts{{At: "a/b", Target: "b"}}, paths.Mounts{{At: "b", Target: "a"}},
		paths.Mounts{{At: "a/.h", Target: "z"}, {At: "b", Target: "a/b"}})
}

func (r *randomRun) advertsOf(s route.SessionID) []route.AdvertID {
	var out []route.AdvertID
	for _, a := range r.model.adverts {
		if a.s.ID == s {
			out = append(out, a.id)
		}
	}
	return out
}

func (r *randomRun) sessionUp(id route.SessionID) route.Event {
	c := r.c
	r.fresh++
	return route.SessionUp{SessionInfo: route.SessionInfo{
		ID: id, Hop: pick[route.Hop](c, 0, 0, 2, 3, 4), Assigned: route.Hop(1000 + r.fresh),
		Stamp: pick(c, route.Hop(2000+r.fresh), route.Hop(2000+r.fresh), 5), Price: pick[uint64](c, 0, 1, 1, 7, route.MaxCost),
		Wire: pick(c, route.WireLite06, route.WireLite06, route.WireLite06, route.WireLite05, route.WireLite04, route.WireLite03,
			route.WireLite01, route.WireMoqt, route.WireMoqtCluster, route.WireLocal),
		Source: pick(c, route.SourceLocal, route.SourcePeer), ClusterPeer: c.below(2) == 1, Hidden: c.below(3) == 2,
		Publish: r.set(), Subscribe: r.set(), Mounts: r.mounts(),
	}}
}

func (r *randomRun) set() paths.Set {
	text := pick(r.c, randomSets...)
	if text == "-" {
		return paths.Set{}
	}
	s, err := paths.ParseSet(text)
	if text == "b,a/.h" {
		s, err = paths.ParseSet("b", "a/.h")
	}
	if err != nil {
		r.fail("%v", err)
	}
	return s
}

func (r *randomRun) advertised() route.Advertised {
	c := r.c
	ad := route.Advertised{
		Sender: pick[route.Hop](c, 2, 3, 4, 0),
		Cost:   route.Cost{Warm: pick[uint64](c, 0, 1, 1, 5, route.MaxSum, route.MaxCost), Cold: pick[uint64](c, 1, 1, 2, route.MaxCost)},
	}
	length := pick(c, 0, 1, 1, 2, 2, 3)
	if c.below(40) == 39 {
		for h := range route.Hop(29) {
			ad.Hops = append(ad.Hops, 3000+h)
		}
	}
	for range length {
		ad.Hops = append(ad.Hops, pick[route.Hop](c, 9, 8, 7, 0, 2, 3, 4, 5, 1))
	}
	if c.below(15) > 0 { // mostly valid
		seen := map[route.Hop]bool{}
		ad.Hops = slices.DeleteFunc(ad.Hops, func(h route.Hop) bool {
			dup := h != 0 && seen[h]
			seen[h] = true
			return dup
		})
	}
	return ad
}
