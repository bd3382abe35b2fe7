package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var versions = []client.Version{message.Lite03, message.Lite04, message.Lite05, message.Lite06}

// ends is a publisher and a subscriber on the two ends of one connection.
type ends struct {
	pub, sub *client.Client
}

// each runs f for every version, over an in-memory connection in virtual time, over raw QUIC and over WebTransport.
func each(t *testing.T, versions []client.Version, f func(t *testing.T, e ends)) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f(t, memory(t, v))
				})
			})
			for _, scheme := range []string{"moqt", "https"} {
				t.Run(scheme, func(t *testing.T) {
					f(t, loopback(t, v, scheme))
				})
			}
		})
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// memory joins two clients by an in-memory connection.
func memory(t *testing.T, v client.Version) ends {
	near, far := peertest.Pair(peertest.Options{Client: transport.Info{Protocol: v.Token()}})
	cfg := client.Config{Versions: []client.Version{v}}
	accepted := make(chan *client.Client, 1)
	go func() {
		c, err := client.Accept(t.Context(), far, cfg)
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	e := ends{pub: must[*client.Client](t)(client.New(t.Context(), near, "", cfg)), sub: <-accepted}
	if e.sub == nil {
		t.FailNow()
	}
	t.Cleanup(func() {
		e.pub.Close()
		e.sub.Close()
	})
	return e
}

// loopback joins two clients over real sockets. The subscriber is the end that accepts.
func loopback(t *testing.T, v client.Version, scheme string) ends {
	cfg := client.Config{Versions: []client.Version{v}}
	l := listen(t, cfg.Versions)
	accepted := make(chan *client.Client, 1)
	go func() {
		defer close(accepted)
		conn, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		c, err := client.Accept(t.Context(), conn, cfg)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}()
	dial := cfg
	dial.TLS.Fingerprints = []tlsconf.Fingerprint{l.pin}
	e := ends{pub: must[*client.Client](t)(client.Dial(t.Context(), fmt.Sprintf("%s://%s/", scheme, l.Addr()), dial))}
	t.Cleanup(e.pub.Close)
	if e.sub = <-accepted; e.sub == nil {
		t.FailNow()
	}
	t.Cleanup(e.sub.Close)
	return e
}

type listener struct {
	*endpoint.Listener
	pin tlsconf.Fingerprint
}

// listen opens a listener on a loopback port, with a generated certificate.
func listen(t *testing.T, versions []client.Version) listener {
	store := must[*tlsconf.Store](t)(tlsconf.Open(tlsconf.Config{Generate: []string{"127.0.0.1"}}))
	t.Cleanup(func() { _ = store.Close() })
	l := must[*endpoint.Listener](t)(endpoint.Listen(endpoint.Config{
		Addr: "127.0.0.1:0", TLS: store.Server(nil), Protocols: lite.Tokens(versions),
	}))
	t.Cleanup(func() { _ = l.Close() })
	return listener{l, must[tlsconf.Fingerprint](t)(tlsconf.ParseFingerprint(store.Fingerprint()))}
}

// publish makes a broadcast with one track.
func publish(t *testing.T, c *client.Client, path, track string) (*client.Broadcast, *client.TrackWriter) {
	t.Helper()
	b := must[*client.Broadcast](t)(c.Publish(path))
	w := must[*client.TrackWriter](t)(b.Track(track, client.Info{Priority: 10, MaxAge: time.Minute, Timescale: 90000}))
	return b, w
}

// write writes complete groups of three frames.
func write(t *testing.T, w *client.TrackWriter, groups ...uint64) {
	t.Helper()
	for _, seq := range groups {
		g := must[*client.GroupWriter](t)(w.Group(seq))
		for i := range uint64(3) {
			if err := g.WriteFrame(seq*3000+i*1000, payload(seq, i)); err != nil {
				t.Fatal(err)
			}
		}
		g.Finish()
	}
}

func payload(group, frame uint64) []byte {
	return fmt.Appendf(nil, "frame %d of group %d", frame, group)
}

// readAll reads the frames of a group.
func readAll(ctx context.Context, g *client.GroupReader) (frames []client.Frame, err error) {
	defer g.Close()
	for {
		f, err := g.ReadFrame(ctx)
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// deadline bounds a test on real sockets.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// everything is a subscription from the first group on.
func everything() client.Subscription {
	return client.Subscription{Priority: 5, MaxAge: time.Minute, Start: &client.Position{}}
}

// TestTrack sends a track from its first frame to its end: every frame comes, once, in order inside its group.
func TestTrack(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		b, w := publish(t, e.pub, "demo/one", "video")
		write(t, w, 0, 1)
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo/one", "video", everything()))
		defer r.Close()
		if v := e.sub.Version(); v.HasTrackInfo() && !cmp.Equal(r.Info(), w.Info()) {
			t.Errorf("info %+v, want %+v", r.Info(), w.Info())
		}
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		write(t, w, 2, 3)
		b.Close()
		var seen []uint64
		for {
			g, err := r.NextGroup(ctx)
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, g.Sequence())
			frames, err := readAll(ctx, g)
			if err != io.EOF || len(frames) != 3 {
				t.Fatalf("group %d: %d frames, %v", g.Sequence(), len(frames), err)
			}
			for i, f := range frames {
				if want := payload(g.Sequence(), uint64(i)); string(f.Payload) != string(want) {
					t.Errorf("payload %q, want %q", f.Payload, want)
				}
				want := g.Sequence()*3000 + uint64(i)*1000
				if e.sub.Version().HasTimestamps() && f.Timestamp != want {
					t.Errorf("timestamp %d, want %d", f.Timestamp, want)
				}
			}
		}
		slices.Sort(seen)
		if d := cmp.Diff([]uint64{0, 1, 2, 3}, seen); d != "" {
			t.Error(d)
		}
		if end, ok := r.End(); e.sub.Version().HasSubscribeStartEnd() && (!ok || end != 4) {
			t.Errorf("end %d, %v", end, ok)
		}
	})
}

