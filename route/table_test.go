package route_test

import (
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
)

func info(id route.SessionID, hop route.Hop) route.SessionUp {
	return route.SessionUp{SessionInfo: route.SessionInfo{
		ID: id, Hop: hop, Assigned: 1000 + route.Hop(id), Stamp: 2000 + route.Hop(id), Price: 1, Wire: route.WireLite06,
		Publish: paths.All, Subscribe: paths.All,
	}}
}

func TestErrorsChangeNothing(t *testing.T) {
	table := route.New(route.Config{Hop: 1})
	apply(t, table, epoch, info(1, 2))
	apply(t, table, epoch, route.Announce{Session: 1, Advert: 1, Prefix: "room", Advertised: route.Advertised{Sender: 2}})
	apply(t, table, epoch, route.Listen{Consumer: 1, Session: 1})
	before := table.Snapshot()
	tooBig := route.Advertised{Hops: []route.Hop{1 << 62}, Sender: 2}
	tests := []struct {
		event route.Event
		want  error
	}{
		{info(1, 2), route.ErrInUse},
		{route.SessionDown{ID: 7}, route.ErrUnknownSession},
		{route.SessionGrant{ID: 7}, route.ErrUnknownSession},
		{route.Goaway{Session: 7}, route.ErrUnknownSession},
		{route.Announce{Session: 7}, route.ErrUnknownSession},
		{route.Update{Session: 7}, route.ErrUnknownSession},
		{route.Withdraw{Session: 7}, route.ErrUnknownSession},
		{route.Listen{Consumer: 2, Session: 7}, route.ErrUnknownSession},
		{route.Listen{Consumer: 1, Session: 1}, route.ErrInUse},
		{route.Unlisten{Consumer: 2}, route.ErrUnknownConsumer},
		{route.Announce{Session: 1, Advert: 2, Prefix: "room"}, route.ErrDuplicate},
		{route.Announce{Session: 1, Advert: 1, Prefix: "cam"}, route.ErrDuplicate},
		{route.Announce{Session: 1, Advert: 2, Prefix: "cam", Advertised: tooBig}, route.ErrHops},
		{route.Announce{Session: 1, Advert: 2, Prefix: "cam", Advertised: route.Advertised{Sender: 1 << 62}}, route.ErrHops},
		{route.Update{Session: 1, Advert: 2}, route.ErrUnknownAdvert},
		{route.Update{Session: 1, Advert: 1, Advertised: tooBig}, route.ErrHops},
		{route.Withdraw{Session: 1, Advert: 2, Explicit: true}, route.ErrUnknownAdvert},
	}
	for _, tt := range tests {
		effects, err := table.Apply(epoch, tt.event)
		if !errors.Is(err, tt.want) || len(effects) > 0 {
			t.Errorf("%T %+v: %v, %v; want %v", tt.event, tt.event, effects, err, tt.want)
		}
	}
	if _, err := table.Apply(epoch, nil); err == nil {
		t.Error("no error for a nil event")
	}
	if diff := gocmp.Diff(before, table.Snapshot()); diff != "" {
		t.Error("the table has changed:", diff)
	}
}

// TestUpdateNeedsAWire: moq-lite up to 04 has no update, a second advertisement is a violation (R7).
func TestUpdateNeedsAWire(t *testing.T) {
	for _, wire := range []route.Wire{route.WireLite01, route.WireLite03, route.WireLite04} {
		table := route.New(route.Config{Hop: 1})
		up := info(1, 0)
		up.Wire = wire
		apply(t, table, epoch, up)
		apply(t, table, epoch, route.Announce{Session: 1, Advert: 1, Prefix: "room"})
		if _, err := table.Apply(epoch, route.Update{Session: 1, Advert: 1}); !errors.Is(err, route.ErrDuplicate) {
			t.Errorf("%v: update: %v", wire, err)
		}
		if _, err := table.Apply(epoch, route.Announce{Session: 1, Advert: 1, Prefix: "room"}); !errors.Is(err, route.ErrDuplicate) {
			t.Errorf("%v: repetition: %v", wire, err)
		}
	}
	for _, wire := range []route.Wire{route.WireLite05, route.WireMoqt, route.WireMoqtCluster} {
		table := route.New(route.Config{Hop: 1})
		up := info(1, 0)
		up.Wire = wire
		apply(t, table, epoch, up)
		for range 2 {
			apply(t, table, epoch, route.Announce{Session: 1, Advert: 1, Prefix: "room"})
		}
	}
}

