package origin_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/session"
)

var errClosed = net.ErrClosed

// 50 readers on three sessions cost one question and one subscription (X45); the last one to leave ends it at once.
func TestManyReaders(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		pub.announce("room")
		var views []*viewing
		for i := range 3 {
			p := r.peer(fmt.Sprint("viewer", i))
			for range 17 {
				views = append(views, p.view("room", "v"))
			}
		}
		s := pub.only()
		if len(pub.infos) != 1 || len(s.updates) != 0 {
			r.Errorf("%d questions, %d updates", len(pub.infos), len(s.updates))
		}
		if got := r.o.Counters(); got.Readers != 51 || got.Upstreams != 1 || got.Tracks != 1 {
			r.Errorf("counters: %+v", got)
		}
		if err := s.send(8, 0, 4); err != nil {
			r.Fatal(err)
		}
		for i, v := range views {
			if got := v.frames(8); got != frames(8, 0, 4) {
				r.Errorf("view %d: %q", i, got)
			}
		}
		for i, v := range views {
			if n := len(pub.live()); n != 1 {
				r.Fatalf("%d subscriptions while reader %d is there", n, i)
			}
			v.close()
		}
		if n := len(pub.live()); n != 0 {
			r.Errorf("%d subscriptions after the last reader", n)
		}
		if err := s.Err(); !errors.Is(err, media.ErrCancelled) {
			r.Errorf("subscription ended with %v", err)
		}
	})
}

func TestAggregate(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		defer v.close()
		w, err := view(viewer.Session, "room", "v", media.Subscription{Priority: 3, MaxAge: 5 * time.Second})
		if err != nil {
			r.Fatal(err)
		}
		w.Update(media.Subscription{Priority: 200, MaxAge: 5 * time.Second})
		w.close()
		want := []media.Subscription{
			{Priority: 10, MaxAge: 5 * time.Second},
			{Priority: 200, MaxAge: 5 * time.Second},
			{Priority: 10, MaxAge: 2 * time.Second},
		}
		got := pub.only().updates
		if len(got) == 0 || !cmp.Equal(got[len(got)-1], want[2]) {
			r.Errorf("last update: %+v", got)
		}
		for _, u := range got { // some may have been replaced before they were sent
			if !cmp.Equal(u, want[0]) && !cmp.Equal(u, want[1]) && !cmp.Equal(u, want[2]) {
				r.Errorf("update %+v", u)
			}
		}
	})
}

// A reader that is back within 30 s goes on where the last one left; later everything begins anew (F16).
func TestLinger(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		s := pub.only()
		_ = s.send(8, 0, 4)
		synctest.Wait()
		v.close()
		time.Sleep(29 * time.Second)

		v = viewer.view("room", "v")
		s = pub.only()
		if diff := cmp.Diff(&media.Position{Group: 8, Frame: 5}, s.req.Start); diff != "" {
			r.Errorf("asked from (-want +got):\n%s", diff)
		}
		s.copy.Start(8)
		_ = s.send(8, 5, 6)
		if got := v.frames(8); got != frames(8, 0, 6) {
			r.Errorf("got %q", got)
		}
		v.close()
		time.Sleep(31 * time.Second)
		if n := len(r.o.Tracks()); n != 0 {
			r.Errorf("%d tracks after the linger", n)
		}

		v = viewer.view("room", "v")
		if s = pub.only(); s.req.Start != nil || len(pub.infos) != 2 {
			r.Errorf("asked from %v after %d questions", s.req.Start, len(pub.infos))
		}
		v.close()
	})
}

// What a track was first accepted with binds the front, also when the track was forgotten (F22, X42).
func TestPropertiesOutliveTheTrack(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		viewer.view("room", "v").close()
		time.Sleep(31 * time.Second)
		pub.info.Timescale = 90000
		if _, err := view(viewer.Session, "room", "v", live()); !errors.Is(err, session.ErrUnsupported) {
			r.Errorf("other properties: %v", err)
		}
		if _, err := viewer.TrackInfo(context.Background(), "room", "other"); err != nil {
			r.Errorf("another track: %v", err)
		}
		synctest.Wait()
		pub.withdraw("room")
		if _, err := view(viewer.Session, "room", "v", live()); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("without a route: %v", err)
		}
		pub.announce("room") // a new front
		viewer.view("room", "v").close()
	})
}

