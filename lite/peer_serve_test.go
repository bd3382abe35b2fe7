package lite_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// content is a track at the host, room/alice video, and the copy that feeds it.
type content struct {
	*media.Track
	copy *media.Copy
	t    *testing.T
}

func (r *rig) content() *content {
	r.t.Helper()
	info := media.DefaultInfo()
	info.Unstamped = !r.Version.HasTimestamps()
	cache := media.NewCache(media.CacheConfig{})
	c := &content{Track: cache.NewTrack(info), t: r.t}
	c.copy = c.NewCopy(nil)
	done := make(chan struct{})
	r.t.Cleanup(func() { close(done) })
	go func() {
		for tick := time.NewTicker(250 * time.Millisecond); ; {
			select {
			case now := <-tick.C:
				cache.Sweep(now)
			case <-done:
				return
			}
		}
	}()
	r.host.tracks["room/alice|video"] = c.Track
	r.t.Cleanup(c.copy.Close)
	return c
}

// group starts a group with frames 1000, 1033, ... apart.
func (c *content) group(sequence uint64, payloads ...string) *media.GroupWriter {
	c.t.Helper()
	w, err := c.copy.Group(sequence, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, p := range payloads {
		c.write(w, sequence*1000+uint64(i)*33, p)
	}
	return w
}

func (c *content) write(w *media.GroupWriter, ts uint64, payload string) {
	c.t.Helper()
	if err := w.WriteFrame(ts, []byte(payload)); err != nil {
		c.t.Fatal(err)
	}
}

// ask subscribes to the content and takes the first answer, if the version has one at once.
func (r *rig) ask(id uint64, b message.Bounds) *peertest.PeerStream {
	r.t.Helper()
	s := r.Open(message.StreamSubscribe, message.Subscribe{ID: id, Broadcast: "room/alice", Track: "video", Bounds: b})
	if r.Version.HasSubscribeOK() {
		s.Want(message.SubscribeOK{Priority: b.Priority})
	}
	return s
}

// wantGroup wants a group stream with this header and these frames. The first delta is absolute.
func (r *rig) wantGroup(id, sequence uint64, payloads ...string) *peertest.PeerStream {
	r.t.Helper()
	s := r.WantUniStream(message.UniGroup, message.Group{Subscribe: id, Sequence: sequence})
	for i, p := range payloads {
		delta := int64(33)
		if i == 0 {
			delta = int64(sequence) * 1000
		}
		s.Want(r.frame(delta, []byte(p)))
	}
	return s
}

// The course of one subscription from the request to the end of the track (moq-lite 13).
func TestServeSubscription(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		c := r.content()
		c.copy.Start(7)
		w := c.group(7, "key")
		s := r.ask(5, message.Bounds{Priority: 3, MaxAge: time.Second})
		if v.HasSubscribeStartEnd() {
			s.Want(message.SubscribeStart{Group: 7})
		}
		first := r.wantGroup(5, 7, "key")
		r.WantIdle()
		c.write(w, 7033, "d1")
		first.Want(r.frame(33, []byte("d1")))
		c.write(w, 7028, "")
		first.Want(r.frame(-5, nil))
		w.Finish()
		first.WantFIN()
		c.group(9).Finish() // without frames
		r.wantGroup(5, 9).WantFIN()
		r.WantIdle()
		c.group(10, "k2").Finish()
		c.copy.End(11)
		c.copy.Close() // group 8 will not come
		c.End(11)
		if v.HasSubscribeStartEnd() {
			s.Want(message.SubscribeEnd{Group: 11})
		}
		r.wantGroup(5, 10, "k2").WantFIN()
		if v.HasSubscribeStartEnd() {
			s.Want(message.SubscribeDrop{Start: 8, End: 8})
		}
		s.WantFIN().FIN()
		r.WantIdle()
		r.wantLog("subscribe room/alice|video priority 3", "unsubscribe")
		if st, uni := r.Conn.Streams(); v.HasSetup() && st != 0 || uni != 0 {
			t.Errorf("%d and %d streams are left", st, uni)
		}
	})
}

