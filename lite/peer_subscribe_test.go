package lite_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// subscription is one of the session's at the peer.
type subscription struct {
	*peertest.PeerStream // the SUBSCRIBE stream, request read
	session.Subscription
	r     *rig
	track *media.Track
	copy  *media.Copy
}

// subscribe makes the session subscribe, and wants the request. The first subscription of a session has id 0.
func (r *rig) subscribe(sub media.Subscription, bounds message.Bounds) *subscription {
	r.t.Helper()
	info := media.DefaultInfo()
	info.Unstamped = !r.Version.HasTimestamps()
	s := &subscription{r: r, track: media.NewCache(media.CacheConfig{}).NewTrack(info)}
	s.copy = s.track.NewCopy(nil)
	req := session.SubscribeRequest{Path: "room/alice", Track: "video", Subscription: sub, Info: info}
	var err error
	if s.Subscription, err = r.up.Subscribe(r.t.Context(), req, s.copy); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.copy.Close)
	s.PeerStream = r.WantStream(message.StreamSubscribe, message.Subscribe{Broadcast: "room/alice", Track: "video", Bounds: bounds})
	return s
}

// subscribed is a session with one subscription, which the peer has accepted where the version has a way to.
func subscribed(t *testing.T, v message.Version, o options) (*rig, *subscription) {
	t.Helper()
	r := accept(t, v, o).greet()
	s := r.subscribe(media.Subscription{Priority: 3, MaxAge: time.Second}, message.Bounds{Priority: 3, MaxAge: time.Second})
	if v.HasSubscribeOK() {
		s.Send(message.SubscribeOK{Priority: 3})
	}
	return r, s
}

// wantEnd wants the subscription to be over because of want; nil is a clean end.
func (s *subscription) wantEnd(want error) {
	s.r.t.Helper()
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		s.r.t.Fatal("the subscription goes on")
	}
	if err := s.Err(); !errors.Is(err, want) {
		s.r.t.Fatalf("subscription ended with %v, want %v", err, want)
	}
}

// wantOpen wants the subscription to go on.
func (s *subscription) wantOpen() {
	s.r.t.Helper()
	synctest.Wait()
	select {
	case <-s.Done():
		s.r.t.Fatalf("the subscription ended: %v", s.Err())
	default:
	}
}

// group opens a group stream of the first subscription.
func (r *rig) group(sequence uint64, frames ...any) *peertest.PeerStream {
	r.t.Helper()
	return r.OpenUni(append([]any{message.UniGroup, message.Group{Sequence: sequence}}, frames...)...)
}

// frame is a frame as it follows on a group stream.
func (r *rig) frame(delta int64, payload []byte) []byte {
	r.t.Helper()
	b, err := message.AppendFrameHeader(nil, r.Version, message.FrameHeader{Delta: delta, Size: uint64(len(payload))})
	if err != nil {
		r.t.Fatal(err)
	}
	return append(b, payload...)
}

// readGroup reads the complete group that a new reader of the track finds under this number.
func (s *subscription) readGroup(sequence uint64) (payloads [][]byte, err error) {
	g, missing := s.track.Fetch(sequence, 0)
	if missing != nil {
		missing.Close(media.ErrNotFound)
		return nil, media.ErrNotFound
	}
	defer g.Close()
	w := media.NewWaiter()
	timer := time.AfterFunc(time.Second, w.Cancel)
	defer timer.Stop()
	for {
		b, err := g.Next(w)
		if err != nil {
			return payloads, err
		}
		for i := range b.Frames() {
			payloads = append(payloads, bytes.Clone(b.Frame(i).Payload))
		}
	}
}

func TestSubscribeReceivesGroups(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		s := r.subscribe(media.Subscription{Priority: 3}, message.Bounds{Priority: 3})
		early := r.group(7, r.frame(1000, []byte("key"))) // groups may overtake every answer
		r.WantIdle()
		if v.HasSubscribeOK() {
			s.Send(message.SubscribeOK{})
		} else {
			s.Send(message.SubscribeStart{Group: 7})
		}
		early.Send(r.frame(33, []byte("d1")), r.frame(-5, nil)).FIN().AnyStop()
		if v.HasSubscribeDrop() {
			s.Send(message.SubscribeDrop{Start: 8, End: 9, Code: 0x34})
		}
		r.group(10).FIN().AnyStop() // without frames
		r.WantIdle()
		got, err := s.readGroup(7)
		want := [][]byte{[]byte("key"), []byte("d1"), {}}
		if len(got) != 3 || !bytes.Equal(bytes.Join(got, []byte("|")), bytes.Join(want, []byte("|"))) {
			t.Errorf("group 7 holds %q, %v", got, err)
		}
		s.wantOpen()
		if v.HasSubscribeStartEnd() {
			s.Send(message.SubscribeEnd{Group: 11})
		}
		s.FIN().AnyStop().WantEnd()
		s.wantEnd(nil)
		r.WantIdle()
		if st, uni := r.Conn.Streams(); uni != 0 || v.HasSetup() && st != 0 {
			t.Errorf("%d and %d streams are left", st, uni)
		}
	})
}

