package client_test

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/moqmesh/moqmesh/client"
)

// TestBurst writes tracks at once, each with its end right behind its groups: everything must come.
func TestBurst(t *testing.T) {
	const tracks, groups, frames = 8, 40, 5
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		b := must[*client.Broadcast](t)(e.pub.Publish("demo"))
		var writers []*client.TrackWriter
		var readers sync.WaitGroup
		for i := range tracks {
			w := must[*client.TrackWriter](t)(b.Track(fmt.Sprint(i), client.Info{MaxAge: everything().MaxAge}))
			r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", w.Name(), everything()))
			if err := w.WaitSubscribed(ctx); err != nil {
				t.Fatal(err)
			}
			writers = append(writers, w)
			readers.Go(func() {
				defer r.Close()
				var seen []uint64
				for {
					g, err := r.NextGroup(ctx)
					if err == io.EOF {
						break
					} else if err != nil {
						t.Error(err)
						return
					}
					seen = append(seen, g.Sequence())
					if got, err := readAll(ctx, g); err != io.EOF || len(got) != frames {
						t.Errorf("track %s, group %d: %d frames, %v", w.Name(), g.Sequence(), len(got), err)
					}
				}
				if slices.Sort(seen); len(seen) != groups {
					t.Errorf("track %s: %d of %d groups: %v", w.Name(), len(seen), groups, seen)
				}
			})
		}
		for _, w := range writers {
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
		}
		readers.Wait()
	})
}
