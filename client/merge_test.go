package client

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// TestMerge plays a peer whose announcements change faster than they are read.
func TestMerge(t *testing.T) {
	const own = 77
	ad := func(path string, cost uint64, hops ...route.Hop) session.Advertisement {
		return session.Advertisement{Prefix: path, Hops: hops, Sender: 9, HasSender: true, Cost: route.Cost{Warm: cost}}
	}
	type step = func(announceSink)
	announce := func(id session.AdvertID, ad session.Advertisement) step {
		return func(s announceSink) { _ = s.Announce(id, ad) }
	}
	reannounce := func(id session.AdvertID, ad session.Advertisement) step {
		return func(s announceSink) { _ = s.Reannounce(id, ad) }
	}
	withdraw := func(id session.AdvertID) step { return func(s announceSink) { s.Withdraw(id, true) } }
	active := func(path string, cost uint64, changed bool, hops ...route.Hop) Announcement {
		return Announcement{Path: path, Hops: append(hops, 9), Cost: route.Cost{Warm: cost}, Active: true, Changed: changed}
	}
	for _, tc := range []struct {
		name  string
		steps [][]step // what happens between two reads
		want  [][]Announcement
	}{
		{"one", [][]step{{announce(1, ad("a", 1, 5))}}, [][]Announcement{{active("a", 1, false, 5)}}},
		{"came and went", [][]step{{announce(1, ad("a", 1)), withdraw(1)}}, [][]Announcement{nil}},
		{"only the last price", [][]step{{announce(1, ad("a", 1)), reannounce(1, ad("a", 2)), reannounce(1, ad("a", 3))}}, [][]Announcement{{active("a", 3, false)}}},
		{"change", [][]step{{announce(1, ad("a", 1))}, {reannounce(1, ad("a", 2))}}, [][]Announcement{{active("a", 1, false)}, {active("a", 2, true)}}},
		{"gone", [][]step{{announce(1, ad("a", 1))}, {withdraw(1)}}, [][]Announcement{{active("a", 1, false)}, {{Path: "a"}}}},
		{"back at once", [][]step{{announce(1, ad("a", 1))}, {withdraw(1), announce(2, ad("a", 2))}}, [][]Announcement{{active("a", 1, false)}, {active("a", 2, true)}}},
		{"back later", [][]step{{announce(1, ad("a", 1))}, {withdraw(1)}, {announce(2, ad("a", 1))}}, [][]Announcement{{active("a", 1, false)}, {{Path: "a"}}, {active("a", 1, false)}}},
		{"order of change", [][]step{{announce(1, ad("b", 1)), announce(2, ad("a", 1)), reannounce(1, ad("b", 2))}}, [][]Announcement{{active("b", 2, false), active("a", 1, false)}}},
		{"our own", [][]step{{announce(1, ad("a", 1, own, 3))}}, [][]Announcement{nil}},
		{"becomes our own", [][]step{{announce(1, ad("a", 1))}, {reannounce(1, ad("a", 1, own))}, {withdraw(1)}}, [][]Announcement{{active("a", 1, false)}, {{Path: "a"}}, nil}},
		{"unknown id", [][]step{{withdraw(4)}}, [][]Announcement{nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAnnouncements(&link{local: newLocal(own, media.NewCache(media.CacheConfig{}))}, "")
			for i, steps := range tc.steps {
				for _, step := range steps {
					step(announceSink{a})
				}
				var got []Announcement
				for {
					next, ok, err := a.take()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						break
					}
					got = append(got, next)
				}
				if d := cmp.Diff(tc.want[i], got); d != "" {
					t.Errorf("read %d: %s", i, d)
				}
			}
			if len(a.pending) != 0 {
				t.Errorf("left over: %v", a.pending)
			}
		})
	}
}
