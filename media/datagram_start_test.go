package media_test

import (
	"testing"

	"github.com/moqmesh/moqmesh/media"
)

// TestStartAtDatagram joins a track of datagrams that says where it starts: the first datagram after the join is served,
// although nothing is cached.
func TestStartAtDatagram(t *testing.T) {
	for name, sub := range map[string]media.Subscription{"floorless": {}, "latest": {Latest: true}} {
		track := media.NewCache(media.CacheConfig{}).NewTrack(media.DefaultInfo())
		c := track.NewCopy(nil)
		r := track.NewReader(sub, deafWaker{})
		c.Start(7)
		c.Datagram(7, 100, []byte("seven"))
		if g, err := r.Next(); g != nil || err != nil {
			t.Errorf("%s: a group: %v, %v", name, g, err)
		}
		if start, ok := r.Start(); !ok || start != 7 {
			t.Errorf("%s: start %d, %v", name, start, ok)
		}
		if d, ok := r.NextDatagram(); !ok || d.Group != 7 || string(d.Payload) != "seven" {
			t.Errorf("%s: got %+v, %v", name, d, ok)
		}
	}
}

type deafWaker struct{}

func (deafWaker) Wake() {}
