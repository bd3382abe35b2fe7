package origin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// Names that are new or gone are told at once, changes after 300 ms, and a slow consumer gets what is left of it all.
func TestAnnouncements(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		near, far, viewer := r.peer("near"), r.peer("far"), r.peer("viewer")
		near.announce("room", 9)
		feed, slow := viewer.listen(""), viewer.listen("")
		if got := feed.next(); got != "+room" {
			r.Errorf("initial set: %q", got)
		}
		far.announce("room", 9, 8)
		near.announce("other")
		if got := feed.next(); got != "+other" {
			r.Errorf("a new name: %q", got)
		}
		near.withdraw("room") // a withdrawal: far's route does not pass through near
		near.withdraw("other")
		if got := feed.next(); got != "-other" {
			r.Errorf("a name is gone: %q", got)
		}
		time.Sleep(299 * time.Millisecond)
		if got := feed.next(); got != "" {
			r.Errorf("before the hold is over: %q", got)
		}
		if n := r.o.Counters().HoldsPending; n != 2 {
			r.Errorf("%d holds", n)
		}
		time.Sleep(time.Millisecond)
		if got := feed.next(); got != "~room" {
			r.Errorf("after the hold: %q", got)
		}
		far.die()
		near.announce("third")
		if got := feed.next(); got != "-room +third" {
			r.Errorf("a session is lost: %q", got)
		}
		if got := slow.next(); got != "+third" {
			r.Errorf("the slow one: %q", got)
		}
	})
}

// A price that changes moves what runs at once, and is told after the hold (E26, E30).
func TestReprice(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		a, b, viewer := r.peer("a"), r.peer("b"), r.peer("viewer")
		b.announce("room")
		a.announce("room")
		feed := viewer.listen("")
		feed.next()
		v := viewer.view("room", "v")
		a.only()
		ad := session.Advertisement{Prefix: "room", Sender: a.Peer().Hop, HasSender: true, Cost: route.Cost{Warm: 7, Cold: 7}}
		if err := a.Reannounce(a.ads["room"], ad); err != nil {
			r.Fatal(err)
		}
		b.only()
		if len(a.live()) != 0 {
			r.Error("a serves on")
		}
		time.Sleep(300 * time.Millisecond)
		if got := feed.next(); got != "~room" {
			r.Errorf("told %q", got)
		}
		if err := a.Reannounce(99, ad); !errors.Is(err, session.ErrViolation) {
			r.Errorf("an unknown advertisement: %v", err)
		}
		v.close()
	})
}

// Subscribing in the millisecond in which a name is announced works, 500 of 500 times.
func TestSubscribeAsAnnounced(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		feed, err := viewer.Listen("", 0)
		if err != nil {
			r.Fatal(err)
		}
		served := make(chan error, 500)
		go func() {
			for {
				us, err := feed.Next(context.Background())
				if err != nil {
					return
				}
				for _, u := range us {
					go func() {
						v, err := view(viewer.Session, u.Name, "v", live())
						if err == nil {
							v.close()
						}
						served <- err
					}()
				}
			}
		}()
		for i := range 500 {
			pub.announce(fmt.Sprint("room/", i))
		}
		for range 500 {
			if err := <-served; err != nil {
				r.Errorf("subscribe: %v", err)
			}
		}
		feed.Close()
	})
}

// 2,000 names come and go, seen by a consumer that keeps up and by one that sleeps meanwhile.
func TestManyNames(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		quick, slow := viewer.listen(""), viewer.listen("")
		if got := slow.next(); got != "" {
			r.Fatalf("initial set %q", got)
		}
		quick.next()
		const n = 2000
		for i := range n {
			pub.announce(fmt.Sprintf("room/%d", i))
		}
		if got := strings.Fields(quick.next()); len(got) != n {
			r.Errorf("%d names announced", len(got))
		}
		if got := r.o.Counters(); got.Routes != n || len(r.o.Routes()) != n {
			r.Errorf("%d routes, %d listed", got.Routes, len(r.o.Routes()))
		}
		pub.announce("stays")
		for i := range n {
			pub.withdraw(fmt.Sprintf("room/%d", i))
		}
		if got := strings.Fields(quick.next()); len(got) != n+1 {
			r.Errorf("%d changes", len(got))
		}
		if got := slow.next(); got != "+stays" {
			r.Errorf("the sleeper is told %q", got)
		}
		if got := r.o.Counters(); got.Routes != 1 {
			r.Errorf("%d routes are left", got.Routes)
		}
	})
}

