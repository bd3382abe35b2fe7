package client_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/moqmesh/moqmesh/client"
)

// TestBurst writes a track at once, with its end right behind: everything must come. It does so a few times, for what may
// go wrong is a matter of timing.
func TestBurst(t *testing.T) {
	const rounds, groups, frames = 12, 50, 7
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		b := must[*client.Broadcast](t)(e.pub.Publish("demo"))
		rounds := rounds
		if !e.sub.Version().HasSubscribeStartEnd() {
			rounds = 1 // the end takes a second where it is not announced
		}
		for i := range rounds {
			w := must[*client.TrackWriter](t)(b.Track(fmt.Sprint(i), client.Info{MaxAge: everything().MaxAge}))
			r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", w.Name(), everything()))
			defer r.Close()
			if err := w.WaitSubscribed(ctx); err != nil {
				t.Fatal(err)
			}
			for seq := range uint64(groups) {
				g := must[*client.GroupWriter](t)(w.Group(seq))
				for i := range uint64(frames) {
					if err := g.WriteFrame(seq+i, make([]byte, 3001)); err != nil {
						t.Fatal(err)
					}
				}
				g.Finish()
			}
			w.Finish()
			var seen []uint64
			for {
				g, err := r.NextGroup(ctx)
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, g.Sequence())
				if got, err := readAll(ctx, g); !errors.Is(err, io.EOF) || len(got) != frames {
					t.Errorf("group %d: %d frames, %v", g.Sequence(), len(got), err)
				}
			}
			if slices.Sort(seen); len(seen) != groups {
				t.Errorf("%d of %d groups: %v", len(seen), groups, seen)
			}
		}
	})
}