// A newer group that overtakes SUBSCRIBE_START must not cost a reader without a floor the older ones (F5). A START that
// never comes delays the first group only.
func TestGroupOvertakesStart(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		reader := s.track.NewReader(media.Subscription{MaxAge: media.Unlimited}, idleWaker{})
		defer reader.Close()
		r.group(8, r.frame(2000, nil))
		synctest.Wait()
		if g, err := reader.Next(); g != nil || err != nil {
			t.Fatalf("a group is handed out before the start is known: %v, %v", g, err)
		}
		time.Sleep(50 * time.Millisecond)
		s.Send(message.SubscribeStart{Group: 7})
		r.group(7, r.frame(1000, nil))
		synctest.Wait()
		for _, want := range []uint64{8, 7} {
			g, err := reader.Next()
			if err != nil || g == nil || g.Sequence() != want {
				t.Fatalf("got %v, %v, want group %d", g, err, want)
			}
			g.Close()
		}
	})
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		reader := s.track.NewReader(media.Subscription{MaxAge: media.Unlimited}, idleWaker{})
		defer reader.Close()
		r.group(8, r.frame(2000, nil))
		time.Sleep(150 * time.Millisecond)
		synctest.Wait()
		if g, err := reader.Next(); err != nil || g == nil || g.Sequence() != 8 {
			t.Fatalf("without a START: %v, %v", g, err)
		}
	})
}

type idleWaker struct{}

func (idleWaker) Wake() {}

// What the peer must not say ends the subscription and nothing else.
func TestBadSubscribeAnswers(t *testing.T) {
	for _, tt := range []struct {
		name        string
		first, last message.Version
		answer      func(s *peertest.PeerStream)
		want        error
	}{
		{"FIN without END", 5, 6, func(s *peertest.PeerStream) { s.FIN() }, media.ErrMalformed},
		{"FIN after START", 5, 6, func(s *peertest.PeerStream) { s.Send(message.SubscribeStart{}).FIN() }, media.ErrMalformed},
		{"FIN before OK", 1, 4, func(s *peertest.PeerStream) { s.FIN() }, media.ErrMalformed},
		{"unknown type", 3, 6, func(s *peertest.PeerStream) { s.Send("03 00") }, media.ErrMalformed},
		{"OK of 03 on 05", 5, 6, func(s *peertest.PeerStream) { s.Send("00 05 00 00 00 00 00") }, media.ErrMalformed},
		{"START of 05 on 03", 3, 4, func(s *peertest.PeerStream) { s.Send("00 01 07") }, media.ErrMalformed},
		{"DROP before OK", 3, 4, func(s *peertest.PeerStream) { s.Send("01 03 01 03 00").FIN() }, media.ErrMalformed},
		{"truncated", 1, 1, func(s *peertest.PeerStream) { s.Send("01").FIN() }, media.ErrMalformed},
		{"truncated", 3, 6, func(s *peertest.PeerStream) { s.Send("00 02 00").FIN() }, media.ErrMalformed},
		{"trailing byte", 1, 1, func(s *peertest.PeerStream) { s.Send("02 00 00") }, media.ErrMalformed},
		{"trailing byte", 2, 2, func(s *peertest.PeerStream) { s.Send("01 00") }, media.ErrMalformed},
		{"trailing byte", 5, 6, func(s *peertest.PeerStream) { s.Send("01 02 00 00") }, media.ErrMalformed},
		{"too large", 1, 2, func(s *peertest.PeerStream) { s.Send("84 00 00 01") }, media.ErrMalformed},
		{"too large", 3, 6, func(s *peertest.PeerStream) { s.Send("00 84 00 00 01") }, media.ErrMalformed},
		{"not found", 1, 6, func(s *peertest.PeerStream) { s.Reset(lite.StreamNotFound) }, media.ErrNotFound},
		{"no route", 1, 6, func(s *peertest.PeerStream) { s.Reset(lite.StreamUnroutable) }, session.ErrUnroutable},
		{"going away", 1, 6, func(s *peertest.PeerStream) { s.Reset(lite.StreamGoingAway) }, session.ErrGoingAway},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, tt.first, tt.last, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{}).greet()
				s := r.subscribe(media.Subscription{}, message.Bounds{})
				tt.answer(s.AnyStop())
				s.wantEnd(tt.want)
				// The peer learns of it: our side ends, and groups are not wanted any more.
				r.group(1, r.frame(0, nil)).WantStop(lite.StreamCancelled)
				r.WantAlive()
			})
		})
	}
}

