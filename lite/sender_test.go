package lite_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stalled is a session that serves one subscription to a peer whose windows hold a kilobyte per stream.
func stalled(t *testing.T, b message.Bounds, o peertest.Options) (*rig, *content) {
	t.Helper()
	o.Window = 1 << 10
	r := accept(t, message.Lite06, options{pair: o}).greet()
	c := r.content()
	c.copy.Start(0)
	r.ask(0, b).Want(message.SubscribeStart{}).AnyStop()
	return r, c
}

// large is a payload that fills a window many times.
var large = strings.Repeat("x", 16<<10)

// whole publishes a complete group.
func (c *content) whole(sequence uint64, payloads ...string) {
	c.t.Helper()
	c.group(sequence, payloads...).Finish()
}

// accepted takes the next group stream and tells which group it is. Nothing else is read from it.
func (r *rig) accepted() (uint64, *peertest.PeerStream) {
	r.t.Helper()
	var m message.Group
	s := r.WantUniStream(message.UniGroup).Receive(&m)
	return m.Sequence, s
}

// TestBlockedGroupDoesNotHoldUpTheNewest wants a newer group to be sent at once, and the blocked one to be reset as soon
// as it is too old, but not before.
func TestBlockedGroupDoesNotHoldUpTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := stalled(t, message.Bounds{MaxAge: 2500 * time.Millisecond}, peertest.Options{})
		c.whole(0, large)
		_, blocked := r.accepted()
		for g := uint64(1); g <= 3; g++ {
			c.whole(g, "small")
			seq, s := r.accepted()
			if seq != g {
				t.Fatalf("group %d came, want %d", seq, g)
			}
			s.ReceiveAll()
		}
		time.Sleep(time.Second)
		if n := r.up.Counters().Sent.StaleGroups.Load(); n != 0 {
			t.Fatalf("%d groups given up: 0 is superseded at 1000 and the newest frame is at 3000", n)
		}
		c.whole(4, "small") // 4000 - 1000 >= 2500
		_, s := r.accepted()
		s.ReceiveAll()
		time.Sleep(300 * time.Millisecond)
		blocked.WantReset(lite.StreamOld)
		if n := r.up.Counters().Sent.StaleGroups.Load(); n != 1 {
			t.Errorf("%d groups given up, want 1", n)
		}
	})
}

// TestOldGroupGoesOnWhileNotBlocked wants a group that is too old but flows to be finished (F11).
func TestOldGroupGoesOnWhileNotBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := stalled(t, message.Bounds{}, peertest.Options{})
		live := c.group(0, "a")
		_, s := r.accepted()
		c.whole(1, "b")
		_, other := r.accepted()
		other.ReceiveAll()
		time.Sleep(300 * time.Millisecond)
		c.write(live, 33, "late")
		live.Finish()
		if got := s.ReceiveAll(); !strings.HasSuffix(string(got), "late") {
			t.Errorf("group 0 ends with %q", got)
		}
	})
}

// TestNoCreditForStreams wants groups that wait for stream credit until they are too old to be given up, and the newest
// to be sent when there is credit.
func TestNoCreditForStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := stalled(t, message.Bounds{MaxAge: time.Second}, peertest.Options{Streams: 2})
		var open []*peertest.PeerStream
		for g := range uint64(2) {
			c.whole(g, "s")
			_, s := r.accepted()
			open = append(open, s)
		}
		for g := uint64(2); g < 20; g++ {
			c.whole(g, "s")
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for _, s := range open {
			s.ReceiveAll()
		}
		for want := uint64(19); want >= 18; want-- { // 19 is the newest, and 18 superseded by it just now
			seq, s := r.accepted()
			s.ReceiveAll()
			if seq != want {
				t.Errorf("group %d came, want %d", seq, want)
			}
		}
		r.WantIdle()
		if n := r.up.Counters().Sent.StaleGroups.Load(); n != 16 {
			t.Errorf("%d groups given up, want 16", n)
		}
	})
}