// next waits for an announcement.
func next(t *testing.T, a *client.Announcements) client.Announcement {
	t.Helper()
	return must[client.Announcement](t)(a.Next(deadline(t)))
}

// TestAnnounced follows a broadcast through its life.
func TestAnnounced(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		early, _ := publish(t, e.pub, "demo/early", "video")
		if err := early.Announce(route.Cost{}); err != nil {
			t.Fatal(err)
		}
		other, _ := publish(t, e.pub, "other", "video")
		if err := other.Announce(route.Cost{}); err != nil {
			t.Fatal(err)
		}
		a := must[*client.Announcements](t)(e.sub.Announced(ctx, "/demo/"))
		defer a.Close()
		all := must[[]client.Announcement](t)(a.Initial(ctx))
		if len(all) != 1 || all[0].Path != "demo/early" || !all[0].Active || all[0].Changed {
			t.Fatalf("at first %+v", all)
		}
		if e.sub.Version().HasHops() && (len(all[0].Hops) != 1 || all[0].Hops[0] == 0) {
			t.Errorf("hops %v, want the publisher's", all[0].Hops)
		}
		late, _ := publish(t, e.pub, "demo/late", "video")
		if err := late.Announce(route.Cost{Warm: 3, Cold: 4}); err != nil {
			t.Fatal(err)
		}
		got := next(t, a)
		if got.Path != "demo/late" || !got.Active || got.Changed {
			t.Errorf("then %+v", got)
		}
		if e.sub.HasCost() {
			if got.Cost != (route.Cost{Warm: 3, Cold: 4}) {
				t.Errorf("cost %+v", got.Cost)
			}
			if err := late.Announce(route.Cost{Warm: 5, Cold: 6}); err != nil {
				t.Fatal(err)
			}
			if got := next(t, a); got.Path != "demo/late" || !got.Active || !got.Changed || got.Cost.Warm != 5 {
				t.Errorf("re-priced: %+v", got)
			}
		}
		late.Withdraw()
		if got := next(t, a); got.Path != "demo/late" || got.Active {
			t.Errorf("withdrawn: %+v", got)
		}
		early.Close()
		if got := next(t, a); got.Path != "demo/early" || got.Active {
			t.Errorf("closed: %+v", got)
		}
	})
}