// A refusal keeps its code, for logs and for passing it on.
func TestRefusalKeepsItsCode(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		for _, code := range []uint64{0, 1, 3, 0x30, 567, 1 << 40} {
			r := accept(t, v, options{}).greet()
			s := r.subscribe(media.Subscription{}, message.Bounds{})
			s.Reset(code)
			<-s.Done()
			var refused *lite.RequestError
			if err := s.Err(); !errors.As(err, &refused) || refused.Code != code || errors.Is(err, media.ErrCancelled) {
				t.Errorf("reset with 0x%x: %v", code, err)
			}
			r.WantAlive()
		}
	})
}

// moq-lite 10: what is wrong with a group stops its stream, with the code that says so.
func TestBadGroups(t *testing.T) {
	many := bytes.Repeat([]byte{0, 0}, media.MaxGroupFrames+1)
	for _, tt := range []struct {
		name        string
		first, last message.Version
		frames      []any
		code        uint64
	}{
		{"negative timestamp", 5, 6, []any{"01 00"}, lite.StreamMalformed},
		{"negative sum", 5, 6, []any{"47d0 00", "47d1 00"}, lite.StreamMalformed},
		{"timestamp beyond the range", 5, 6, []any{"fffffffffffffffe 00", "fffffffffffffffe 00", "04 00"}, lite.StreamMalformed},
		{"large frame", 5, 6, []any{"00 82000001"}, lite.StreamFrameTooLarge},
		{"large frame", 1, 4, []any{"82000001"}, lite.StreamFrameTooLarge},
		{"large frame of any length", 1, 4, []any{"ffffffffffffffff"}, lite.StreamFrameTooLarge},
		{"many frames", 5, 6, []any{many}, lite.StreamGroupTooLarge},
		{"many frames", 1, 4, []any{many[:media.MaxGroupFrames+1]}, lite.StreamGroupTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, tt.first, tt.last, func(t *testing.T, v message.Version) {
				r, s := subscribed(t, v, options{})
				r.group(7, tt.frames...).WantStop(tt.code)
				s.wantOpen()
				r.group(8, r.frame(0, []byte("good"))).FIN().AnyStop()
				r.WantAlive()
				if got, err := s.readGroup(8); len(got) != 1 {
					t.Errorf("the next group holds %q, %v", got, err)
				}
			})
		})
	}
}

// A group that ends inside a frame, or by reset, is incomplete; the subscription goes on.
func TestTruncatedGroups(t *testing.T) {
	for _, tt := range []struct {
		name  string
		frame []byte
	}{
		{"in a header", []byte{0x40}},
		{"in a payload", []byte{0, 5, 'h', 'e', 'l'}},
		{"in a large payload", append([]byte{0, 0x80, 0, 0x80, 0}, bytes.Repeat([]byte{1}, 20_000)...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
				frame := tt.frame
				if !v.HasTimestamps() && len(frame) > 1 {
					frame = frame[1:]
				}
				r, s := subscribed(t, v, options{})
				r.group(7, r.frame(0, []byte("whole")), frame).FIN().AnyStop()
				r.group(8, r.frame(0, []byte("whole")), frame).Reset(lite.StreamOld).AnyStop()
				r.WantAlive()
				s.wantOpen()
				for _, seq := range []uint64{7, 8} {
					if got, err := s.readGroup(seq); errors.Is(err, context.Canceled) || len(got) > 1 {
						t.Errorf("group %d holds %q, %v", seq, got, err)
					}
				}
			})
		})
	}
}

