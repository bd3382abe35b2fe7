package client_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/client"
)

// TestTrack sends a track from its first frame to its end: every frame comes, once, in order inside its group.
func TestTrack(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		b, w := publish(t, e.pub, "demo/one", "video")
		write(t, w, 0, 1)
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo/one", "video", everything()))
		defer r.Close()
		if v := e.sub.Version(); v.HasTrackInfo() && !cmp.Equal(r.Info(), w.Info()) {
			t.Errorf("info %+v, want %+v", r.Info(), w.Info())
		}
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		write(t, w, 2, 3)
		b.Close()
		var seen []uint64
		for {
			g, err := r.NextGroup(ctx)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, g.Sequence())
			frames, err := readAll(ctx, g)
			if !errors.Is(err, io.EOF) || len(frames) != 3 {
				t.Fatalf("group %d: %d frames, %v", g.Sequence(), len(frames), err)
			}
			for i, f := range frames {
				if want := payload(g.Sequence(), uint64(i)); string(f.Payload) != string(want) {
					t.Errorf("payload %q, want %q", f.Payload, want)
				}
				want := g.Sequence()*3000 + uint64(i)*1000
				if e.sub.Version().HasTimestamps() && f.Timestamp != want {
					t.Errorf("timestamp %d, want %d", f.Timestamp, want)
				}
			}
		}
		slices.Sort(seen)
		if d := cmp.Diff([]uint64{0, 1, 2, 3}, seen); d != "" {
			t.Error(d)
		}
		if end, ok := r.End(); e.sub.Version().HasSubscribeStartEnd() && (!ok || end != 4) {
			t.Errorf("end %d, %v", end, ok)
		}
	})
}

// refused subscribes and returns the error, which older versions tell later.
func refused(t *testing.T, c *client.Client, path, track string) error {
	t.Helper()
	ctx := deadline(t)
	r, err := c.Subscribe(ctx, path, track, everything())
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = r.NextGroup(ctx)
	return err
}

// TestRefused asks for what there is not.
func TestRefused(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		publish(t, e.pub, "demo", "video")
		for path, want := range map[string]error{"nowhere": client.ErrUnroutable, "demo": client.ErrNotFound} {
			err := refused(t, e.sub, path, "audio")
			var request *client.RequestError
			if !errors.Is(err, want) || !errors.As(err, &request) || request.Path != path || request.Track != "audio" {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
		if e.sub.Err() != nil {
			t.Errorf("a refusal ended the session: %v", e.sub.Err())
		}
	})
}

// TestDatagrams sends frames that nobody has to receive; on these links all arrive.
func TestDatagrams(t *testing.T) {
	each(t, versions[2:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "data")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "data", client.Subscription{}))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(5) {
			if err := w.Datagram(i, 100*i, payload(i, 0)); err != nil {
				t.Fatal(err)
			}
			d := must[client.Datagram](t)(r.NextDatagram(ctx))
			if d.Group != i || d.Timestamp != 100*i || string(d.Payload) != string(payload(i, 0)) {
				t.Errorf("got %d at %d: %q", d.Group, d.Timestamp, d.Payload)
			}
		}
		w.Finish()
		if _, err := r.NextDatagram(ctx); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestUpdate raises the end of a subscription.
func TestUpdate(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		write(t, w, 0, 1, 2, 3)
		sub := everything()
		sub.End = &client.Position{Group: 2}
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", sub))
		defer r.Close()
		groups := map[uint64]bool{}
		take := func(n int) {
			for range n {
				g := must[*client.GroupReader](t)(r.NextGroup(ctx))
				groups[g.Sequence()] = true
				g.Close()
			}
		}
		take(2)
		if !groups[0] || !groups[1] {
			t.Fatalf("below the end come %v", groups)
		}
		sub.End = &client.Position{Group: 4}
		if err := r.Update(sub); err != nil {
			t.Fatal(err)
		}
		take(2)
		if !groups[2] || !groups[3] {
			t.Fatalf("with a higher end come %v", groups)
		}
	})
}

// TestSlowReader takes nothing while groups come: writers do not notice, and a reader that wants the live edge finds the
// newest group alone.
func TestSlowReader(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", client.Subscription{}))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		last := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", client.Subscription{}))
		defer last.Close()
		write(t, w, 0, 1, 2, 3, 4, 5, 6, 7)
		for { // the other subscription tells when the last one has arrived
			g := must[*client.GroupReader](t)(last.NextGroup(ctx))
			if _, err := readAll(ctx, g); g.Sequence() == 7 && errors.Is(err, io.EOF) {
				break
			}
		}
		time.Sleep(20 * time.Millisecond)
		if g := must[*client.GroupReader](t)(r.NextGroup(ctx)); g.Sequence() != 7 {
			t.Errorf("group %d is handed out first", g.Sequence())
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if g, err := r.NextGroup(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("then %v, %v", g, err)
		}
	})
}
