package lite_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/transport"
)

// discardConn takes group streams and drops what is written to them.
type discardConn struct{ *peertest.Conn }

func (c discardConn) OpenUniStream(context.Context) (transport.SendStream, error) {
	s := &discardStream{}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

type discardStream struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func (s *discardStream) Write(p []byte) (int, error)      { return len(p), nil }
func (s *discardStream) Close() error                     { s.cancel(); return nil }
func (s *discardStream) Reset(uint64)                     { s.cancel() }
func (s *discardStream) SetWriteDeadline(time.Time) error { return nil }
func (s *discardStream) SetPriority(int)                  {}
func (s *discardStream) Context() context.Context         { return s.ctx }

// BenchmarkFanOut publishes one track to many subscriptions whose streams cost nothing, so that what is measured is ours:
// cache, wake-ups, workers. One operation is one frame; allocs/delivery is per frame and subscription.
func BenchmarkFanOut(b *testing.B) {
	for _, v := range []message.Version{message.Lite04, message.Lite06} {
		for _, shape := range []struct {
			name        string
			size, group int
		}{{"video", 4096, 60}, {"audio", 200, 1}} {
			for _, subs := range []int{1, 100} {
				b.Run(fmt.Sprintf("%v/%s/%d", v, shape.name, subs), func(b *testing.B) {
					benchmarkFanOut(b, v, shape.size, shape.group, subs)
				})
			}
		}
	}
}

func benchmarkFanOut(b *testing.B, v message.Version, size, group, subs int) {
	p := newPair(b, v, options{pair: peertest.Options{Streams: 10000}, discard: true})
	p.server.run(b, nil)
	p.client.run(b, nil)
	c := p.publish(p.server, "video", media.DefaultInfo())
	for range subs {
		p.watch(p.client, "video", media.Subscription{})
	}
	for p.server.Counters().Sent.SubscriptionsOpened.Load() < uint64(subs) {
		time.Sleep(time.Millisecond)
	}
	sent := &p.server.Counters().Sent.Frames
	payload := make([]byte, size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.SetBytes(int64(size * subs))
	b.ResetTimer()
	var w *media.GroupWriter
	for i := range b.N {
		var err error
		if i%group == 0 {
			if w, err = c.Group(uint64(i/group), 0); err != nil {
				b.Fatal(err)
			}
		}
		if err = w.WriteFrame(uint64(i)*33, payload); err != nil {
			b.Fatal(err)
		}
		if i%group == group-1 {
			w.Finish()
		}
		for sent.Load() < uint64((i+1)*subs) {
			runtime.Gosched()
		}
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N*subs), "allocs/delivery")
	p.client.Close(0, "")
	p.wait()
}