// A group comes once on a subscription (moq-lite 10).
func TestDuplicateGroup(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		if v.HasSubscribeStartEnd() {
			s.Send(message.SubscribeStart{Group: 7})
		}
		r.group(7, r.frame(0, nil))
		r.WantAlive()
		r.group(7, r.frame(0, nil)).WantStop(lite.StreamInternal)
		r.group(8, r.frame(0, nil)).FIN().AnyStop()
		r.WantAlive()
		r.group(8, r.frame(0, nil)).WantStop(lite.StreamInternal)
		s.wantOpen()
		r.WantIdle()
	})
}

// moq-lite 10 and 5.9: nothing exists at or past END. 06 fails the track over it, 05 only the stream.
func TestGroupPastEnd(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		s.Send(message.SubscribeStart{Group: 7}, message.SubscribeEnd{Group: 9}).AnyStop()
		r.group(8, r.frame(0, nil)).FIN().AnyStop() // a trailing group below the end
		r.WantIdle()
		late := r.group(9, r.frame(0, nil))
		if v.HasFloor() {
			late.WantStop(lite.StreamSessionClosed)
			s.wantEnd(media.ErrMalformed)
			s.WantReset(lite.StreamSessionClosed)
			r.WantIdle()
			return
		}
		late.AnyStop()
		s.wantOpen()
		s.FIN()
		s.wantEnd(nil)
		r.WantAlive()
	})
}

// moq-lite 5.9: on 05 an END at or below a group that came is taken for advice of an old peer; on 06 it is a violation.
func TestEndBelowReceivedGroup(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		r.group(7, r.frame(0, nil)).FIN().AnyStop()
		r.WantAlive()
		s.Send(message.SubscribeStart{Group: 7}, message.SubscribeEnd{Group: 7}).AnyStop()
		if v.HasFloor() {
			s.wantEnd(media.ErrMalformed)
		} else {
			s.wantOpen()
			s.FIN()
			s.wantEnd(nil)
		}
		r.WantAlive()
	})
}

// moq-lite 4.2 and 5.7: FIN unsubscribes. Groups in flight are stopped, later ones are of no subscription.
func TestUnsubscribe(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		open := r.group(7, r.frame(0, nil))
		r.WantAlive()
		s.Cancel()
		s.WantFIN()
		open.WantStop(lite.StreamCancelled)
		s.wantEnd(media.ErrCancelled)
		r.group(8).WantStop(lite.StreamCancelled)
		r.WantIdle()
		s.FIN()
		r.WantAlive()
	})
}

// moq-lite 4.3: groups in flight when the publisher finishes are still taken.
func TestGroupsAfterFIN(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		open := r.group(7, r.frame(0, []byte("a")))
		s.Send(message.SubscribeStart{Group: 7}, message.SubscribeEnd{Group: 9}).FIN().AnyStop()
		s.wantOpen()
		open.Send(r.frame(0, []byte("b"))).FIN().AnyStop()
		r.group(8, r.frame(0, []byte("c"))).FIN().AnyStop()
		s.wantEnd(nil)
		for seq, n := range map[uint64]int{7: 2, 8: 1} {
			if got, err := s.readGroup(seq); len(got) != n {
				t.Errorf("group %d holds %q, %v", seq, got, err)
			}
		}
		s.WantEnd()
	})
}

// Groups that never come are not waited for longer than the grace.
func TestGroupsThatNeverCome(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		s.Send(message.SubscribeStart{Group: 7}, message.SubscribeEnd{Group: 9}).FIN().AnyStop()
		begin := time.Now()
		s.wantEnd(nil)
		if d := time.Since(begin); d != time.Second { // the max age of the subscription
			t.Errorf("waited %v", d)
		}
		r.group(8).WantStop(lite.StreamCancelled)
	})
}

func TestSubscribeUpdate(t *testing.T) {
	each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		sub := media.Subscription{Priority: 9, MaxAge: 2 * time.Second, Start: &media.Position{Group: 4, Frame: 2}, End: &media.Position{Group: 6, Frame: 1}}
		err := s.Update(sub)
		if !v.HasSubscribeUpdate() {
			if !errors.Is(err, session.ErrUnsupported) {
				t.Errorf("update: %v", err)
			}
			r.WantIdle()
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b := message.Bounds{Priority: 9, MaxAge: 2 * time.Second, StartGroup: message.Some(4), EndGroup: message.Some(6)}
		if v.HasFrameBounds() {
			b.StartFrame = 2 // an end inside a group is asked as the end of the group (F6)
		}
		s.Want(message.SubscribeUpdate{Bounds: b})
		r.WantIdle()
	})
}