// TestManyAnnouncements reads a large first batch, twice at the same time.
func TestManyAnnouncements(t *testing.T) {
	each(t, versions[2:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		const n = 300
		for i := range n {
			b := must[*client.Broadcast](t)(e.pub.Publish(fmt.Sprintf("many/%03d", i)))
			if err := b.Announce(route.Cost{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // two streams at the same time
			a := must[*client.Announcements](t)(e.sub.Announced(ctx, "many"))
			defer a.Close()
			if all := must[[]client.Announcement](t)(a.Initial(ctx)); len(all) != n || all[7].Path != "many/007" {
				t.Fatalf("%d announced at first", len(all))
			}
		}
	})
}

// refused subscribes and returns the error, which older versions tell later.
func refused(t *testing.T, c *client.Client, path, track string) error {
	t.Helper()
	ctx := deadline(t)
	r, err := c.Subscribe(ctx, path, track, everything())
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.NextGroup(ctx)
	return err
}

// TestRefused asks for what there is not.
func TestRefused(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		publish(t, e.pub, "demo", "video")
		for path, want := range map[string]error{"nowhere": client.ErrUnroutable, "demo": client.ErrNotFound} {
			err := refused(t, e.sub, path, "audio")
			var request *client.RequestError
			if !errors.Is(err, want) || !errors.As(err, &request) || request.Path != path || request.Track != "audio" {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
		if e.sub.Err() != nil {
			t.Errorf("a refusal ended the session: %v", e.sub.Err())
		}
	})
}

// TestDatagrams sends frames that nobody has to receive; on these links all arrive.
func TestDatagrams(t *testing.T) {
	each(t, versions[2:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "data")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "data", client.Subscription{}))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(5) {
			if err := w.Datagram(i, 100*i, payload(i, 0)); err != nil {
				t.Fatal(err)
			}
			d := must[client.Datagram](t)(r.NextDatagram(ctx))
			if d.Group != i || d.Timestamp != 100*i || string(d.Payload) != string(payload(i, 0)) {
				t.Errorf("got %d at %d: %q", d.Group, d.Timestamp, d.Payload)
			}
		}
		w.Finish()
		if _, err := r.NextDatagram(ctx); err != io.EOF {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestFetch asks for groups by their number.
func TestFetch(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		write(t, w, 3, 4, 5)
		req := client.FetchRequest{Path: "demo", Track: "video", Group: 4}
		if !e.sub.Version().HasFetch() {
			if _, err := e.sub.Fetch(ctx, req); !errors.Is(err, client.ErrUnsupported) {
				t.Errorf("a version without fetch: %v", err)
			}
			return
		}
		two := uint64(2)
		for _, tc := range []struct {
			first uint64
			end   *uint64
			want  []uint64
		}{{0, nil, []uint64{0, 1, 2}}, {1, nil, []uint64{1, 2}}, {1, &two, []uint64{1}}} {
			req.Frame, req.End = tc.first, tc.end
			g := must[*client.GroupReader](t)(e.sub.Fetch(ctx, req))
			frames, err := readAll(ctx, g)
			if err != io.EOF || len(frames) != len(tc.want) || g.Sequence() != 4 || g.FirstFrame() != tc.first {
				t.Fatalf("frames %d to %v: %d frames from %d, %v", tc.first, tc.end, len(frames), g.FirstFrame(), err)
			}
			for i, f := range frames {
				if string(f.Payload) != string(payload(4, tc.want[i])) {
					t.Errorf("frame %d is %q", tc.want[i], f.Payload)
				}
			}
		}
		if _, err := e.sub.Fetch(ctx, client.FetchRequest{Path: "demo", Track: "video", Group: 9}); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("a group that is not there: %v", err)
		}
		if e.sub.Err() != nil {
			t.Errorf("the session ended: %v", e.sub.Err())
		}
	})
}

