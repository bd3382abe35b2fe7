package client_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
)

// TestFetch asks for groups by their number.
func TestFetch(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		write(t, w, 3, 4, 5)
		req := client.FetchRequest{Path: "demo", Track: "video", Group: 4}
		if !e.sub.Version().HasFetch() {
			if _, err := e.sub.Fetch(ctx, req); !errors.Is(err, client.ErrUnsupported) {
				t.Errorf("a version without fetch: %v", err)
			}
			return
		}
		two := uint64(2)
		for _, tc := range []struct {
			first uint64
			end   *uint64
			want  []uint64
		}{{0, nil, []uint64{0, 1, 2}}, {1, nil, []uint64{1, 2}}, {1, &two, []uint64{1}}} {
			req.Frame, req.End = tc.first, tc.end
			g := must[*client.GroupReader](t)(e.sub.Fetch(ctx, req))
			frames, err := readAll(ctx, g)
			if !errors.Is(err, io.EOF) || len(frames) != len(tc.want) || g.Sequence() != 4 || g.FirstFrame() != tc.first {
				t.Fatalf("frames %d to %v: %d frames from %d, %v", tc.first, tc.end, len(frames), g.FirstFrame(), err)
			}
			for i, f := range frames {
				if string(f.Payload) != string(payload(4, tc.want[i])) {
					t.Errorf("frame %d is %q", tc.want[i], f.Payload)
				}
			}
		}
		if _, err := e.sub.Fetch(ctx, client.FetchRequest{Path: "demo", Track: "video", Group: 9}); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("a group that is not there: %v", err)
		}
		if e.sub.Err() != nil {
			t.Errorf("the session ended: %v", e.sub.Err())
		}
	})
}

// TestOpenGroupFetch fetches a group that is being written, and gives up in the middle.
func TestOpenGroupFetch(t *testing.T) {
	each(t, versions[2:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		open := must[*client.GroupWriter](t)(w.Group(1))
		if err := open.WriteFrame(0, payload(1, 0)); err != nil {
			t.Fatal(err)
		}
		g := must[*client.GroupReader](t)(e.sub.Fetch(ctx, client.FetchRequest{Path: "demo", Track: "video", Group: 1}))
		must[client.Frame](t)(g.ReadFrame(ctx))
		if err := open.WriteFrame(1, payload(1, 1)); err != nil {
			t.Fatal(err)
		}
		if f := must[client.Frame](t)(g.ReadFrame(ctx)); string(f.Payload) != string(payload(1, 1)) {
			t.Errorf("second frame %q", f.Payload)
		}
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, err := g.ReadFrame(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing to read: %v", err)
		}
		g.Close()
		g.Close()
		if e.sub.Err() != nil {
			t.Errorf("the session ended: %v", e.sub.Err())
		}
	})
}