func TestSourceDies(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		b, a, viewer := r.peer("b"), r.peer("a"), r.peer("viewer")
		b.announce("room")
		a.announce("room") // newer, hence best
		v := viewer.view("room", "v")
		feed := viewer.listen("")
		if got := feed.next(); got != "+room" {
			r.Errorf("announced %q", got)
		}
		_ = a.only().send(8, 0, 4)
		synctest.Wait()
		a.die()
		s := b.only()
		if diff := cmp.Diff(&media.Position{Group: 8, Frame: 5}, s.req.Start); diff != "" {
			r.Errorf("asked from (-want +got):\n%s", diff)
		}
		_ = s.send(8, 5, 9)
		s.finish(8)
		_ = s.send(9, 0, 0)
		if got := v.frames(8); got != frames(8, 0, 9) {
			r.Errorf("group 8: %q", got)
		}
		if got := v.frames(9); got != frames(9, 0, 0) {
			r.Errorf("group 9: %q", got)
		}
		time.Sleep(time.Second)
		if got := feed.next(); got != "~room" { // F36: never a retraction
			r.Errorf("announced %q", got)
		}
		if n := r.o.Counters().Failovers; n != 1 {
			r.Errorf("%d failovers", n)
		}
		b.die()
		if err := v.ended(); !errors.Is(err, session.ErrUnroutable) || errors.Is(err, net.ErrClosed) {
			r.Errorf("the track ended with %v", err)
		}
		if got := feed.next(); got != "-room" {
			r.Errorf("announced %q", got)
		}
		if n := r.o.Counters(); n.Readers != 0 || n.Tracks != 0 || n.Fronts != 0 {
			r.Errorf("left: %+v", n)
		}
		v.close()
	})
}

// A cheaper route takes over while the old one finishes what it has begun (X17).
func TestSwitch(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		a, c, viewer := r.peer("a"), r.peer("c"), r.peer("viewer")
		a.announce("room", 9)
		v := viewer.view("room", "v")
		defer v.close()
		old := a.only()
		_ = old.send(8, 0, 4)
		synctest.Wait()
		c.announce("room")
		s := c.only()
		if diff := cmp.Diff(&media.Position{Group: 8, Frame: 5}, s.req.Start); diff != "" {
			r.Errorf("asked from (-want +got):\n%s", diff)
		}
		if n := len(old.updates); n != 1 || !cmp.Equal(old.updates[0].End, &media.Position{Group: 9}) {
			r.Errorf("updates of the old copy: %+v", old.updates)
		}
		_ = s.send(8, 5, 6)
		_ = old.send(8, 5, 7)
		_ = s.send(9, 0, 0)
		old.finish(8)
		if got := v.frames(8) + ", " + v.frames(9); got != frames(8, 0, 7)+", 9:0" {
			r.Errorf("got %q", got)
		}
		if len(a.live()) != 0 {
			r.Error("the old copy is still there")
		}
		c.only()
	})
}

// Withdrawn routes serve what runs, and nothing new (F38).
func TestWithdrawn(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		s := pub.only()
		_ = s.send(8, 0, 1)
		pub.withdraw("room")
		_ = s.send(8, 2, 3)
		if got := v.frames(8); got != frames(8, 0, 3) {
			r.Errorf("got %q", got)
		}
		if _, err := view(viewer.Session, "room", "v", live()); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("a new reader: %v", err)
		}
		if _, err := viewer.TrackInfo(context.Background(), "room", "v"); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("a question: %v", err)
		}
		s.finish(8)
		s.copy.End(9)
		s.end(nil)
		if err := v.ended(); err == nil || err.Error() != "EOF" {
			r.Errorf("the track ended with %v", err)
		}
		v.close()
	})
}

// Refusals are tried in rank order, and the last one is the answer (F26).
func TestRefusals(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		c, b, a, viewer := r.peer("c"), r.peer("b"), r.peer("a"), r.peer("viewer")
		for _, p := range []*peer{c, b, a} { // a is the newest, hence best
			p.announce("room")
		}
		a.infoErr = errors.New("a says no")
		b.info.Priority = 7
		v := viewer.view("room", "v")
		if len(a.infos) != 1 || len(b.infos) != 1 || len(a.subs) != 0 {
			r.Errorf("asked: %v %v", a.infos, b.infos)
		}
		b.only() // the first one accepted
		v.close()
		time.Sleep(time.Minute)

		c.infoErr = session.ErrNotFound
		b.infoErr = errors.New("b says no")
		if _, err := view(viewer.Session, "room", "other", live()); !errors.Is(err, session.ErrNotFound) {
			r.Errorf("all refuse: %v", err)
		}
		b.infoErr, b.refuse = nil, errors.New("no subscription")
		v, err := view(viewer.Session, "room", "third", live())
		if err != nil {
			r.Fatal(err)
		}
		if err := v.ended(); !errors.Is(err, session.ErrNotFound) {
			r.Errorf("the reader ended with %v", err)
		}
		v.close()
		if n := r.o.Counters().Refusals; n != 7 {
			r.Errorf("%d refusals", n)
		}
	})
}