// TestOpenGroupFetch fetches a group that is being written, and gives up in the middle.
func TestOpenGroupFetch(t *testing.T) {
	each(t, versions[2:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		open := must[*client.GroupWriter](t)(w.Group(1))
		if err := open.WriteFrame(0, payload(1, 0)); err != nil {
			t.Fatal(err)
		}
		g := must[*client.GroupReader](t)(e.sub.Fetch(ctx, client.FetchRequest{Path: "demo", Track: "video", Group: 1}))
		must[client.Frame](t)(g.ReadFrame(ctx))
		if err := open.WriteFrame(1, payload(1, 1)); err != nil {
			t.Fatal(err)
		}
		if f := must[client.Frame](t)(g.ReadFrame(ctx)); string(f.Payload) != string(payload(1, 1)) {
			t.Errorf("second frame %q", f.Payload)
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := g.ReadFrame(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing to read: %v", err)
		}
		g.Close()
		g.Close()
		if e.sub.Err() != nil {
			t.Errorf("the session ended: %v", e.sub.Err())
		}
	})
}

// TestUpdate raises the end of a subscription.
func TestUpdate(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		write(t, w, 0, 1, 2, 3)
		sub := everything()
		sub.End = &client.Position{Group: 2}
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", sub))
		defer r.Close()
		groups := map[uint64]bool{}
		take := func(n int) {
			for range n {
				g := must[*client.GroupReader](t)(r.NextGroup(ctx))
				groups[g.Sequence()] = true
				g.Close()
			}
		}
		take(2)
		if !groups[0] || !groups[1] {
			t.Fatalf("below the end come %v", groups)
		}
		sub.End = &client.Position{Group: 4}
		if err := r.Update(sub); err != nil {
			t.Fatal(err)
		}
		take(2)
		if !groups[2] || !groups[3] {
			t.Fatalf("with a higher end come %v", groups)
		}
	})
}

// TestGoaway has the peer ask the client to leave: no new requests, running ones go on.
func TestGoaway(t *testing.T) {
	each(t, versions[1:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		e.pub.Goaway("https://elsewhere/")
		select {
		case <-e.sub.GoingAway():
		case <-ctx.Done():
			t.Fatal("no GOAWAY")
		}
		if uri := e.sub.GoawayURI(); uri != "https://elsewhere/" {
			t.Errorf("uri %q", uri)
		}
		if _, err := e.sub.Subscribe(ctx, "demo", "video", everything()); !errors.Is(err, client.ErrGoingAway) {
			t.Errorf("new subscription: %v", err)
		}
		if _, err := e.sub.Announced(ctx, ""); !errors.Is(err, client.ErrGoingAway) {
			t.Errorf("new announce stream: %v", err)
		}
		write(t, w, 0)
		if frames, err := readAll(ctx, must[*client.GroupReader](t)(r.NextGroup(ctx))); len(frames) != 3 || err != io.EOF {
			t.Errorf("the running subscription: %d frames, %v", len(frames), err)
		}
	})
}

// TestSessionLost closes the publisher's end: everything that waits at the other ends, with the reason.
func TestSessionLost(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		open := must[*client.GroupWriter](t)(w.Group(0))
		if err := open.WriteFrame(0, payload(0, 0)); err != nil {
			t.Fatal(err)
		}
		a := must[*client.Announcements](t)(e.sub.Announced(ctx, ""))
		defer a.Close()
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		g := must[*client.GroupReader](t)(r.NextGroup(ctx))
		must[client.Frame](t)(g.ReadFrame(ctx))
		e.pub.Close()
		waits := map[string]func() error{
			"group":        func() error { _, err := r.NextGroup(ctx); return err },
			"datagram":     func() error { _, err := r.NextDatagram(ctx); return err },
			"frame":        func() error { _, err := g.ReadFrame(ctx); return err },
			"announcement": func() error { _, err := a.Next(ctx); return err },
			"session":      func() error { <-e.sub.Done(); return e.sub.Err() },
			"request":      func() error { _, err := e.sub.TrackInfo(ctx, "demo", "video"); return err },
		}
		for name, wait := range waits {
			err := wait()
			var ended *transport.SessionError
			if !errors.As(err, &ended) || !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: %v, want the end of the session", name, err)
			}
		}
	})
}