// moq-lite 5.15: after GOAWAY nothing new is asked for.
func TestNoRequestsAfterGoaway(t *testing.T) {
	each(t, message.Lite04, message.Lite06, func(t *testing.T, v message.Version) {
		r, s := subscribed(t, v, options{})
		r.Open(message.StreamGoaway, message.Goaway{}).FIN().AnyStop().WantEnd()
		r.WantAlive()
		if _, err := r.up.Subscribe(t.Context(), session.SubscribeRequest{}, s.copy); !errors.Is(err, session.ErrGoingAway) {
			t.Errorf("subscribe: %v", err)
		}
		if v.HasTrackInfo() {
			if _, err := r.up.TrackInfo(t.Context(), "a", "b"); !errors.Is(err, session.ErrGoingAway) {
				t.Errorf("track: %v", err)
			}
			if err := r.up.Fetch(t.Context(), session.FetchRequest{}, nil, nil); !errors.Is(err, session.ErrGoingAway) {
				t.Errorf("fetch: %v", err)
			}
		}
		s.wantOpen()
		r.group(1, r.frame(0, nil)).FIN().AnyStop() // what runs goes on
		r.WantIdle()
	})
}

// result is what a call that blocks came back with.
type result[T any] struct {
	value T
	err   error
}

func async[T any](f func() (T, error)) <-chan result[T] {
	ch := make(chan result[T], 1)
	go func() {
		v, err := f()
		ch <- result[T]{v, err}
	}()
	return ch
}

func (r *rig) trackInfo() (*peertest.PeerStream, <-chan result[media.Info]) {
	r.t.Helper()
	ctx := r.t.Context()
	ch := async(func() (media.Info, error) { return r.up.TrackInfo(ctx, "room/alice", "video") })
	return r.WantStream(message.StreamTrack, message.Track{Broadcast: "room/alice", Track: "video"}), ch
}

func TestTrackInfo(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		s, ch := r.trackInfo()
		s.WantNothing() // a FIN would cancel the request
		s.Send(message.TrackInfo{Priority: 9, MaxAge: time.Minute, Timescale: 90_000}).FIN().AnyStop()
		got := <-ch
		if want := (media.Info{Priority: 9, MaxAge: time.Minute, Timescale: 90_000}); got.value != want || got.err != nil {
			t.Errorf("got %+v, %v, want %+v", got.value, got.err, want)
		}
		s.WantEnd()
		r.WantIdle()
	})
	each(t, message.Lite01, message.Lite04, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		got, err := r.up.TrackInfo(t.Context(), "room/alice", "video")
		want := media.DefaultInfo()
		want.Unstamped = true
		if got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		r.WantIdle()
	})
}

func TestBadTrackInfo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(*peertest.PeerStream, message.Version)
		want   error
	}{
		{"timescale 0", func(s *peertest.PeerStream, v message.Version) {
			if v.HasOrdered() {
				s.Send("04 7f 00 00 00")
			} else {
				s.Send("03 7f 00 00")
			}
		}, media.ErrMalformed},
		{"truncated", func(s *peertest.PeerStream, _ message.Version) { s.Send("02 7f 00").FIN() }, media.ErrMalformed},
		{"FIN inside", func(s *peertest.PeerStream, _ message.Version) { s.Send("06 7f").FIN() }, media.ErrMalformed},
		{"FIN", func(s *peertest.PeerStream, _ message.Version) { s.FIN() }, media.ErrMalformed},
		{"too large", func(s *peertest.PeerStream, _ message.Version) { s.Send("84 00 00 01") }, media.ErrMalformed},
		{"not found", func(s *peertest.PeerStream, _ message.Version) { s.Reset(lite.StreamNotFound) }, media.ErrNotFound},
		{"silence", func(*peertest.PeerStream, message.Version) {}, session.ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{}).greet()
				s, ch := r.trackInfo()
				tt.answer(s.AnyStop(), v)
				if got := <-ch; !errors.Is(got.err, tt.want) {
					t.Errorf("got %v, want %v", got.err, tt.want)
				}
				s.WantEnd()
				r.WantIdle()
			})
		})
	}
}