// A hanging source costs its own requests 10 s, and nobody else anything (R26).
func TestHangingSource(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		slow, fast, viewer := r.peer("slow"), r.peer("fast"), r.peer("viewer")
		slow.announce("slow")
		fast.announce("fast")
		slow.hang = true
		start := time.Now()
		failed := make(chan error, 3)
		for range 2 {
			go func() {
				_, err := view(viewer.Session, "slow", "v", live())
				failed <- err
			}()
		}
		go func() {
			_, err := viewer.TrackInfo(context.Background(), "slow", "v")
			failed <- err
		}()
		synctest.Wait()
		viewer.view("fast", "v").close()
		if d := time.Since(start); d != 0 {
			r.Errorf("the fast one took %v", d)
		}
		for range 3 {
			if err := <-failed; !errors.Is(err, session.ErrTimeout) {
				r.Errorf("slow: %v", err)
			}
		}
		if d := time.Since(start); d != 10*time.Second {
			r.Errorf("slow: after %v", d)
		}
		if synctest.Wait(); slow.hanging != 0 || len(slow.infos) != 1 {
			r.Errorf("%d requests hang, %d asked", slow.hanging, len(slow.infos))
		}
	})
}

// The next source is asked once the first has had its 10 s, for whoever still waits.
func TestNextSourceAfterTheTimeout(t *testing.T) {
	for _, what := range []string{"question", "subscription"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, origin.Config{}, func(r *rig) {
				b, a, viewer := r.peer("b"), r.peer("a"), r.peer("viewer")
				b.announce("room")
				a.announce("room")
				a.hang, a.hangSub = what == "question", what == "subscription"
				go func() { _, _ = view(viewer.Session, "room", "v", live()) }()
				time.Sleep(5 * time.Second)
				served := make(chan *viewing, 1)
				go func() { served <- viewer.view("room", "v") }()
				time.Sleep(5*time.Second - time.Nanosecond)
				if len(b.live()) != 0 {
					r.Error("b was asked too early")
				}
				time.Sleep(time.Nanosecond)
				s, v := b.only(), <-served
				_ = s.send(1, 0, 0)
				if got := v.frames(1); got != "1:0" {
					r.Errorf("got %q", got)
				}
			})
		})
	}
}

// A cancelled request leaves nothing upstream.
func TestCancelledRequest(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		pub.hang = true
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error)
		go func() {
			_, err := viewer.Subscribe(ctx, "room", "v", live(), &viewing{wake: make(chan struct{}, 1)})
			failed <- err
		}()
		synctest.Wait()
		if pub.hanging != 1 {
			r.Fatalf("%d requests upstream", pub.hanging)
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			r.Errorf("subscribe: %v", err)
		}
		if synctest.Wait(); pub.hanging != 0 || len(r.o.Tracks()) != 0 {
			r.Errorf("left: %d upstream, %d tracks", pub.hanging, len(r.o.Tracks()))
		}
	})
}

// A request that waits follows a better route (R26), and its cancel.
func TestWaitingRequestFollowsTheRoute(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		a, b, viewer := r.peer("a"), r.peer("b"), r.peer("viewer")
		a.announce("room")
		a.hang = true
		done := make(chan *viewing)
		go func() { done <- viewer.view("room", "v") }()
		synctest.Wait()
		b.announce("room")
		v := <-done
		if synctest.Wait(); a.hanging != 0 {
			r.Error("the first request is still there")
		}
		b.only()
		v.close()
	})
}

func TestSplitHorizon(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		near, far, viewer := r.peer("near"), r.peer("far"), r.peer("viewer")
		near.announce("room", 9)
		if _, err := view(near.Session, "room", "v", live()); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("E47: %v", err)
		}
		far.announce("room", 9, 8)
		// X30: everybody else is served from near, near itself from far.
		v, w := viewer.view("room", "v"), near.view("room", "v")
		if near.only().req.Path != "room" || far.only() == nil {
			r.Error("wrong sources")
		}
		again := r.peer("near again", func(p *origin.Peer) { p.Hop = near.Peer().Hop })
		x := again.view("room", "v") // another session of the same peer shares its front
		synctest.Wait()
		if got := r.o.Tracks(); len(got) != 2 || got[1].Without != uint64(near.Peer().Hop) || got[1].Readers != 2 {
			r.Errorf("logical tracks: %+v", got)
		}
		far.only()
		v.close()
		w.close()
		x.close()
	})
}

