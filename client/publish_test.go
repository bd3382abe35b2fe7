package client_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// TestPublisherRules tries what the writing side refuses.
func TestPublisherRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memory(t, message.Lite06)
		b, w := publish(t, e.pub, "/demo//one/", "video")
		if b.Path() != "demo/one" {
			t.Errorf("path %q", b.Path())
		}
		if _, err := e.pub.Publish("demo/one"); !errors.Is(err, client.ErrPublished) {
			t.Errorf("same path: %v", err)
		}
		if _, err := b.Track("video", client.Info{}); !errors.Is(err, client.ErrPublished) {
			t.Errorf("same track: %v", err)
		}
		write(t, w, 5)
		if _, err := w.Group(5); !errors.Is(err, media.ErrDuplicate) {
			t.Errorf("same group: %v", err)
		}
		if _, err := w.Group(4); !errors.Is(err, media.ErrBelowStart) {
			t.Errorf("a group below the first: %v", err)
		}
		cut := must[*client.GroupWriter](t)(w.Group(6))
		w.Finish()
		w.Finish()
		if err := cut.WriteFrame(0, nil); err == nil {
			t.Error("a group of a finished track takes frames")
		}
		if _, err := w.Group(7); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a group after the end: %v", err)
		}
		if err := w.Datagram(8, 0, nil); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a datagram after the end: %v", err)
		}
		b.Close()
		b.Close()
		if err := b.Announce(route.Cost{}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed broadcast is announced: %v", err)
		}
		if _, err := b.Track("audio", client.Info{}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed broadcast takes tracks: %v", err)
		}
		if _, err := e.pub.Publish("demo/one"); err != nil {
			t.Errorf("the path is not free: %v", err)
		}
	})
}

// TestAbort ends a track with an error for its subscribers.
func TestAbort(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		w.Abort(client.ErrUnsupported)
		if _, err := r.NextGroup(ctx); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("an aborted track ends with %v", err)
		}
	})
}

// TestWaitSubscribed follows the subscribers of a track coming and going.
func TestWaitSubscribed(t *testing.T) {
	each(t, versions[3:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		for range 2 {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			if err := w.WaitSubscribed(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("nobody subscribes: %v", err)
			}
			cancel()
			r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
			if err := w.WaitSubscribed(ctx); err != nil {
				t.Fatal(err)
			}
			r.Close()
			for { // the word has to travel
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				err := w.WaitSubscribed(short)
				cancel()
				if err != nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	})
}
