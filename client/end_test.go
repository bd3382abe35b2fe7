package client_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/transport"
)

// TestGoaway has the peer ask the client to leave: no new requests, running ones go on.
func TestGoaway(t *testing.T) {
	each(t, versions[1:], func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		e.pub.Goaway("https://elsewhere/")
		select {
		case <-e.sub.GoingAway():
		case <-ctx.Done():
			t.Fatal("no GOAWAY")
		}
		if uri := e.sub.GoawayURI(); uri != "https://elsewhere/" {
			t.Errorf("uri %q", uri)
		}
		if _, err := e.sub.Subscribe(ctx, "demo", "video", everything()); !errors.Is(err, client.ErrGoingAway) {
			t.Errorf("new subscription: %v", err)
		}
		if _, err := e.sub.Announced(ctx, ""); !errors.Is(err, client.ErrGoingAway) {
			t.Errorf("new announce stream: %v", err)
		}
		write(t, w, 0)
		if frames, err := readAll(ctx, must[*client.GroupReader](t)(r.NextGroup(ctx))); len(frames) != 3 || !errors.Is(err, io.EOF) {
			t.Errorf("the running subscription: %d frames, %v", len(frames), err)
		}
	})
}

// TestSessionLost closes the publisher's end: everything that waits at the other ends, with the reason.
func TestSessionLost(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		open := must[*client.GroupWriter](t)(w.Group(0))
		if err := open.WriteFrame(0, payload(0, 0)); err != nil {
			t.Fatal(err)
		}
		a := must[*client.Announcements](t)(e.sub.Announced(ctx, ""))
		defer a.Close()
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		g := must[*client.GroupReader](t)(r.NextGroup(ctx))
		must[client.Frame](t)(g.ReadFrame(ctx))
		e.pub.Close()
		waits := map[string]func() error{
			"group":        func() error { _, err := r.NextGroup(ctx); return err },
			"datagram":     func() error { _, err := r.NextDatagram(ctx); return err },
			"frame":        func() error { _, err := g.ReadFrame(ctx); return err },
			"announcement": func() error { _, err := a.Next(ctx); return err },
			"session":      func() error { <-e.sub.Done(); return e.sub.Err() },
			"request":      func() error { <-e.sub.Done(); _, err := e.sub.TrackInfo(ctx, "demo", "video"); return err },
		}
		for name, wait := range waits {
			err := wait()
			var ended *transport.SessionError
			if !errors.As(err, &ended) || !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s: %v, want the end of the session", name, err)
			}
		}
	})
}

// TestClose closes everything under goroutines that wait; they must end, and goleak must find none.
func TestClose(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		a := must[*client.Announcements](t)(e.sub.Announced(ctx, ""))
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 4)
		for range 2 {
			go func() { _, err := r.NextGroup(ctx); results <- err }()
		}
		go func() { _, err := r.NextDatagram(ctx); results <- err }()
		go func() { _, err := a.Next(ctx); results <- err }()
		r.Close()
		a.Close()
		for range 4 {
			if err := <-results; !errors.Is(err, client.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		e.sub.Close()
		e.sub.Close()
		if err := e.sub.Err(); !errors.Is(err, client.ErrClosed) {
			t.Errorf("own end: %v", err)
		}
		if _, err := e.sub.Subscribe(ctx, "demo", "video", everything()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed client subscribes: %v", err)
		}
		if _, err := e.sub.Publish("late"); !errors.Is(err, client.ErrClosed) {
			t.Errorf("a closed client publishes: %v", err)
		}
		<-e.pub.Done()
	})
}

// TestShutdown leaves while a subscriber lacks the end: it still gets it.
func TestShutdown(t *testing.T) {
	each(t, versions, func(t *testing.T, e ends) {
		ctx := deadline(t)
		_, w := publish(t, e.pub, "demo", "video")
		r := must[*client.TrackReader](t)(e.sub.Subscribe(ctx, "demo", "video", everything()))
		defer r.Close()
		if err := w.WaitSubscribed(ctx); err != nil {
			t.Fatal(err)
		}
		write(t, w, 0, 1, 2, 3, 4, 5, 6, 7)
		left := make(chan error, 1)
		go func() { left <- e.pub.Shutdown(ctx) }()
		complete := 0
		for {
			g, err := r.NextGroup(ctx)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if frames, err := readAll(ctx, g); !errors.Is(err, io.EOF) || len(frames) != 3 {
				t.Errorf("group %d: %d frames, %v", g.Sequence(), len(frames), err)
			}
			complete++
		}
		if complete != 8 {
			t.Errorf("%d groups of 8", complete)
		}
		r.Close()
		if err := <-left; err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := e.pub.Err(); !errors.Is(err, client.ErrClosed) {
			t.Errorf("publisher ended with %v", err)
		}
	})
}