func TestRootsAndGrants(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub", root("acme/live"), grants("acme/live/**", ""))
		viewer := r.peer("viewer", root("acme"), grants("acme/vod/** acme/vod2/**", "acme/live/a/**"))
		pub.announce("a/b")
		pub.announce("c")
		if got := viewer.listen("").next(); got != "+live/a/b" {
			r.Errorf("announced %q", got)
		}
		names, err := viewer.Announced("live")
		if diff := cmp.Diff([]string{"a/b"}, names); err != nil || diff != "" {
			r.Errorf("Announced: %v %s", err, diff)
		}
		v := viewer.view("live/a/b/x", "v")
		if got := pub.only().req.Path; got != "a/b/x" {
			r.Errorf("asked for %q", got)
		}
		v.close()
		for _, path := range []string{"live/c", "", "vod/x"} {
			if _, err := view(viewer.Session, path, "v", live()); !errors.Is(err, session.ErrUnauthorized) {
				r.Errorf("%q: %v", path, err)
			}
		}
		if diff := cmp.Diff([]string{"vod", "vod2"}, viewer.Interests()); diff != "" {
			r.Errorf("interests (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{""}, pub.Interests()); diff != "" {
			r.Errorf("interests (-want +got):\n%s", diff)
		}
		viewer.SetGrant(set(""), set("acme/**"))
		if got, err := viewer.Announced("live"); err != nil || !cmp.Equal(got, []string{"a/b", "c"}) {
			r.Errorf("after a wider grant: %v %v", got, err)
		}
	})
}

func TestDepthCountsWithTheRoot(t *testing.T) {
	deep := "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20/21/22/23/24/25/26/27/28/29/30"
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer", root("a"))
		pub.announce("a")
		viewer.view(deep+"/31", "v").close()
		if _, err := view(viewer.Session, deep+"/31/32", "v", live()); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("33 segments: %v", err)
		}
	})
}

func TestLimits(t *testing.T) {
	bubble(t, origin.Config{Adverts: 3, Feeds: 2, Tracks: 2}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		for i := range 3 {
			pub.announce(fmt.Sprint("room", i))
		}
		if err := pub.tryAnnounce("more"); !errors.Is(err, session.ErrNoCapacity) {
			r.Errorf("fourth advertisement: %v", err)
		}
		pub.withdraw("room2")
		pub.announce("more")

		f := viewer.listen("")
		viewer.listen("x")
		if _, err := viewer.Listen("y", 0); !errors.Is(err, session.ErrNoCapacity) {
			r.Errorf("third announce stream: %v", err)
		}
		f.Close()
		viewer.listen("y")

		a, b := viewer.view("room0", "a"), viewer.view("room0", "b")
		if _, err := view(viewer.Session, "room0", "c", live()); !errors.Is(err, session.ErrNoCapacity) {
			r.Errorf("third track: %v", err)
		}
		a.close() // lingers, and makes room
		synctest.Wait()
		c := viewer.view("room0", "c")
		synctest.Wait()
		if got := r.o.Tracks(); len(got) != 2 || got[0].Track != "b" || got[1].Track != "c" {
			r.Errorf("tracks: %+v", got)
		}
		b.close()
		c.close()
	})
}

func TestViolations(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub := r.peer("pub")
		pub.announce("room")
		if err := pub.tryAnnounce("room"); !errors.Is(err, session.ErrViolation) {
			r.Errorf("twice: %v", err)
		}
		if err := pub.tryAnnounce("other", 7, 7); !errors.Is(err, session.ErrViolation) {
			r.Errorf("repeated hop: %v", err)
		}
		if err := pub.tryAnnounce("loop", 1); err != nil {
			r.Errorf("a loop is declined, not an error: %v", err)
		}
		pub.Withdraw(1234, true) // unknown: ignored
		one := r.o.Attach(origin.Peer{}, nil)
		if err := one.Announce(0, session.Advertisement{}); !errors.Is(err, session.ErrUnauthorized) {
			r.Errorf("announce without an upstream: %v", err)
		}
		one.Close(nil)
		one.Close(nil)
		if _, err := one.Listen("", 0); !errors.Is(err, net.ErrClosed) {
			r.Errorf("listen after close: %v", err)
		}
		if _, err := one.TrackInfo(context.Background(), "x", "y"); !errors.Is(err, session.ErrUnauthorized) {
			r.Errorf("request without a grant: %v", err)
		}
	})
}

// Closing the origin ends readers and feeds, and what hangs upstream.
func TestClose(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, slow, viewer := r.peer("pub"), r.peer("slow"), r.peer("viewer")
		pub.announce("room")
		slow.announce("slow")
		slow.hang = true
		v := viewer.view("room", "v")
		feed := viewer.listen("")
		feed.next()
		failed := make(chan error)
		go func() {
			_, err := viewer.TrackInfo(context.Background(), "slow", "v")
			failed <- err
		}()
		synctest.Wait()
		r.o.Close()
		if err := <-failed; !errors.Is(err, net.ErrClosed) {
			r.Errorf("request: %v", err)
		}
		if err := v.ended(); !errors.Is(err, net.ErrClosed) {
			r.Errorf("reader: %v", err)
		}
		if _, err := feed.Next(context.Background()); !errors.Is(err, net.ErrClosed) {
			r.Errorf("feed: %v", err)
		}
		if len(pub.live()) != 0 || slow.hanging != 0 {
			r.Error("upstream requests are left")
		}
		v.close()
		feed.Close()
		viewer.Close(nil)
		if _, err := viewer.Listen("", 0); !errors.Is(err, net.ErrClosed) {
			r.Errorf("listen: %v", err)
		}
	})
}

// A track that has ended cleanly is over for its readers; a publisher that comes later begins anew (F39).
func TestRepublished(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, next, viewer := r.peer("pub"), r.peer("next"), r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		s := pub.only()
		_ = s.send(8, 0, 0)
		s.finish(8)
		s.copy.End(9)
		s.end(nil)
		if got := v.frames(8); got != "8:0" {
			r.Errorf("got %q", got)
		}
		late := viewer.view("room", "v") // from the cache
		if got := late.frames(8); got != "8:0" {
			r.Errorf("a late reader got %q", got)
		}
		next.announce("room")
		synctest.Wait()
		w := viewer.view("room", "v")
		_ = next.only().send(9, 0, 0)
		if got := w.frames(9); got != "9:0" {
			r.Errorf("a new reader got %q", got)
		}
		if got := v.frames(9); got != "" {
			r.Errorf("the old one got %q", got)
		}
		for _, v := range []*viewing{v, late, w} {
			v.close()
		}
	})
}

// The cache forgets what nobody reads, since the origin tells it the time.
func TestCacheIsSwept(t *testing.T) {
	cache := media.NewCache(media.CacheConfig{})
	bubble(t, origin.Config{Cache: cache}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		s := pub.only()
		for g := range uint64(5) {
			_ = s.send(g, 0, 0)
			s.finish(g)
		}
		if n := cache.Stats().Groups; n != 5 {
			r.Errorf("%d groups", n)
		}
		time.Sleep(32 * time.Second)
		if n := cache.Stats().Groups; n != 1 {
			r.Errorf("%d groups after 32 s", n)
		}
		v.close()
	})
}

// Whoever asks for ever new names below a wide route costs a bounded number of fronts and remembered properties.
func TestNamesChosenByViewers(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("")
		ctx := context.Background()
		ask := func(path, track string) error {
			_, err := viewer.TrackInfo(ctx, path, track)
			return err
		}
		for i := range origin.MaxIdleFronts + 10 {
			if err := ask(fmt.Sprint("a/", i), "v"); err != nil {
				r.Fatal(err)
			}
		}
		time.Sleep(31 * time.Second)
		if n := r.o.Counters(); n.Fronts != origin.MaxIdleFronts || n.Tracks != 0 {
			r.Errorf("%d fronts, %d tracks", n.Fronts, n.Tracks)
		}
		for i := range origin.MaxProperties + 1 {
			if err := ask("b", fmt.Sprint(i)); err != nil {
				r.Fatal(err)
			}
		}
		time.Sleep(31 * time.Second)
		pub.info.Priority = 1
		if err := ask("b", "0"); !errors.Is(err, session.ErrUnsupported) {
			r.Errorf("remembered: %v", err)
		}
		if err := ask("b", fmt.Sprint(origin.MaxProperties)); err != nil {
			r.Errorf("not remembered: %v", err)
		}
	})
}

func TestGoaway(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		told := ""
		pub := r.peer("pub", func(p *origin.Peer) { p.OnGoaway = func(uri string) { told = uri } })
		viewer := r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		pub.Goaway("https://other")
		if told != "https://other" {
			r.Errorf("told %q", told)
		}
		w := viewer.view("room", "v") // a running track takes further readers
		if _, err := view(viewer.Session, "room", "new", live()); !errors.Is(err, session.ErrGoingAway) {
			r.Errorf("a new track: %v", err)
		}
		pub.only()
		v.close()
		w.close()
	})
}