// The subscriber may end a subscription at any time. Groups in flight are of no use then.
func TestEndOfServedSubscription(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, last message.Version
		end         func(*peertest.PeerStream)
		code        uint64 // 0 = FIN
	}{
		{"FIN", 1, 6, func(s *peertest.PeerStream) { s.FIN() }, 0},
		{"reset", 1, 6, func(s *peertest.PeerStream) { s.Reset(9) }, lite.StreamCancelled},
		{"bytes on 01 and 02", 1, 2, func(s *peertest.PeerStream) { s.Send("01 05") }, lite.StreamMalformed},
		{"trailing byte", 3, 5, func(s *peertest.PeerStream) { s.Send("06 00 00 00 00 00 00") }, lite.StreamMalformed},
		{"trailing byte", 6, 6, func(s *peertest.PeerStream) { s.Send("07 00 00 00 00 00 00 00") }, lite.StreamMalformed},
		{"frame end without group end", 6, 6, func(s *peertest.PeerStream) { s.Send("06 00 00 00 00 00 01") }, lite.StreamMalformed},
		{"truncated update", 3, 6, func(s *peertest.PeerStream) { s.Send("05 00").FIN() }, lite.StreamMalformed},
		{"large update", 3, 6, func(s *peertest.PeerStream) { s.Send("84 00 00 01") }, lite.StreamMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, tt.first, tt.last, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{}).greet()
				c := r.content()
				c.group(7, "key")
				s := r.ask(0, message.Bounds{})
				if v.HasSubscribeStartEnd() {
					s.Want(message.SubscribeStart{Group: 7})
				}
				g := r.wantGroup(0, 7, "key")
				r.wantLog("subscribe room/alice|video priority 0")
				tt.end(s.AnyStop())
				g.WantReset(lite.StreamCancelled)
				if tt.code == 0 {
					s.WantFIN()
				} else {
					s.WantReset(tt.code)
				}
				r.WantIdle()
				r.wantLog("unsubscribe")
			})
		})
	}
}

// STOP_SENDING on the SUBSCRIBE stream is an end, too.
func TestStopOfServedSubscription(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.content().group(7, "key")
		s := r.ask(0, message.Bounds{})
		g := r.wantGroup(0, 7, "key")
		s.Stop(1)
		g.WantReset(lite.StreamCancelled)
		s.FIN().AnyStop()
		r.WantIdle()
		r.wantLog("subscribe room/alice|video priority 0", "unsubscribe")
	})
}

// A group that the subscriber stops is over; the subscription is not.
func TestStopOfServedGroup(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		c := r.content()
		w := c.group(7, "key")
		s := r.ask(0, message.Bounds{})
		if v.HasSubscribeStartEnd() {
			s.Want(message.SubscribeStart{Group: 7})
		}
		r.wantGroup(0, 7, "key").Stop(lite.StreamOld)
		r.WantIdle()
		c.write(w, 7033, "d1")
		r.WantIdle()
		c.group(8, "k2")
		r.wantGroup(0, 8, "k2")
		r.WantIdle()
	})
}

// A track that fails resets the subscription with the reason; a group that fails resets only its stream.
func TestServedFailures(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		c := r.content()
		w := c.group(7, "key")
		s := r.ask(0, message.Bounds{}).AnyStop()
		if v.HasSubscribeStartEnd() {
			s.Want(message.SubscribeStart{Group: 7})
		}
		g := r.wantGroup(0, 7, "key")
		w.Abort(&lite.RequestError{Code: 99})
		g.WantReset(99)
		r.WantIdle()
		c.Close(media.ErrNotFound)
		s.WantReset(lite.StreamNotFound)
		r.WantIdle()
	})
}

// What is updated reaches the host; no answer is due.
func TestServedUpdate(t *testing.T) {
	each(t, message.Lite03, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.content()
		s := r.ask(0, message.Bounds{Priority: 3})
		r.WantIdle()
		s.Send(message.SubscribeUpdate{Bounds: message.Bounds{Priority: 4}})
		r.WantIdle()
		r.wantLog("subscribe room/alice|video priority 3", "update priority 4")
	})
}

// A subscribe id names one subscription at a time.
func TestDuplicateSubscribeID(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.content()
		r.ask(3, message.Bounds{})
		r.WantIdle()
		r.Open(message.StreamSubscribe, message.Subscribe{ID: 3, Broadcast: "room/alice", Track: "video"}).Refused(lite.StreamInternal, lite.StreamInternal)
		r.ask(4, message.Bounds{})
		r.WantIdle()
	})
}

// The number of subscriptions is bounded.
func TestTooManySubscriptions(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{cfg: lite.Config{Limits: lite.Limits{Subscriptions: 1}}}).greet()
		r.content()
		first := r.ask(0, message.Bounds{})
		r.WantIdle()
		r.Open(message.StreamSubscribe, message.Subscribe{ID: 1, Broadcast: "room/alice", Track: "video"}).Refused(lite.StreamNoCapacity, lite.StreamNoCapacity)
		first.FIN().WantFIN()
		r.WantIdle()
		r.ask(2, message.Bounds{})
		r.WantIdle()
	})
}

