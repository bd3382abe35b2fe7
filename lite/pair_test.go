package lite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

func TestPairAnnouncements(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{
			interests: []string{"room"},
			initial:   []session.Update{{Name: "a", Hops: []route.Hop{9}}, {Name: "b/c", Hops: []route.Hop{9, 8}}},
		})
		// What each version tells of a chain [9], and of [9, 8].
		one, two := `"room/a" hops []`, `"room/b/c" hops []`
		switch v {
		case message.Lite01, message.Lite02:
		case message.Lite03:
			one, two = `"room/a" hops [0 0]`, `"room/b/c" hops [0 0 0]`
		case message.Lite04:
			one, two = `"room/a" hops [9 42]`, `"room/b/c" hops [9 8 42]`
		case message.Lite05, message.Lite06:
			one, two = `"room/a" hops [9] from 42`, `"room/b/c" hops [9 8] from 42`
		}
		p.client.wantLog(t, "announce "+one, "announce "+two)
		p.server.wantLog(t, fmt.Sprintf("listen \"room\" exclude %d", excluded(v)))

		var want []string
		if v.HasReannounce() {
			p.server.tell(session.Update{Kind: session.UpdateChange, Name: "a", Hops: []route.Hop{7}})
			want = append(want, strings.Replace("reannounce "+one, "[9]", "[7]", 1))
		}
		p.server.tell(
			session.Update{Kind: session.UpdateGone, Name: "b/c"},
			session.Update{Name: "b/c", Hops: []route.Hop{9, 8}},
			session.Update{Kind: session.UpdateGone, Name: "never"},
		)
		p.client.wantLog(t, append(want, "withdraw, explicit true", "announce "+two)...)

		p.server.Close(lite.SessionNoError, "")
		p.client.ended <- <-p.client.ended
		p.client.wantLog(t, "withdraw, explicit false", "withdraw, explicit false")
	})
}

func excluded(v message.Version) int {
	if v.HasExcludeHop() {
		return peerHop
	}
	return 0
}

// wantLog waits until all is done, compares what the host was told, and forgets it.
func (s *side) wantLog(tb testing.TB, want ...string) {
	tb.Helper()
	synctest.Wait()
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(s.host.log, "\n")); diff != "" {
		tb.Fatalf("host was told (-want +got):\n%s", diff)
	}
	s.host.log = nil
}

// tell passes updates to the newest ANNOUNCE stream that is served.
func (s *side) tell(updates ...session.Update) {
	synctest.Wait()
	s.host.mu.Lock()
	f := s.host.feeds[len(s.host.feeds)-1]
	s.host.mu.Unlock()
	f.more <- updates
	synctest.Wait()
}

func TestPairSubscription(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "video", media.DefaultInfo())
		for g := range uint64(4) {
			c.add(t, g, fmt.Sprint("k", g), "d")
		}
		w := p.watch(p.client, "video", media.Subscription{Priority: 5, MaxAge: 2 * time.Second})
		if v.HasFloor() { // history: the newest frame is at 3010, so 0 (superseded at 1000) is too old
			w.want("1: k1 d", "2: k2 d", "3: k3 d")
		} else {
			w.want("3: k3 d")
		}

		live := c.begin(t, 4, "k4")
		g := w.next()
		synctest.Wait()
		if err := live.WriteFrame(stamp(4, 1), []byte("late")); err != nil {
			t.Fatal(err)
		}
		live.Finish()
		if text, err := read(g); text != "k4 late" || err != nil {
			t.Errorf("live group is %q, %v", text, err)
		}
		c.add(t, 5)
		if text, err := read(w.next()); text != "" || err != nil {
			t.Errorf("empty group is %q, %v", text, err)
		}

		c.Copy.End(6)
		c.Track.End(6)
		w.wantDone(nil)
		if st := w.State(); v.HasSubscribeStartEnd() && (!st.Ended || st.End != 6) {
			t.Errorf("the end did not come through: %+v", st)
		}
		p.client.wantStreams(t, 0)
		p.server.wantStreams(t, 0)

		sent, received := &p.server.Counters().Sent, &p.client.Counters().Received
		if a, b := totals(sent), totals(received); a != b {
			t.Errorf("sent %+v, received %+v", a, b)
		}
	})
}

// total is a snapshot of a session.Traffic.
type total struct{ Bytes, Frames, Groups, Datagrams, Opened, Closed, Fetches uint64 }

func totals(c *session.Traffic) total {
	return total{
		c.Bytes.Load(), c.Frames.Load(), c.Groups.Load(), c.Datagrams.Load(),
		c.SubscriptionsOpened.Load(), c.SubscriptionsClosed.Load(), c.Fetches.Load(),
	}
}