func TestTooDeep(t *testing.T) {
	table := route.New(route.Config{Hop: 1})
	apply(t, table, epoch, info(1, 2))
	deep := "0"
	for range paths.MaxSegments {
		deep += "/0"
	}
	effects, err := table.Apply(epoch, route.Announce{Session: 1, Advert: 1, Prefix: deep, Advertised: route.Advertised{Sender: 2}})
	want := []route.Effect{route.Declined{Session: 1, Advert: 1, Prefix: deep, Reason: route.TooDeep}}
	if diff := gocmp.Diff(want, effects); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestOrderOfEffects(t *testing.T) {
	table := route.New(route.Config{Hop: 1})
	for id := range route.SessionID(4) {
		apply(t, table, epoch, info(id+1, route.Hop(id+2)))
	}
	apply(t, table, epoch, route.Listen{Consumer: 2, Session: 3})
	apply(t, table, epoch, route.Listen{Consumer: 1, Session: 4})
	apply(t, table, epoch, route.Announce{Session: 1, Advert: 1, Prefix: "room", Advertised: route.Advertised{Hops: []route.Hop{9}, Sender: 2}})
	apply(t, table, epoch, route.Announce{
		Session: 2, Advert: 1, Prefix: "room", Advertised: route.Advertised{Hops: []route.Hop{9, 2}, Sender: 3, Cost: route.Cost{Warm: 1}},
	})
	effects, err := table.Apply(epoch, route.Withdraw{Session: 1, Advert: 1, Explicit: true})
	want := []route.Effect{
		route.RouteGone{Session: 1, Advert: 1, Prefix: "room", How: route.GoneWithdrawn},
		route.RouteGone{Session: 2, Advert: 1, Prefix: "room", How: route.GoneStale},
		route.Changed{Prefix: "room"},
		route.Tell{Consumer: 1, Kind: route.TellGone, Name: "room"},
		route.Tell{Consumer: 2, Kind: route.TellGone, Name: "room"},
	}
	if diff := gocmp.Diff(want, effects); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestSnapshot(t *testing.T) {
	table := route.New(route.Config{Hop: 1})
	for id := range route.SessionID(4) {
		apply(t, table, epoch, info(id+1, route.Hop(id+2)))
	}
	announce := func(id route.SessionID, advert route.AdvertID, prefix string, cost uint64, hops ...route.Hop) {
		apply(t, table, epoch, route.Announce{Session: id, Advert: advert, Prefix: prefix, Advertised: route.Advertised{
			Hops: hops, Sender: route.Hop(id + 1), Cost: route.Cost{Warm: cost, Cold: cost},
		}})
	}
	apply(t, table, epoch, route.Listen{Consumer: 1, Session: 4, Root: "a"})
	announce(1, 1, "a/room", 0, 9)
	announce(2, 1, "a/room", 2, 9, 2)
	announce(3, 1, "a/room", 3, 8)
	announce(3, 2, "loop", 0, 1)
	apply(t, table, epoch.Add(time.Second), route.Withdraw{Session: 1, Advert: 1, Explicit: true})

	ranked := func(s route.SessionID, cost uint64, seq uint64, live bool, step route.Step, hops ...route.Hop) route.Ranked {
		return route.Ranked{Step: step, Route: route.Route{
			Session: s, Advert: 1, Prefix: "a/room", Hops: hops, Cost: route.Cost{Warm: cost, Cold: cost},
			Via: route.Hop(s + 1), Seq: seq, Live: live,
		}}
	}
	want := route.Snapshot{
		Prefixes: []route.Prefix{
			{
				Prefix: "a/room",
				Routes: []route.Ranked{
					ranked(2, 3, 2, false, route.StepNone, 9, 2, 3),
					ranked(3, 4, 3, true, route.StepWarm, 8, 4),
				},
				Marks: []route.Mark{{Hop: 2, Until: epoch.Add(3 * time.Second)}},
			},
			{Prefix: "loop", Declined: []route.Declined{{Session: 3, Advert: 2, Prefix: "loop", Reason: route.Loop}}},
		},
		Holds: []route.Hold{{Consumer: 1, Session: 4, Name: "room", Due: epoch.Add(1300 * time.Millisecond)}},
	}
	if diff := gocmp.Diff(want, table.Snapshot()); diff != "" || table.HoldsPending() != 1 {
		t.Error(diff)
	}
}

// TestLateTimers: what was due long ago fires as if at its time, in order, before the event at hand.
func TestLateTimers(t *testing.T) {
	table := route.New(route.Config{Hop: 1})
	for id := range route.SessionID(3) {
		apply(t, table, epoch, info(id+1, route.Hop(id+2)))
	}
	apply(t, table, epoch, route.Listen{Consumer: 1, Session: 3})
	apply(t, table, epoch, route.Announce{Session: 1, Advert: 1, Prefix: "room", Advertised: route.Advertised{Hops: []route.Hop{9}, Sender: 2}})
	apply(t, table, epoch, route.Announce{Session: 2, Advert: 1, Prefix: "room", Advertised: route.Advertised{
		Hops: []route.Hop{9, 2}, Sender: 3, Cost: route.Cost{Warm: 1},
	}})
	apply(t, table, epoch, route.Withdraw{Session: 1, Advert: 1, Explicit: true}) // a mark for 2 s
	late := epoch.Add(time.Hour)
	effects, err := table.Apply(late, route.Update{Session: 2, Advert: 1, Advertised: route.Advertised{Hops: []route.Hop{9, 2}, Sender: 3}})
	want := []route.Effect{
		route.Changed{Prefix: "room"},
		route.Tell{Consumer: 1, Kind: route.TellNew, Name: "room", Hops: []route.Hop{9, 2, 3}, Cost: route.Cost{Warm: 2, Cold: 1}},
		route.Changed{Prefix: "room"},
	}
	if diff := gocmp.Diff(want, effects); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if due, ok := table.Deadline(); !ok || !due.Equal(late.Add(300*time.Millisecond)) {
		t.Errorf("deadline %v, %v", due, ok)
	}
	// A clock that steps back moves nothing.
	if effects := table.Expire(epoch); len(effects) > 0 {
		t.Errorf("%v", effects)
	}
	if effects := table.Expire(late.Add(300 * time.Millisecond)); len(effects) != 1 {
		t.Errorf("%v", effects)
	}
	if _, ok := table.Deadline(); ok {
		t.Error("still a deadline")
	}
}

func TestNames(t *testing.T) {
	for source, want := range map[route.Source]string{route.SourceLocal: "local", route.SourcePeer: "peer"} {
		if source.String() != want {
			t.Errorf("%d is %q", source, source)
		}
	}
	if s := route.Wire(99).String(); s != "unknown" {
		t.Errorf("wire 99 is %q", s)
	}
	for r := route.Reflected; r <= route.TooDeep; r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
	for s := route.StepPrefix; s <= route.StepAge; s++ {
		if s.String() == "" {
			t.Errorf("step %d has no name", s)
		}
	}
}