// moq-lite 2: on 05 and 06 nothing is served before the peer's SETUP.
func TestRequestsBeforeSetup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := connect(t, v, options{})
		r.WantSetup()
		c := r.content()
		c.group(7, "key").Finish()
		sub := r.ask(0, message.Bounds{})
		track := r.Open(message.StreamTrack, message.Track{Broadcast: "room/alice", Track: "video"})
		fetch := r.Open(message.StreamFetch, message.Fetch{Broadcast: "room/alice", Track: "video", Group: 7})
		r.WantIdle()
		r.Server(message.Setup{})
		sub.Want(message.SubscribeStart{Group: 7})
		r.wantGroup(0, 7, "key").WantFIN()
		track.Want(message.TrackInfo{Priority: 127, MaxAge: 5 * time.Second, Timescale: 1000}).WantFIN()
		fetch.Want(r.frame(7000, []byte("key"))).WantFIN()
		r.WantIdle()
	})
}

// The peer of a session that dialed may never send SETUP.
func TestRequestsWithoutSetup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := connect(t, v, options{cfg: lite.Config{HandshakeTimeout: peertest.Patience / 2}})
		r.WantSetup()
		r.content()
		for _, typ := range []message.StreamType{message.StreamSubscribe, message.StreamTrack, message.StreamFetch} {
			r.Open(typ, requests(v)[typ]).AnyStop().WantReset(lite.StreamControlTimeout)
		}
		r.WantIdle()
	})
}

func TestServeTrackInfo(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		for name, end := range map[string]func(*peertest.PeerStream){
			"FIN": func(s *peertest.PeerStream) { s.FIN() }, "reset": func(s *peertest.PeerStream) { s.Reset(1) },
		} {
			r := accept(t, v, options{}).greet()
			info := media.Info{Priority: 9, MaxAge: 2 * time.Second, Timescale: 90_000}
			r.host.tracks["a|b"] = media.NewCache(media.CacheConfig{}).NewTrack(info)
			s := r.Open(message.StreamTrack, message.Track{Broadcast: "//a/", Track: "b"})
			s.Want(message.TrackInfo{Priority: 9, MaxAge: 2 * time.Second, Timescale: 90_000}).WantFIN()
			end(s.AnyStop())
			r.WantIdle()
			if n, _ := r.Conn.Streams(); n != 0 {
				t.Errorf("%s: %d streams are left", name, n)
			}
		}
	})
}

// moq-lite 5.11: the frames of one group, from the one asked for; the first delta is absolute.
func TestServeFetch(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		c := r.content()
		w := c.group(7, "0", "1")
		c.group(8).Finish()
		ask := message.Fetch{Broadcast: "room/alice", Track: "video", Group: 7}
		whole := r.Open(message.StreamFetch, ask).Want(r.frame(7000, []byte("0")), r.frame(33, []byte("1")))
		r.WantIdle()
		c.write(w, 7066, "2")
		w.Finish()
		whole.Want(r.frame(33, []byte("2"))).WantFIN().FIN()
		r.WantIdle()
		ask.Group = 8
		r.Open(message.StreamFetch, ask).WantFIN().FIN()
		ask.Group = 9
		r.Open(message.StreamFetch, ask).AnyStop().WantReset(lite.StreamNotFound)
		if v.HasFrameBounds() {
			ask.Group, ask.StartFrame, ask.EndFrame = 7, 1, message.Some(1)
			r.Open(message.StreamFetch, ask).Want(r.frame(7033, []byte("1"))).WantFIN().FIN()
		}
		r.WantIdle()
	})
}

func TestServeDatagrams(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		c := r.content()
		c.group(7, "key").Finish()
		s := r.ask(5, message.Bounds{})
		if v.HasSubscribeStartEnd() {
			s.Want(message.SubscribeStart{Group: 7})
		}
		r.wantGroup(5, 7, "key").WantFIN()
		c.copy.Datagram(9, 1000, []byte("dd"))
		c.copy.Datagram(10, 1000, make([]byte, 1200)) // larger than the path takes
		if v.HasDatagrams() {
			r.WantDatagram(message.Datagram{Subscribe: 5, Sequence: 9, Timestamp: 1000, Payload: []byte("dd")})
		}
		r.WantIdle()
	})
}

