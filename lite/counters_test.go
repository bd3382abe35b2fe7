package lite_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// control is how many bytes of each class went out of one end and came in at the other.
func control(from, to *side) (out, in map[string]uint64) {
	out, in = make(map[string]uint64), make(map[string]uint64)
	for c := range session.ControlClasses {
		if n := from.Counters().ControlSent[c].Load(); n > 0 {
			out[c.String()] = n
		}
		if n := to.Counters().ControlReceived[c].Load(); n > 0 {
			in[c.String()] = n
		}
	}
	return out, in
}

// TestControlBytes: what one end counts as sent, the other counts as received, in the classes that were in use, and
// content is not among it.
func TestControlBytes(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{interests: []string{"room"}, initial: []session.Update{{Name: "a"}}})
		c := p.publish(p.server, "video", media.DefaultInfo())
		c.add(t, 0, string(make([]byte, 10_000)))
		w := p.watch(p.client, "video", media.Subscription{})
		w.next()
		if v >= message.Lite05 {
			local := p.cache.NewTrack(media.DefaultInfo())
			g, fetch := local.Fetch(0, 0)
			defer g.Close()
			err := p.client.Fetch(t.Context(), session.FetchRequest{Path: room, Track: "video"}, fetch.Writer(0), func() {})
			if err != nil {
				t.Fatal(err)
			}
			fetch.Close(nil)
		}
		p.server.Goaway("")
		synctest.Wait()
		for name, ends := range map[string][2]*side{"client": {p.client, p.server}, "server": {p.server, p.client}} {
			out, in := control(ends[0], ends[1])
			if diff := cmp.Diff(out, in); diff != "" {
				t.Errorf("%s counts as sent what the other does not count as received: %s", name, diff)
			}
			for class, n := range out {
				if n > 1000 {
					t.Errorf("%s: %d bytes of %s: content is among it", name, n, class)
				}
			}
			want := []string{"announce", "subscribe"}
			if v.HasInbandSetup() || v.HasSetup() {
				want = append(want, "session")
			}
			if v.HasTrackInfo() {
				want = append(want, "track_info")
			}
			if name == "client" && v >= message.Lite05 {
				want = append(want, "fetch")
			}
			if name == "server" && v.HasGoaway() {
				want = append(want, "goaway")
			}
			if name == "server" && !v.HasSubscribeOK() && !v.HasSubscribeStartEnd() {
				want = want[:1]
			}
			for _, class := range want {
				if out[class] == 0 {
					t.Errorf("%s: nothing of class %s: %v", name, class, out)
				}
			}
		}
	})
}

// TestViewers: a session that watches two tracks of a broadcast is one viewer of it, until it watches none.
func TestViewers(t *testing.T) {
	synctest.Test(t, testViewers)
}

func testViewers(t *testing.T) {
	p := running(t, message.Lite06, options{})
	p.publish(p.server, "video", media.DefaultInfo())
	p.publish(p.server, "audio", media.DefaultInfo())
	sent, received := &p.server.Counters().Sent, &p.client.Counters().Received
	check := func(opened, closed uint64) {
		t.Helper()
		synctest.Wait()
		for _, c := range []*session.Traffic{sent, received} {
			if got := [2]uint64{c.ViewersOpened.Load(), c.ViewersClosed.Load()}; got != [2]uint64{opened, closed} {
				t.Errorf("viewers %v, want %v", got, [2]uint64{opened, closed})
			}
		}
	}
	video := p.watch(p.client, "video", media.Subscription{})
	audio := p.watch(p.client, "audio", media.Subscription{})
	check(1, 0)
	video.Cancel()
	check(1, 0)
	audio.Cancel()
	check(1, 1)
	p.watch(p.client, "video", media.Subscription{})
	check(2, 1)
	p.client.Close(0, "")
	check(2, 2)
}

// TestStaleCounts: a group that is given up counts with the frames and bytes of it that were not sent.
func TestStaleCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := stalled(t, message.Bounds{MaxAge: 2500 * time.Millisecond}, peertest.Options{})
		c.whole(0, large, "four", "five5")
		_, blocked := r.accepted()
		for g := uint64(1); g <= 4; g++ {
			c.whole(g, "small")
			_, s := r.accepted()
			s.ReceiveAll()
		}
		time.Sleep(300 * time.Millisecond)
		blocked.WantReset(lite.StreamOld)
		sent := &r.up.Counters().Sent
		if frames, bytes := sent.StaleFrames.Load(), sent.StaleBytes.Load(); frames != 3 || bytes != uint64(len(large)+9) {
			t.Errorf("%d frames of %d bytes lost", frames, bytes)
		}
		if frames := sent.Frames.Load(); frames != 4 {
			t.Errorf("%d frames sent", frames)
		}
	})
}

// TestKnock: a knock is larger than the smallest packet that is answered with a stateless reset, and the peer drops it.
func TestKnock(t *testing.T) {
	each(t, message.Lite03, message.Lite06, func(t *testing.T, v message.Version) {
		p := running(t, v, options{})
		p.publish(p.server, "video", media.DefaultInfo())
		p.watch(p.client, "video", media.Subscription{}) // so that datagrams are received
		p.server.Knock()
		p.client.Knock()
		synctest.Wait()
		for _, s := range []*side{p.client, p.server} {
			if c := s.Counters(); c.Received.Datagrams.Load() != 0 || c.Received.StaleDatagrams.Load() != 0 || s.Conn().Context().Err() != nil {
				t.Error("a knock is taken for content, or ends the session")
			}
		}
	})
}
