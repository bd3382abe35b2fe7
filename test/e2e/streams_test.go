//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// manyTracks announces a broadcast with n tracks of one group each.
func manyTracks(t *testing.T, r drive.Relay, n int) {
	t.Helper()
	c := clientOf(t, r, endpoint.QUIC{})
	b, err := c.Publish("many")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		track, err := b.Track(fmt.Sprint(i), media.DefaultInfo())
		if err != nil {
			t.Fatal(err)
		}
		g, err := track.Group(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.WriteFrame(0, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		g.Finish()
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
}

// clientOf connects to a relay with a socket and QUIC settings of its own.
func clientOf(t *testing.T, r drive.Relay, quic endpoint.QUIC) *client.Client {
	t.Helper()
	cfg := client.Config{QUIC: quic}
	pin, err := client.ParseFingerprint(r.Hash)
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLS.Fingerprints = append(cfg.TLS.Fingerprints, pin)
	c, err := client.Dial(t.Context(), r.MOQT(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// watchAll subscribes to tracks 0 to n-1 and keeps the subscriptions; each must bring its frame.
func watchAll(t *testing.T, c *client.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(100)
	for i := range n {
		all.Go(func() error {
			track, err := c.Subscribe(ctx, "many", fmt.Sprint(i), client.Subscription{})
			if err != nil {
				return err
			}
			t.Cleanup(track.Close)
			frame, err := nextFrame(ctx, track)
			if err != nil || string(frame) != fmt.Sprint(i) {
				return fmt.Errorf("track %d brings %q, %w", i, frame, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

// TestManySubscriptions has a session that grants ten streams watch 500 tracks, and one like any other 600, which
// cross one link between relays (faults 3).
func TestManySubscriptions(t *testing.T) {
	relays := drive.Chain(t, 2)
	manyTracks(t, relays[0], 600)
	narrow, wide := clientOf(t, relays[1], endpoint.QUIC{MaxStreams: 10}), clientOf(t, relays[1], endpoint.QUIC{})
	drive.WaitFor(t, patience, "announcement", func() bool {
		_, err := narrow.TrackInfo(t.Context(), "many", "0")
		return err == nil
	})
	watchAll(t, narrow, 500)
	watchAll(t, wide, 600)
	for i, want := range []float64{600, 1100} {
		if n := relays[i].Metric(t, "moq_relay_subscriptions_opened_total", "publisher"); n != want {
			t.Errorf("relay %d has served %v subscriptions, want %v", i, n, want)
		}
	}
}

// publishPast announces a broadcast with a track of groups in the past and a live one, and writes the live one until ctx
// ends: a group of one frame, which has the time, every 20 ms.
func publishPast(ctx context.Context, t *testing.T, r drive.Relay, groups uint64) {
	t.Helper()
	c := clientOf(t, r, endpoint.QUIC{})
	b, err := c.Publish("show")
	if err != nil {
		t.Fatal(err)
	}
	info := media.DefaultInfo()
	info.MaxAge = time.Hour
	past, err := b.Track("past", info)
	if err != nil {
		t.Fatal(err)
	}
	live, err := b.Track("live", media.DefaultInfo())
	if err != nil {
		t.Fatal(err)
	}
	write := func(track *client.TrackWriter, sequence, timestamp uint64, frame []byte) {
		if g, err := track.Group(sequence); err == nil { // else the client has been closed
			_ = g.WriteFrame(timestamp, frame)
			g.Finish()
		}
	}
	for i := range groups {
		write(past, i, i*100, make([]byte, 8<<10))
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := uint64(0); ; i++ {
			select {
			case <-tick.C:
				write(live, i, i*20, fmt.Append(nil, time.Now().UnixNano()))
			case <-ctx.Done():
				return
			}
		}
	}()
}

// TestBackfillBesideLive has a session take two thousand groups of the past while it watches live: none is missing, and
// the live frames are not late (faults 3; the bound there is 200 ms, but not for a relay with the detector of races on a
// machine that does other things).
func TestBackfillBesideLive(t *testing.T) {
	const groups, late = 2000, 3 * time.Second
	r := drive.StartRelay(t, "relay")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	publishPast(ctx, t, r, groups)
	viewer := clientOf(t, r, endpoint.QUIC{})
	var live *client.TrackReader
	drive.WaitFor(t, patience, "announcement", func() (ok bool) {
		var err error
		live, err = viewer.Subscribe(ctx, "show", "live", client.Subscription{Priority: 200, MaxAge: 5 * time.Second})
		return err == nil
	})
	defer live.Close()
	past, err := viewer.Subscribe(ctx, "show", "past", client.Subscription{Priority: 10, MaxAge: time.Hour, Start: &client.Position{}})
	if err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	done := make(chan error, 1)
	go func() {
		for range groups {
			if _, err := nextFrame(ctx, past); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var worst time.Duration
	for {
		select {
		case err := <-done:
			if err != nil || worst == 0 || worst > late {
				t.Errorf("the past: %v; live frames are up to %v late", err, worst)
			}
			return
		default:
		}
		frame, err := nextFrame(ctx, live)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := strconv.ParseInt(string(frame), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(time.Unix(0, sent)))
	}
}

// nextFrame reads the first frame of the next group.
func nextFrame(ctx context.Context, track *client.TrackReader) ([]byte, error) {
	g, err := track.NextGroup(ctx)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	frame, err := g.ReadFrame(ctx)
	return frame.Payload, err
}