// TestBacklog wants at most 32 groups of the backlog in flight, new groups to start beside them, at most 64 in all, and
// the lowest to give way.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := peertest.Options{Window: 1 << 10, Streams: 1000}
		r := accept(t, message.Lite06, options{pair: o}).greet()
		c := r.content()
		c.copy.Start(0)
		for g := range uint64(100) {
			c.group1(g, 10*g, large)
		}
		r.ask(0, message.Bounds{MaxAge: time.Minute}).Want(message.SubscribeStart{}).AnyStop()
		streams := make(map[uint64]*peertest.PeerStream)
		take := func(n int) {
			t.Helper()
			synctest.Wait()
			for range n {
				seq, s := r.accepted()
				streams[seq] = s
			}
			if n := r.sending(); n != len(streams) {
				t.Fatalf("%d streams are open, %d accepted", n, len(streams))
			}
		}
		take(32)
		for g := uint64(68); g < 100; g++ {
			if streams[g] == nil {
				t.Fatalf("the backlog is not sent newest first: %d is missing", g)
			}
		}
		for g := uint64(100); g < 132; g++ { // new groups start at once
			c.group1(g, 10*g, large)
			take(1)
		}
		for g := uint64(132); g < 140; g++ { // and in the end, the lowest give way
			c.group1(g, 10*g, large)
			synctest.Wait()
			streams[g-132+68].WantReset(lite.StreamOld)
			delete(streams, g-132+68)
			take(1)
		}
		for seq := range uint64(140) { // as they are read, the rest of the backlog follows, newest first
			seq = 139 - seq
			if seq >= 68 && seq < 76 {
				continue
			}
			if streams[seq] == nil {
				t.Fatalf("group %d is not there", seq)
			}
			streams[seq].ReceiveAll()
			delete(streams, seq)
			synctest.Wait()
			take(r.sending() - len(streams))
		}
		if n := r.up.Counters().Sent.Groups.Load(); n != 140 {
			t.Errorf("%d groups sent, want 140", n)
		}
		r.WantIdle()
	})
}

// TestLateBacklog has old groups come after the subscription, newest first as publishers send them, and faster than they
// leave: the limits make them wait, none is given up.
func TestLateBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups = uint64(300)
		o := peertest.Options{Window: 1 << 10, Streams: 1000}
		r := accept(t, message.Lite06, options{pair: o}).greet()
		c := r.content()
		c.copy.Start(0)
		asked := r.ask(0, message.Bounds{MaxAge: time.Minute})
		for g := groups; g > 0; g-- {
			c.group1(g-1, 10*(g-1), large)
			synctest.Wait()
		}
		asked.Want(message.SubscribeStart{}).AnyStop()
		for range groups {
			_, s := r.accepted()
			s.ReceiveAll()
			synctest.Wait()
		}
		sent := &r.up.Counters().Sent
		if n, stale := sent.Groups.Load(), sent.StaleGroups.Load(); n != groups || stale != 0 {
			t.Errorf("%d groups sent and %d given up, want all %d sent", n, stale, groups)
		}
		r.WantIdle()
	})
}

// group1 publishes a complete group of one frame.
func (c *content) group1(sequence, ts uint64, payload string) {
	c.t.Helper()
	w := c.group(sequence)
	c.write(w, ts, payload)
	w.Finish()
}

// sending is how many group streams the session has open.
func (r *rig) sending() int {
	_, n := r.up.Conn().(*peertest.Conn).Streams()
	return n
}

// TestGoroutines wants a subscription that keeps up to cost two goroutines, whatever it is sent, and nothing to be
// left of it.
func TestGoroutines(t *testing.T) {
	const n = 50
	for name, groups := range map[string]struct{ count, frames int }{
		"video": {5, 20},
		"audio": {200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := accept(t, message.Lite06, options{pair: peertest.Options{Streams: 1000}}).greet()
				c := r.content()
				c.copy.Start(0)
				before := goroutines()
				var asked []*peertest.PeerStream
				for id := range uint64(n) {
					asked = append(asked, r.ask(id, message.Bounds{}).Want(message.SubscribeStart{}))
				}
				check := func(what string) {
					t.Helper()
					if got := goroutines() - before; got > 2*n+n/10 {
						t.Fatalf("%s: %d subscriptions take %d goroutines", what, n, got)
					}
				}
				check("idle")
				for g := range uint64(groups.count) {
					w := c.group(g)
					synctest.Wait()
					for i := range groups.frames {
						c.write(w, 1000*g+uint64(i), "frame")
						check("frame")
					}
					w.Finish()
					check("end of the group")
					for range n {
						_, s := r.accepted()
						s.ReceiveAll()
					}
				}
				for _, s := range asked {
					s.FIN().WantFIN()
				}
				if got := goroutines() - before; got > n/10 { // others come and go in the process
					t.Errorf("%d goroutines are left", got)
				}
			})
		})
	}
}

// goroutines is how many there are when all is done.
func goroutines() int {
	synctest.Wait()
	// NumGoroutine counts some that have ended for a while longer; the dump does not.
	buf := make([]byte, 1<<20)
	return bytes.Count(buf[:runtime.Stack(buf, true)], []byte("\n\ngoroutine ")) + 1
}

// TestBlockedDatagramDoesNotHoldUpGroups wants groups to be sent while SendDatagram blocks.
func TestBlockedDatagramDoesNotHoldUpGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientConn, serverConn := peertest.Pair(peertest.Options{Client: transport.Info{Protocol: message.Lite06.Token()}})
		full := &fullConn{Conn: serverConn, release: make(chan struct{})}
		r := start(t, message.Lite06, options{}, clientConn, full, lite.Accept).greet()
		c := r.content()
		c.copy.Start(0)
		r.ask(0, message.Bounds{}).Want(message.SubscribeStart{}).AnyStop()
		c.copy.Datagram(0, 0, []byte("a"))
		synctest.Wait()
		c.copy.Datagram(1, 1000, []byte("b"))
		for g := uint64(2); g < 6; g++ {
			c.whole(g, "k")
			seq, s := r.accepted()
			s.ReceiveAll()
			if seq != g {
				t.Fatalf("group %d came, want %d", seq, g)
			}
		}
		close(full.release)
		r.WantDatagram(message.Datagram{Payload: []byte("a")})
		r.WantDatagram(message.Datagram{Sequence: 1, Timestamp: 1000, Payload: []byte("b")})
		c.copy.Datagram(6, 6000, []byte("c"))
		r.WantDatagram(message.Datagram{Sequence: 6, Timestamp: 6000, Payload: []byte("c")})
	})
}

