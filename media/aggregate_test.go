package media_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/media"
)

func at(group, frame uint64) *media.Position { return &media.Position{Group: group, Frame: frame} }

func TestAggregate(t *testing.T) {
	const retention = 10 * time.Second
	sub := func(priority uint8, age time.Duration, start, end *media.Position) media.Subscription {
		return media.Subscription{Priority: priority, MaxAge: age, Start: start, End: end}
	}
	r1 := sub(10, 0, nil, nil)
	r2 := sub(3, 5*time.Second, nil, nil)
	for _, tt := range []struct {
		name string
		subs []media.Subscription
		want media.Subscription
		none bool
	}{
		{name: "no reader", none: true},
		{name: "X1", subs: []media.Subscription{r1}, want: r1},
		{name: "X2", subs: []media.Subscription{r1, r2}, want: sub(10, 5*time.Second, nil, nil)},
		{
			name: "X3",
			subs: []media.Subscription{sub(0, 0, at(4, 0), nil), sub(0, 0, at(2, 7), at(9, 0))},
			want: sub(0, 0, at(2, 7), nil),
		},
		{name: "X4", subs: []media.Subscription{sub(0, 0, at(4, 0), nil), sub(0, 0, nil, nil)}, want: sub(0, 0, nil, nil)},
		{
			name: "X5",
			subs: []media.Subscription{sub(0, 0, nil, at(5, 0)), sub(0, 0, nil, at(7, 3))},
			want: sub(0, 0, nil, at(7, 3)),
		},
		{name: "X6", subs: []media.Subscription{r2}, want: r2},
		{name: "X7", subs: []media.Subscription{sub(0, 30*time.Second, nil, nil)}, want: sub(0, retention, nil, nil)},
		{name: "X8 empty", subs: []media.Subscription{sub(0, 0, at(5, 0), at(5, 0))}, none: true},
		{
			name: "X8 beside another",
			subs: []media.Subscription{sub(9, time.Hour, at(5, 0), at(5, 0)), sub(0, 0, nil, at(3, 0))},
			want: sub(0, 0, nil, at(3, 0)),
		},
		{
			name: "positions compare as a whole",
			subs: []media.Subscription{sub(0, 0, at(2, 0), at(7, 3)), sub(0, 0, at(1, 9), at(7, 4))},
			want: sub(0, 0, at(1, 9), at(7, 4)),
		},
		{name: "Latest takes no part", subs: []media.Subscription{{Latest: true}}, want: sub(0, 0, nil, nil)},
		{name: "an inverted range is empty", subs: []media.Subscription{sub(0, 0, at(9, 0), at(4, 0))}, none: true},
		{name: "an end at the very start is empty", subs: []media.Subscription{sub(0, 0, nil, at(0, 0))}, none: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := media.Aggregate(tt.subs, retention)
			if ok == tt.none {
				t.Fatalf("ok = %v", ok)
			}
			if diff := cmp.Diff(tt.want, got); ok && diff != "" {
				t.Errorf("aggregate (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAggregateCovers: whatever a reader wants, the aggregate asks for; and it asks for nothing outside of all of them.
func TestAggregateCovers(t *testing.T) {
	position := rapid.Custom(func(t *rapid.T) *media.Position {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		return at(rapid.Uint64Range(0, 4).Draw(t, "group"), rapid.Uint64Range(0, 2).Draw(t, "frame"))
	})
	within := func(s media.Subscription, p media.Position) bool {
		return (s.Start == nil || !p.Before(*s.Start)) && (s.End == nil || p.Before(*s.End))
	}
	rapid.Check(t, func(t *rapid.T) {
		subs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) media.Subscription {
			return media.Subscription{
				Priority: rapid.Uint8().Draw(t, "priority"),
				MaxAge:   time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Second,
				Start:    position.Draw(t, "start"), End: position.Draw(t, "end"),
			}
		}), 0, 4).Draw(t, "subs")
		agg, ok := media.Aggregate(subs, 10*time.Second)
		wanted := 0
		for g := range uint64(6) {
			for f := range uint64(4) {
				p := media.Position{Group: g, Frame: f}
				for _, s := range subs {
					if !within(s, p) {
						continue
					}
					wanted++
					if !ok || !within(agg, p) || agg.Priority < s.Priority || agg.MaxAge < min(s.MaxAge, 10*time.Second) {
						t.Fatalf("%+v wants %v, which %+v (%v) lacks", s, p, agg, ok)
					}
				}
			}
		}
		if ok && wanted == 0 {
			t.Fatalf("nobody wants anything, yet %+v is asked", agg)
		}
	})
}