func TestPairTimestamps(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		info := media.Info{Priority: 9, MaxAge: 7 * time.Second, Timescale: 90000}
		c := p.publish(p.server, "video", info)
		w := p.watch(p.client, "video", media.Subscription{MaxAge: time.Second})
		want := media.DefaultInfo()
		want.Unstamped = true
		if v.HasTrackInfo() {
			want = info
		}
		if diff := cmp.Diff(want, w.Info()); diff != "" {
			t.Errorf("track info (-want +got):\n%s", diff)
		}
		c.add(t, 3, "a", "b")
		g := w.next()
		wait := media.NewWaiter()
		a, err := g.ReadFrame(wait)
		if err != nil {
			t.Fatal(err)
		}
		if now := uint64(time.Now().UnixMilli()); !v.HasTimestamps() && a.Timestamp != now {
			t.Errorf("frame is stamped %d, received at %d", a.Timestamp, now)
		}
		b, err := g.ReadFrame(wait)
		if err != nil {
			t.Fatal(err)
		}
		if v.HasTimestamps() && (a.Timestamp != stamp(3, 0) || b.Timestamp != stamp(3, 1)) {
			t.Errorf("frames are stamped %d and %d", a.Timestamp, b.Timestamp)
		}
	})
}

func TestPairUpdate(t *testing.T) {
	each(t, message.Lite03, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "video", media.DefaultInfo())
		start, end := &media.Position{Group: 1}, &media.Position{Group: 2}
		w := p.watch(p.client, "video", media.Subscription{Start: start, End: end, MaxAge: time.Minute})
		for g := range uint64(4) {
			c.add(t, g, fmt.Sprint("k", g))
		}
		w.want("1: k1")
		synctest.Wait()
		if n := p.server.Counters().Sent.Groups.Load(); n != 1 {
			t.Fatalf("%d groups sent, want 1: the end is a cap", n)
		}
		p.server.wantLog(t, "subscribe room|video priority 0")
		if err := w.Update(media.Subscription{Priority: 8, Start: start, MaxAge: time.Minute}); err != nil {
			t.Fatal(err)
		}
		w.want("2: k2", "3: k3")
		p.server.wantLog(t, "update priority 8")
	})
}

func TestPairUpdateUnsupported(t *testing.T) {
	each(t, message.Lite01, message.Lite02, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		p.publish(p.server, "video", media.DefaultInfo())
		w := p.watch(p.client, "video", media.Subscription{})
		if err := w.Update(media.Subscription{Priority: 8}); !errors.Is(err, session.ErrUnsupported) {
			t.Errorf("update: %v", err)
		}
	})
}

func TestPairCancel(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "video", media.DefaultInfo())
		w := p.watch(p.client, "video", media.Subscription{})
		live := c.begin(t, 0, "k0")
		g := w.next()
		synctest.Wait()
		w.Cancel()
		w.wantDone(media.ErrCancelled)
		if err := w.Update(media.Subscription{}); v.HasSubscribeUpdate() && !errors.Is(err, media.ErrCancelled) {
			t.Errorf("update after cancel: %v", err)
		}
		// The publisher ends the group, too, and takes notice at once.
		p.server.wantLog(t, "subscribe room|video priority 0", "unsubscribe")
		p.client.wantStreams(t, 0)
		p.server.wantStreams(t, 0)
		live.Finish()
		w.Copy.Close()
		g.Close()
		if n := p.server.Counters().Sent.SubscriptionsClosed.Load(); n != 1 {
			t.Errorf("%d subscriptions closed", n)
		}
	})
}

func TestPairRefusals(t *testing.T) {
	for _, want := range []error{session.ErrUnroutable, media.ErrNotFound, session.ErrGoingAway, session.ErrTimeout} {
		t.Run(want.Error(), func(t *testing.T) {
			each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
				p := running(t, v, options{})
				p.server.host.refuse = want
				w := p.watchAs(p.client, "video", media.Subscription{}, media.DefaultInfo())
				w.wantDone(want)
				var refused *lite.RequestError
				if !errors.As(w.Err(), &refused) || refused.Code != lite.StreamCode(want) {
					t.Errorf("refused with %v", w.Err())
				}
				if v.HasTrackInfo() {
					if _, err := p.client.TrackInfo(t.Context(), "room", "video"); !errors.Is(err, want) {
						t.Errorf("track info: %v", err)
					}
				}
				p.client.wantStreams(t, 0)
			})
		})
	}
}

// TestPairTrackFails wants a failure in mid-course to come through at once, and groups that are complete to be finished.
func TestPairTrackFails(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "video", media.DefaultInfo())
		w := p.watch(p.client, "video", media.Subscription{})
		c.begin(t, 0, "k0")
		g := w.next()
		synctest.Wait()
		c.Track.Close(media.ErrEvicted)
		w.wantDone(media.ErrEvicted)
		w.Copy.Close()
		w.Track.Close(w.Err())
		if _, err := read(g); !errors.Is(err, media.ErrEvicted) {
			t.Errorf("open group ended with %v", err)
		}
	})
}

