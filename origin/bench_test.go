package origin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

type noWaker struct{}

func (noWaker) Wake() {}

// benchPeer is a peer outside of a bubble.
func benchPeer(o *origin.Origin, hop route.Hop) *peer {
	p := &peer{caps: lite06, ads: make(map[string]session.AdvertID), info: media.DefaultInfo()}
	p.Session = o.Attach(origin.Peer{
		ID: uint64(hop), Hop: hop, Wire: route.WireLite06, Publish: paths.All, Subscribe: paths.All,
	}, upstream{p})
	return p
}

// BenchmarkJoin is one more reader of a track that is read, who leaves again.
func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("readers=%d", n), func(b *testing.B) {
			o := origin.New(origin.Config{})
			defer o.Close()
			pub, viewer := benchPeer(o, 100), benchPeer(o, 101)
			_ = pub.tryAnnounce("room")
			for range n {
				if _, err := viewer.Subscribe(context.Background(), "room", "v", live(), noWaker{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				r, err := viewer.Subscribe(context.Background(), "room", "v", live(), noWaker{})
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
		})
	}
}

// BenchmarkFirstReader makes a subscription upstream and cancels it.
func BenchmarkFirstReader(b *testing.B) {
	o := origin.New(origin.Config{})
	defer o.Close()
	pub, viewer := benchPeer(o, 100), benchPeer(o, 101)
	_ = pub.tryAnnounce("room")
	b.ReportAllocs()
	for b.Loop() {
		r, err := viewer.Subscribe(context.Background(), "room", "v", live(), noWaker{})
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

// BenchmarkAnnounce takes a name through to 100 consumers, and away again.
func BenchmarkAnnounce(b *testing.B) {
	o := origin.New(origin.Config{})
	defer o.Close()
	pub, viewer := benchPeer(o, 100), benchPeer(o, 101)
	feeds := make([]session.Feed, 100)
	for i := range feeds {
		f, err := viewer.Listen("", 0)
		if err != nil {
			b.Fatal(err)
		}
		feeds[i] = f
		_, _ = f.Next(context.Background())
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = pub.tryAnnounce("room")
		for _, f := range feeds {
			if us, err := f.Next(context.Background()); err != nil || len(us) != 1 {
				b.Fatal(us, err)
			}
		}
		pub.withdraw("room")
		for _, f := range feeds {
			if us, err := f.Next(context.Background()); err != nil || len(us) != 1 {
				b.Fatal(us, err)
			}
		}
	}
}
