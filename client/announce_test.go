package client_test

import (
	"fmt"
	"testing"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/route"
)

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