// TestLostDatagramsAreCounted: what newer datagrams replace while SendDatagram blocks went too late.
func TestLostDatagramsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientConn, serverConn := peertest.Pair(peertest.Options{Client: transport.Info{Protocol: message.Lite06.Token()}})
		full := &fullConn{Conn: serverConn, release: make(chan struct{})}
		r := start(t, message.Lite06, options{}, clientConn, full, lite.Accept).greet()
		c := r.content()
		c.copy.Start(0)
		r.ask(0, message.Bounds{}).Want(message.SubscribeStart{}).AnyStop()
		c.copy.Datagram(0, 0, []byte("a"))
		synctest.Wait() // a is being sent
		for g := range uint64(media.DatagramRing + 5) {
			c.copy.Datagram(1+g, 0, []byte("bc"))
		}
		close(full.release)
		synctest.Wait()
		sent := &r.up.Counters().Sent
		if n, bytes := sent.StaleDatagrams.Load(), sent.StaleBytes.Load(); n != 5 || bytes != 10 {
			t.Errorf("%d datagrams of %d bytes were lost, want 5 of 10", n, bytes)
		}
		if n, bytes := sent.Datagrams.Load(), sent.Bytes.Load(); n != 1+media.DatagramRing || bytes != 1+2*media.DatagramRing {
			t.Errorf("%d datagrams of %d bytes were sent", n, bytes)
		}
	})
}

// fullConn has a datagram queue that is full until release is closed.
type fullConn struct {
	*peertest.Conn
	release chan struct{}
}

func (c *fullConn) SendDatagram(b []byte) error {
	select {
	case <-c.release:
		return c.Conn.SendDatagram(b)
	case <-c.Context().Done():
		return context.Cause(c.Context())
	}
}

// TestDeliversAll publishes from several goroutines in real time and wants every group to arrive complete: nothing may be
// lost between wake-ups. Publishers are held back so far that the limits of the sender are not reached.
func TestDeliversAll(t *testing.T) {
	const tracks, groups, frames, publishers, ahead = 4, 200, 3, 4, 12
	for _, v := range []message.Version{message.Lite03, message.Lite06} {
		t.Run(v.String(), func(t *testing.T) {
			p := running(t, v, options{pair: peertest.Options{Streams: 10000}})
			var wg sync.WaitGroup
			for i := range tracks {
				name := fmt.Sprint(i)
				info := media.DefaultInfo()
				info.MaxAge = time.Hour
				c := p.publish(p.server, name, info)
				w := p.watchAs(p.client, name, media.Subscription{Start: &media.Position{Group: 1}, MaxAge: time.Hour}, info)
				under := make(chan struct{}, ahead)
				for k := range uint64(publishers) {
					wg.Go(func() {
						for g := 1 + k; g <= groups; g += publishers {
							under <- struct{}{}
							publishSlowly(t, c, g, frames)
						}
					})
				}
				wg.Go(func() { receiveAll(t, w, groups, frames, under) })
			}
			wg.Wait()
			if n := p.server.Counters().Sent.Groups.Load(); n != tracks*groups {
				t.Errorf("%d groups sent, want %d", n, tracks*groups)
			}
		})
	}
}

func publishSlowly(t *testing.T, c source, group uint64, frames int) {
	w, err := c.Group(group, 0)
	if err != nil {
		t.Error(err)
		return
	}
	for i := range frames {
		if rand.IntN(4) == 0 {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		}
		if err := w.WriteFrame(1000*group+uint64(i), fmt.Append(nil, group, i)); err != nil {
			t.Error(err)
		}
	}
	w.Finish()
}

// receiveAll reads groups, and takes a token for each.
func receiveAll(t *testing.T, w *watched, groups, frames int, tokens <-chan struct{}) {
	for range groups {
		var g *media.GroupReader
		for g == nil {
			var err error
			if g, err = w.reader.Next(); err != nil {
				t.Error(err)
				return
			}
			if g == nil {
				select {
				case <-w.waker:
				case <-time.After(20 * time.Second):
					t.Error("a group is missing")
					return
				}
			}
		}
		text, err := read(g)
		g.Close()
		<-tokens
		if n := len(strings.Fields(text)); err != nil || n != 2*frames {
			t.Errorf("group %d has %q, %v", g.Sequence(), text, err)
		}
	}
}