func TestPairFetch(t *testing.T) {
	for _, tt := range []struct {
		name       string
		frame, end uint64
		want       string
	}{
		{"whole", 0, 0, "a b c d"},
		{"tail", 2, 0, "c d"},
		{"part", 1, 3, "b c"},
		{"nothing left", 4, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
				p := running(t, v, options{})
				c := p.publish(p.server, "video", media.DefaultInfo())
				c.add(t, 3, "a", "b", "c", "d")
				local := p.cache.NewTrack(media.DefaultInfo())
				req := session.FetchRequest{Path: "room", Track: "video", Group: 3, Frame: tt.frame}
				first := tt.frame
				if tt.end > 0 {
					req.End = &tt.end
				}
				if !v.HasFrameBounds() {
					first = 0
				}
				g, fetch := local.Fetch(3, tt.frame)
				defer g.Close()
				w := fetch.Writer(first)
				accepted := 0
				if err := p.client.Fetch(t.Context(), req, w, func() { accepted++ }); err != nil || accepted != 1 {
					t.Fatalf("fetch: %v, accepted %d times", err, accepted)
				}
				w.Finish()
				fetch.Close(nil)
				want := tt.want
				if tt.end > 0 && !v.HasFrameBounds() {
					want += " d" // this version fetches to the end of the group
				}
				if got, err := read(g); got != want || err != nil {
					t.Errorf("fetched %q, %v; want %q", got, err, want)
				}
				p.client.wantStreams(t, 0)
				if n := p.server.Counters().Sent.Fetches.Load(); n != 1 {
					t.Errorf("%d fetches counted", n)
				}
			})
		})
	}
}

func TestPairFetchRefused(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		p.publish(p.server, "video", media.DefaultInfo())
		want := session.ErrUnsupported
		if v.HasFetch() {
			want = media.ErrNotFound
		}
		local := p.cache.NewTrack(media.DefaultInfo())
		g, fetch := local.Fetch(9, 0)
		defer g.Close()
		req := session.FetchRequest{Path: "room", Track: "video", Group: 9}
		err := p.client.Fetch(t.Context(), req, fetch.Writer(0), func() { t.Error("accepted") })
		fetch.Close(err)
		if !errors.Is(err, want) {
			t.Errorf("fetch: %v, want %v", err, want)
		}
	})
}

// TestPairFetchFollowsOpenGroup wants frames of a group that is being fed to come as they arrive, and a fetch that is
// given up to be given up at both ends.
func TestPairFetchFollowsOpenGroup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "video", media.DefaultInfo())
		live := c.begin(t, 0, "a")
		local := p.cache.NewTrack(media.DefaultInfo())
		g, fetch := local.Fetch(0, 0)
		defer g.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		w := fetch.Writer(0)
		go func() {
			done <- p.client.Fetch(ctx, session.FetchRequest{Path: "room", Track: "video"}, w, func() {})
		}()
		synctest.Wait()
		if err := live.WriteFrame(stamp(0, 1), []byte("b")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wait := media.NewWaiter()
		for _, want := range []string{"a", "b"} {
			if f, err := g.ReadFrame(wait); err != nil || string(f.Payload) != want {
				t.Fatalf("frame is %q, %v; want %q", f.Payload, err, want)
			}
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("fetch: %v", err)
		}
		fetch.Close(media.ErrCancelled)
		p.client.wantStreams(t, 0)
		live.Finish()
	})
}

func TestPairDatagrams(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "audio", media.DefaultInfo())
		w := p.watch(p.client, "audio", media.Subscription{})
		synctest.Wait()
		for i := range uint64(3) {
			c.Datagram(i, stamp(i, 0), fmt.Append(nil, "d", i))
			synctest.Wait()
		}
		c.Datagram(3, stamp(3, 0), make([]byte, peertest.DefaultDatagramSize)) // too large with its header
		c.Datagram(4, stamp(4, 0), []byte("d4"))
		synctest.Wait()
		var got []string
		for d, ok := w.reader.NextDatagram(); ok; d, ok = w.reader.NextDatagram() {
			got = append(got, fmt.Sprintf("%d at %d: %s", d.Group, d.Timestamp, d.Payload))
		}
		var want []string
		if v.HasDatagrams() {
			want = []string{"0 at 0: d0", "1 at 1000: d1", "2 at 2000: d2", "4 at 4000: d4"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("datagrams (-want +got):\n%s", diff)
		}
		if a, b := totals(&p.server.Counters().Sent), totals(&p.client.Counters().Received); a != b {
			t.Errorf("sent %+v, received %+v", a, b)
		}
	})
}