// Datagrams reach the track; those past its end do not.
func TestReceiveDatagrams(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		reader := s.track.NewReader(media.Subscription{}, wakeNobody{})
		t.Cleanup(reader.Close)
		s.Send(message.SubscribeStart{Group: 7}, message.SubscribeEnd{Group: 10})
		r.WantIdle()
		r.SendDatagram(message.Datagram{Sequence: 9, Timestamp: 5, Payload: []byte("in")})
		r.SendDatagram(message.Datagram{Sequence: 10, Timestamp: 6, Payload: []byte("past")})
		r.SendDatagram(message.Datagram{Subscribe: 1, Sequence: 8, Payload: []byte("of no subscription")})
		r.WantIdle()
		d, ok := reader.NextDatagram()
		if !ok || d.Group != 9 || d.Timestamp != 5 || string(d.Payload) != "in" {
			t.Errorf("got %+v, %v", d, ok)
		}
		if d, ok := reader.NextDatagram(); ok {
			t.Errorf("got %+v", d)
		}
		s.wantOpen()
	})
}

type wakeNobody struct{}

func (wakeNobody) Wake() {}

// moq-lite 5.14: reports begin as soon as something is known, and zeros take them back.
func TestServeProbe(t *testing.T) {
	each(t, message.Lite03, message.Lite06, func(t *testing.T, v message.Version) {
		client, server := peertest.Pair(peertest.Options{Client: transport.Info{Protocol: v.Token()}})
		r := start(t, v, options{}, client, server, lite.Accept).greet()
		s := r.Open(message.StreamProbe)
		time.Sleep(time.Second)
		r.WantIdle()
		server.SetStats(transport.Stats{RTT: 40 * time.Millisecond})
		if v.HasProbeRTT() {
			s.Want(message.Probe{RTT: 40 * time.Millisecond})
			time.Sleep(time.Second)
			r.WantIdle()
			server.SetStats(transport.Stats{})
			s.Want(message.Probe{})
		}
		s.FIN().AnyStop().WantReset(lite.StreamCancelled)
		server.SetStats(transport.Stats{RTT: 50 * time.Millisecond})
		time.Sleep(2 * time.Second)
		r.WantIdle() // the stream is over
		r.WantAlive()
	})
}

func TestSendGoaway(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		r.up.Goaway("https://b.example/")
		r.up.Goaway("https://c.example/") // only the first counts
		if v.HasGoaway() {
			r.WantStream(message.StreamGoaway, message.Goaway{URI: "https://b.example/"}).WantFIN().FIN().AnyStop()
		}
		r.WantIdle()
		if n, _ := r.Conn.Streams(); v.HasSetup() && n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

// moq-lite 8: the subscriber's priority, then the older subscription, then the newest group; control streams come first.
func TestPriorities(t *testing.T) {
	each(t, message.Lite03, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		c := r.content()
		for id, priority := range []uint8{3, 3, 9} {
			r.ask(uint64(id), message.Bounds{Priority: priority, MaxAge: time.Minute}).AnyStop()
		}
		synctest.Wait()
		c.group(7, "a")
		synctest.Wait()
		c.group(8, "b")
		synctest.Wait()
		var got [3][2]int
		for range 6 {
			var m message.Group
			s := r.WantUniStream(message.UniGroup).Receive(&m)
			got[m.Subscribe][m.Sequence-7] = s.Urgency()
		}
		want := [3][2]int{{7, 6}, {7, 7}, {5, 4}}
		if got != want {
			t.Errorf("urgencies are %v, want %v", got, want)
		}
	})
}

// Nothing is left of a session that has ended, whatever it was doing.
func TestEndOfSession(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"closed by the peer": func(r *rig) { r.Conn.Close(0, "") },
		"closed by us":       func(r *rig) { r.up.Close(lite.SessionUnauthorized, "") },
		"carrier failed":     func(r *rig) { r.Conn.Fail(session.ErrTimeout) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
				r, announces := listening(t, v, "", options{initial: initial})
				announces.Send(startOf("a"))
				r.content().group(7, "key")
				r.ask(0, message.Bounds{})
				r.Open(message.StreamAnnounce, message.AnnounceRequest{})
				for typ, m := range requests(v) {
					if typ != message.StreamSubscribe && typ != message.StreamGoaway {
						r.Open(typ, m)
					}
				}
				s := r.subscribe(media.Subscription{}, message.Bounds{})
				r.group(1, r.frame(0, []byte("half")))
				r.WantAlive()
				end(r)
				<-r.ended
				<-s.Done()
				if r.err == nil || s.Err() == nil {
					t.Errorf("session ended with %v, subscription with %v", r.err, s.Err())
				}
				if _, err := r.up.Subscribe(t.Context(), session.SubscribeRequest{Path: "a", Track: "b"}, s.copy); err == nil {
					t.Error("a subscription on a session that is over")
				}
			})
		})
	}
}