// fetching makes the session fetch group 7 from frame 2 on.
func (r *rig) fetching() (*peertest.PeerStream, *media.GroupReader, <-chan result[bool]) {
	r.t.Helper()
	track := media.NewCache(media.CacheConfig{}).NewTrack(media.DefaultInfo())
	g, f := track.Fetch(7, 2)
	if f == nil {
		r.t.Fatal("an empty track has the group")
	}
	first, ask := uint64(0), message.Fetch{Broadcast: "room/alice", Track: "video", Priority: 3, Group: 7}
	if r.Version.HasFrameBounds() {
		first, ask.StartFrame = 2, 2
	}
	w := f.Writer(first)
	ctx := r.t.Context()
	ch := async(func() (accepted bool, err error) {
		req := session.FetchRequest{Path: "room/alice", Track: "video", Priority: 3, Group: 7, Frame: 2}
		err = r.up.Fetch(ctx, req, w, func() { accepted = true })
		if err == nil {
			w.Finish()
		} else {
			w.Abort(err)
		}
		f.Close(err)
		return accepted, err
	})
	r.t.Cleanup(g.Close)
	return r.WantStream(message.StreamFetch, ask), g, ch
}

func TestFetch(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		s, g, ch := r.fetching()
		s.WantNothing() // a FIN would cancel the request
		if !v.HasFrameBounds() {
			s.Send(r.frame(10, []byte("0")), r.frame(1, []byte("1"))) // known to be there, and not wanted
		}
		s.Send(r.frame(1000, []byte("2")), r.frame(-1, []byte("3"))).FIN().AnyStop()
		if got := <-ch; !got.value || got.err != nil {
			t.Fatalf("fetch: accepted %v, %v", got.value, got.err)
		}
		b, err := g.Next(media.NewWaiter())
		if err != nil || b.Frames() != 2 || string(b.Frame(0).Payload) != "2" || string(b.Frame(1).Payload) != "3" {
			t.Errorf("fetched %d frames, %v", b.Frames(), err)
		}
		s.WantEnd()
		r.WantIdle()
	})
}

func TestFailedFetch(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answer   func(*rig, *peertest.PeerStream)
		accepted bool
		want     error
	}{
		{"refused", func(_ *rig, s *peertest.PeerStream) { s.Reset(lite.StreamNotFound) }, false, media.ErrNotFound},
		{"given up", func(r *rig, s *peertest.PeerStream) {
			s.Send(r.frame(0, []byte("2")))
			synctest.Wait()
			s.Reset(lite.StreamTooFarBehind)
		}, true, media.ErrTooFarBehind},
		{"negative timestamp", func(_ *rig, s *peertest.PeerStream) { s.Send("01 00") }, true, media.ErrMalformed},
		{"FIN inside a payload", func(_ *rig, s *peertest.PeerStream) { s.Send("00 05 aa").FIN() }, true, media.ErrMalformed},
		{"large frame", func(_ *rig, s *peertest.PeerStream) { s.Send("00 82000001") }, true, media.ErrFrameTooLarge},
		{"silence", func(*rig, *peertest.PeerStream) {}, false, session.ErrTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
				r := accept(t, v, options{}).greet()
				s, _, ch := r.fetching()
				tt.answer(r, s.AnyStop())
				if got := <-ch; got.value != tt.accepted || !errors.Is(got.err, tt.want) {
					t.Errorf("accepted %v, %v, want %v, %v", got.value, got.err, tt.accepted, tt.want)
				}
				s.WantEnd()
				r.WantIdle()
			})
		})
	}
	each(t, message.Lite01, message.Lite04, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		if err := r.up.Fetch(t.Context(), session.FetchRequest{}, nil, nil); !errors.Is(err, session.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
		r.WantIdle()
	})
}

// A call of ours that is cancelled cancels the request.
func TestCancelledQuery(t *testing.T) {
	each(t, message.Lite05, message.Lite06, func(t *testing.T, v message.Version) {
		r := accept(t, v, options{}).greet()
		ctx, cancel := context.WithCancel(t.Context())
		ch := async(func() (media.Info, error) { return r.up.TrackInfo(ctx, "a", "b") })
		s := r.WantStream(message.StreamTrack, message.Track{Broadcast: "a", Track: "b"}).AnyStop()
		cancel()
		if got := <-ch; !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %v", got.err)
		}
		s.WantReset(lite.StreamCancelled)
		r.WantIdle()
	})
}