func TestPairProbe(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var got []lite.Estimate
		done := make(chan error, 1)
		p.server.conn.SetStats(transport.Stats{RTT: 40 * time.Millisecond})
		go func() {
			done <- p.client.Probe(ctx, func(e lite.Estimate) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, e)
			})
		}()
		time.Sleep(time.Second)
		p.server.conn.SetStats(transport.Stats{RTT: 60 * time.Millisecond})
		time.Sleep(time.Second)
		cancel()
		err := <-done
		switch {
		case !v.HasProbe():
			if !errors.Is(err, session.ErrUnsupported) {
				t.Errorf("probe: %v", err)
			}
			return
		case !errors.Is(err, context.Canceled):
			t.Errorf("probe: %v", err)
		}
		want := []lite.Estimate{{RTT: 40 * time.Millisecond}, {RTT: 60 * time.Millisecond}}
		if !v.HasProbeRTT() {
			want = []lite.Estimate{{}, {}}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("estimates (-want +got):\n%s", diff)
		}
		p.client.wantStreams(t, 0)
	})
}

func TestPairGoaway(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		c := p.publish(p.server, "video", media.DefaultInfo())
		w := p.watch(p.client, "video", media.Subscription{})
		p.server.Goaway("https://elsewhere.example/?jwt=x")
		p.server.Goaway("https://twice.example/")
		if !v.HasGoaway() {
			p.client.wantLog(t)
			return
		}
		p.client.wantLog(t, `goaway "https://elsewhere.example/?jwt=x"`)
		for name, err := range map[string]error{
			"subscribe": second(p.client.Subscribe(t.Context(), session.SubscribeRequest{}, w.Copy)),
			"announced": p.client.Announced(t.Context(), "", sink{}),
			"probe":     p.client.Probe(t.Context(), nil),
		} {
			if !errors.Is(err, session.ErrGoingAway) {
				t.Errorf("%s after GOAWAY: %v", name, err)
			}
		}
		if _, err := p.client.TrackInfo(t.Context(), "room", "video"); v.HasTrackInfo() && !errors.Is(err, session.ErrGoingAway) {
			t.Errorf("track info after GOAWAY: %v", err)
		}
		c.add(t, 0, "still") // what runs goes on
		w.want("0: still")
	})
}

// sink ignores announcements.
type sink struct{ lite.AnnounceSink }

func (sink) Ready() {}

func second[T any](_ T, err error) error { return err }

// TestPairSessionEnds wants everything to end with the session: Run, subscriptions, requests, and later calls.
func TestPairSessionEnds(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{interests: []string{""}})
		c := p.publish(p.server, "video", media.DefaultInfo())
		w := p.watch(p.client, "video", media.Subscription{})
		live := c.begin(t, 0, "k")
		g := w.next()
		synctest.Wait()
		p.server.Close(77, "done")
		err := <-p.client.ended
		p.client.ended <- err
		var ended *transport.SessionError
		if !errors.As(err, &ended) || ended.Code != 77 || !ended.Remote {
			t.Errorf("Run returned %v", err)
		}
		w.wantDone(ended)
		w.Copy.Close()
		w.Track.Close(w.Err())
		if _, err := read(g); !errors.Is(err, ended) {
			t.Errorf("open group ended with %v", err)
		}
		if _, err := p.client.Subscribe(t.Context(), session.SubscribeRequest{}, w.Copy); err == nil {
			t.Error("subscribed on a session that is over")
		}
		if _, err := p.client.TrackInfo(t.Context(), "room", "video"); v.HasTrackInfo() && err == nil {
			t.Error("asked on a session that is over")
		}
		live.Finish()
	})
}

// TestPairManySubscriptions serves 300 subscriptions, which cost two goroutines each at each end, and leaves nothing
// behind.
func TestPairManySubscriptions(t *testing.T) {
	const n = 300
	synctest.Test(t, func(t *testing.T) {
		p := running(t, message.Lite06, options{pair: peertest.Options{Streams: 10000}})
		c := p.publish(p.server, "video", media.DefaultInfo())
		subs := make([]*watched, n)
		for i := range subs {
			subs[i] = p.watch(p.client, "video", media.Subscription{Priority: uint8(i)})
		}
		for g := range uint64(3) {
			c.add(t, g, "k", "d")
			for _, w := range subs {
				w.want(fmt.Sprintf("%d: k d", g))
			}
		}
		p.client.wantStreams(t, n)
		c.Copy.End(3)
		c.Track.End(3)
		for _, w := range subs {
			w.wantDone(nil)
		}
		p.client.wantStreams(t, 0)
		if got := p.server.Counters().Sent.Groups.Load(); got != 3*n {
			t.Errorf("%d groups sent, want %d", got, 3*n)
		}
	})
}
