package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hub is the content side of a relay, on in-memory connections.
type hub struct {
	b        *testing.B
	origin   *origin.Origin
	sessions sync.WaitGroup
}

// connect returns the other end of a session with the hub.
func (h *hub) connect() transport.Conn {
	everything, err := paths.ParseSet("**")
	if err != nil {
		h.b.Fatal(err)
	}
	near, far := peertest.Pair(peertest.Options{Client: transport.Info{Protocol: Versions[0].Token()}, Window: 1 << 20})
	h.sessions.Go(func() {
		sess, err := lite.Accept(context.Background(), far, lite.Config{Hop: h.origin.Hop()})
		if err != nil {
			h.b.Error(err)
			return
		}
		s := h.origin.Attach(origin.Peer{
			Hop: sess.Peer().Hop, Wire: sess.Wire(), Source: route.SourceLocal, Publish: everything, Subscribe: everything,
		}, sess)
		s.Close(sess.Run(context.Background(), s, s.Interests()))
	})
	return near
}

// BenchmarkFanout sends frames through a relay in this process to thin subscribers. One operation is one frame of
// 4 KiB written and received by all of them.
func BenchmarkFanout(b *testing.B) {
	for _, n := range []int{1, 10, 100, 300} {
		b.Run(fmt.Sprintf("subscribers=%d", n), func(b *testing.B) { fanout(b, n) })
	}
}

func fanout(b *testing.B, subscribers int) {
	b.Helper()
	const size, perGroup = 4096, 60
	h := &hub{b: b, origin: origin.New(origin.Config{})}
	defer h.origin.Close()
	defer h.sessions.Wait()
	publisher, err := client.New(b.Context(), h.connect(), "", client.Config{Role: client.RolePublisher})
	if err != nil {
		b.Fatal(err)
	}
	defer publisher.Close()
	broadcast, err := publisher.Publish("bench")
	if err != nil {
		b.Fatal(err)
	}
	track, err := broadcast.Track("video", media.DefaultInfo())
	if err != nil {
		b.Fatal(err)
	}
	if err := broadcast.Announce(route.Cost{}); err != nil {
		b.Fatal(err)
	}
	awaitRoute(b, h.origin)
	w := newWatch(perGroup, size)
	var s shard
	sub := subscription{broadcast: "bench", track: "video", maxAge: 5 * time.Second}
	for range subscribers {
		session, err := begin(b.Context(), h.connect(), nil)
		if err != nil {
			b.Fatal(err)
		}
		v, err := view(b.Context(), session, sub, w, &s)
		if err != nil {
			b.Fatal(err)
		}
		defer v.Close()
	}
	if err := track.WaitSubscribed(b.Context()); err != nil {
		b.Fatal(err)
	}
	var group *client.GroupWriter
	var payload []byte
	n := uint64(0)
	send := func() {
		head := testmedia.Header{Sent: time.Now(), Group: 1 + n/perGroup, Index: uint32(n % perGroup), Of: perGroup}
		if head.Index == 0 {
			if group != nil {
				group.Finish()
			}
			if group, err = track.Group(head.Group); err != nil {
				b.Fatal(err)
			}
		}
		payload = testmedia.Mesh.Append(payload[:0], head, size)
		if err := group.WriteFrame(n*33, payload); err != nil {
			b.Fatal(err)
		}
		n++
		for w.delivered.Load() < n*uint64(subscribers) {
			runtime.Gosched()
		}
	}
	for range 2 * perGroup { // pools and buffers fill
		send()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.SetBytes(int64(size * subscribers))
	for b.Loop() {
		send()
	}
	runtime.ReadMemStats(&after)
	frames := float64(b.N * subscribers)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/frames, "allocs/frame")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/frames, "B/frame")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/frames, "ns/frame")
}

// awaitRoute waits until the origin has a route to the broadcast.
func awaitRoute(b *testing.B, o *origin.Origin) {
	b.Helper()
	everything, err := paths.ParseSet("**")
	if err != nil {
		b.Fatal(err)
	}
	s := o.Attach(origin.Peer{Wire: route.WireLocal, Subscribe: everything}, nil)
	defer s.Close(nil)
	feed, err := s.Listen("bench", 0)
	if err != nil {
		b.Fatal(err)
	}
	defer feed.Close()
	for {
		updates, err := feed.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if len(updates) > 0 {
			return
		}
	}
}