// TestClose closes everything under goroutines that wait; they must end, and goleak must find none.
func TestClose(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		a := must[*client.Announcements](t)(e.sub.Announced(ctx, ""))
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 4)
		for range 2 {
			go func() { _, err := r.NextGroup(ctx); results <- err }()
		}
		go func() { _, err := r.NextDatagram(ctx); results <- err }()
		go func() { _, err := a.Next(ctx); results <- err }()
		r.Close()
		a.Close()
		for range 4 {
			if err := <-results; err != client.ErrClosed {
				t.Errorf("after Close: %v", err)
			}
		}
		e.sub.Close()
		e.sub.Close()
		if err := e.sub.Err(); err != client.ErrClosed {
			t.Errorf("own end: %v", err)
		}
		if _, err := e.sub.Subscribe(ctx, "demo", "video", everything()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed client subscribes: %v", err)
		}
		if _, err := e.sub.Publish("late"); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed client publishes: %v", err)
		}
		<-e.pub.Done()
	})
}

// TestShutdown leaves while a subscriber lacks the end: it still gets it.
func TestShutdown(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		write(t, w, 0, 1, 2, 3, 4, 5, 6, 7)
		left := make(chan error, 1)
		go func() { left <- e.pub.Shutdown(ctx) }()
		complete := 0
		for {
			g, err := r.NextGroup(ctx)
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if frames, err := readAll(ctx, g); err != io.EOF || len(frames) != 3 {
				t.Errorf("group %d: %d frames, %v", g.Sequence(), len(frames), err)
			}
			complete++
		}
		if complete != 8 {
			t.Errorf("%d groups of 8", complete)
		}
		r.Close()
		if err := <-left; err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := e.pub.Err(); err != client.ErrClosed {
			t.Errorf("publisher ended with %v", err)
		}
	})
}

// TestPublisherRules tries what the writing side refuses.
func TestPublisherRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory(t, message.Lite06)
		b, w := publish(t, e.pub, "/demo//one/", "video")
		if b.Path() != "demo/one" {
			t.Errorf("path %q", b.Path())
		}
		if _, err := e.pub.Publish("demo/one"); !errors.Is(err, client.ErrPublished) {
			t.Errorf("same path: %v", err)
		}
		if _, err := b.Track("video", client.Info{}); !errors.Is(err, client.ErrPublished) {
			t.Errorf("same track: %v", err)
		}
		write(t, w, 5)
		if _, err := w.Group(5); !errors.Is(err, media.ErrDuplicate) {
			t.Errorf("same group: %v", err)
		}
		if _, err := w.Group(4); !errors.Is(err, media.ErrBelowStart) {
			t.Errorf("a group below the first: %v", err)
		}
		cut := must[*client.GroupWriter](t)(w.Group(6))
		w.Finish()
		w.Finish()
		if err := cut.WriteFrame(0, nil); err == nil {
			t.Error("a group of a finished track takes frames")
		}
		if _, err := w.Group(7); err != client.ErrClosed {
			t.Errorf("a group after the end: %v", err)
		}
		if err := w.Datagram(8, 0, nil); err != client.ErrClosed {
			t.Errorf("a datagram after the end: %v", err)
		}
		b.Close()
		b.Close()
		if err := b.Announce(route.Cost{}); err != client.ErrClosed {
			t.Errorf("a closed broadcast is announced: %v", err)
		}
		if _, err := b.Track("audio", client.Info{}); err != client.ErrClosed {
			t.Errorf("a closed broadcast takes tracks: %v", err)
		}
		if _, err := e.pub.Publish("demo/one"); err != nil {
			t.Errorf("the path is not free: %v", err)
		}
	})
}

// TestAbort ends a track with an error for its subscribers.
func TestAbort(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		w.Abort(client.ErrUnsupported)
		if _, err := r.NextGroup(ctx); err == nil || err == io.EOF {
			t.Errorf("an aborted track ends with %v", err)
		}
	})
}

// TestWaitSubscribed follows the subscribers of a track coming and going.
func TestWaitSubscribed(t *testing.T) {
	each(t, versions[3:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		for range 2 {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			if err := w.WaitSubscribed(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nobody subscribes: %v", err)
			}
			cancel()
			r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
			if err := w.WaitSubscribed(ctx); err != nil {
				t.Fatal(err)
			}
			r.Close()
			for { // the word has to travel
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				err := w.WaitSubscribed(short)
				cancel()
				if err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	})
}