// What is announced is not announced back, and hidden names need the right.
func TestWhoSeesWhat(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		peer := r.peer("peer", func(p *origin.Peer) { p.Hidden, p.Source = true, route.SourcePeer })
		local := r.peer("local", func(p *origin.Peer) { p.LocalOnly = true })
		pub.announce("room")
		pub.announce(".stats/node")
		peer.announce("far", 9)
		for name, want := range map[*listening]string{
			pub.listen(""):         "+far",
			peer.listen(""):        "+.stats/node +room",
			local.listen(""):       "+room",
			local.listen(".stats"): "+node",
		} {
			if got := name.next(); got != want {
				r.Errorf("got %q, want %q", got, want)
			}
		}
		if _, err := view(local.Session, "far", "v", live()); err == nil { // R37
			r.Error("a local-only reader got a peer's route")
		}
	})
}

// An announce stream that states an identity makes it that of the session (R23, moq-lite 04).
func TestExcludedHop(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		old := r.peer("old", func(p *origin.Peer) { p.Hop, p.Wire = 0, route.WireLite04 })
		pub.announce("room", 77)
		f, err := old.Listen("", 77)
		if err != nil {
			r.Fatal(err)
		}
		if got := (&listening{r, f}).next(); got != "" {
			r.Errorf("announced back: %q", got)
		}
		if _, err := view(old.Session, "room", "v", live()); err == nil {
			r.Error("served back")
		}
	})
}

func TestRouteAndTrackPages(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room", 9)
		pub.announce("room/x")
		v := viewer.view("room", "v")
		_ = pub.only().send(3, 0, 2)
		synctest.Wait()
		routes := r.o.Routes()
		if len(routes) != 2 || routes[0].Prefix != "room" || routes[0].Session != 1 || fmt.Sprint(routes[0].Hops) != "[9 101]" ||
			routes[0].Source != "local" || !routes[0].Live {
			r.Errorf("routes: %+v", routes)
		}
		tracks := r.o.Tracks()
		if len(tracks) != 1 || tracks[0].Path != "room" || tracks[0].Track != "v" || tracks[0].Session != 1 ||
			tracks[0].Readers != 1 || tracks[0].Groups != 1 || tracks[0].Bytes < 9 {
			r.Errorf("tracks: %+v", tracks)
		}
		v.close()
		synctest.Wait()
		if tracks := r.o.Tracks(); len(tracks) != 1 || tracks[0].Readers != 0 {
			r.Errorf("tracks: %+v", tracks)
		}
	})
}

// A publisher in this process is a session like any other; its routes are its own, and its tracks do not linger.
func TestInProcess(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub", func(p *origin.Peer) { p.Wire, p.Hop = route.WireLocal, 0 })
		reader := r.o.Attach(origin.Peer{Wire: route.WireLocal, Subscribe: set("**")}, nil)
		pub.announce("room")
		v, err := view(reader, "room", "v", live())
		if err != nil {
			r.Fatal(err)
		}
		_ = pub.only().send(1, 0, 0)
		if got := v.frames(1); got != "1:0" {
			r.Errorf("got %q", got)
		}
		v.close()
		if synctest.Wait(); len(r.o.Tracks()) != 0 {
			r.Error("the track lingers")
		}
		feed, err := reader.Listen("", 0)
		if err != nil {
			r.Fatal(err)
		}
		us, err := feed.Next(context.Background())
		if err != nil || len(us) != 1 || us[0].Kind != session.UpdateNew || len(us[0].Hops) != 0 {
			r.Errorf("announced %+v %v", us, err)
		}
		reader.Close(nil)
	})
}
