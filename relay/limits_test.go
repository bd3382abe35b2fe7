package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// limited runs a relay with limits so low that a client can go one beyond them.
func limited(t *testing.T) *Relay {
	t.Helper()
	return start(t, func(c *Config) {
		c.Limits = lite.Limits{Announcements: 3, AnnounceStreams: 2, Subscriptions: 2, Metadata: 2000, FrameBytes: 100_000}
		c.AnnounceRate = 1
		c.Listen.MaxPerAddr, c.Listen.Exempt = 4, func(netip.Addr) bool { return false }
		c.Internal, c.Web.HTTP = "127.0.0.1:0", "127.0.0.1:0"
	})
}

// turnedAway demands that a limit has turned something away, as the metrics tell.
func turnedAway(t *testing.T, r *Relay, limit string) {
	t.Helper()
	waitFor(t, 5*time.Second, "the metric of "+limit, func() bool {
		metrics, _ := page(t, r, "/metrics")
		at := strings.Index(metrics, fmt.Sprintf("moqmesh_limited_total{limit=%q} ", limit))
		return at >= 0 && !strings.HasPrefix(metrics[at:], fmt.Sprintf("moqmesh_limited_total{limit=%q} 0\n", limit))
	})
}

// announce makes a broadcast known.
func announce(t *testing.T, c *client.Client, name string) {
	t.Helper()
	b, err := c.Publish(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
}

// TestLimits: what lies within the limits is served, one more is refused and counted, and nobody else notices (issue of
// hostile clients; faults 7).
func TestLimits(t *testing.T) {
	for _, carrier := range sessionCarriers {
		t.Run(carrier, func(t *testing.T) { eachLimit(t, carrier) })
	}
}

func eachLimit(t *testing.T, carrier string) {
	r := limited(t)
	bystander := dial(t, r, carrier, "/")
	announce(t, bystander, "fine")
	waitFor(t, 5*time.Second, "the bystander", func() bool { return strings.Contains(names(r), "fine") })

	t.Run("announcements", func(t *testing.T) {
		c := dial(t, r, carrier, "/")
		for i := range 3 {
			announce(t, c, fmt.Sprint("a", i))
		}
		waitFor(t, 5*time.Second, "the routes", func() bool { return strings.Count(names(r), "a") == 3 })
		announce(t, c, "a3")
		if got, _ := ended(t, c); got.code != lite.SessionInternal || !strings.Contains(got.reason, "announcements") {
			t.Errorf("%v", got)
		}
		turnedAway(t, r, "announcements")
		waitFor(t, 5*time.Second, "the withdrawals", func() bool { return names(r) == "fine" })
	})
	t.Run("announce rate", func(t *testing.T) {
		c := dial(t, r, carrier, "/")
		b, err := c.Publish("fast")
		if err != nil {
			t.Fatal(err)
		}
		price := func() uint64 {
			for _, route := range r.Origin().Routes() {
				if route.Prefix == "fast" {
					return route.Warm
				}
			}
			return 0
		}
		// Ten updates may come at once, and the last one waits a second for each that is too many.
		for i := range uint64(12) {
			if err := b.Announce(route.Cost{Warm: i, Cold: i}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, 5*time.Second, "the price", func() bool { return price() == i+1 })
		}
		turnedAway(t, r, "announce_rate")
		if c.Err() != nil {
			t.Errorf("the session ended: %v", c.Err())
		}
	})
	t.Run("metadata", func(t *testing.T) {
		c := dial(t, r, carrier, "/")
		announce(t, c, strings.Repeat("x", 1500))
		waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "xxx") })
		announce(t, c, strings.Repeat("y", 500))
		if got, _ := ended(t, c); got.code != lite.SessionInternal || !strings.Contains(got.reason, "bytes of names") {
			t.Errorf("%v", got)
		}
		turnedAway(t, r, "metadata")
	})
	t.Run("subscriptions", func(t *testing.T) {
		track := publish(t, bystander, "live")
		waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "live") })
		c := dial(t, r, carrier, "/")
		open := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			s, err := c.Subscribe(ctx, "live", track.Name(), client.Subscription{})
			if err != nil {
				return err
			}
			_, err = s.NextGroup(ctx)
			return err
		}
		g, err := track.Group(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.WriteFrame(0, []byte("frame")); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			err := open()
			var refused *client.RequestError
			if (i < 2) != (err == nil) || i == 2 && !errors.As(err, &refused) {
				t.Errorf("subscription %d: %v", i, err)
			}
		}
		if c.Err() != nil {
			t.Errorf("the session ended: %v", c.Err())
		}
		if refused := open(); !errors.Is(refused, client.ErrNoCapacity) {
			t.Errorf("refused with %v", refused)
		}
		turnedAway(t, r, "subscriptions")
	})
	t.Run("announce streams", func(t *testing.T) {
		c := dial(t, r, carrier, "/")
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			a, err := c.Announced(ctx, fmt.Sprint("p", i))
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if _, err = a.Initial(ctx); (i < 2) != (err == nil) {
				t.Errorf("stream %d: %v", i, err)
			}
			cancel()
		}
		turnedAway(t, r, "announce_streams")
	})
	t.Run("frames", func(t *testing.T) { tooMuchOfAFrame(t, r, carrier, bystander) })
	t.Run("sessions per address", func(t *testing.T) {
		waitFor(t, 5*time.Second, "the others to leave", func() bool { return r.sessions.len() == 1 })
		for i := range 3 { // the bystander is the fourth
			if got := settled(t, dial(t, r, carrier, "/")); got.code != 0 {
				t.Errorf("session %d: %v", i, got)
			}
		}
		cfg := trusting
		cfg.DialTimeout = 5 * time.Second
		if c, err := client.Dial(t.Context(), where(r, carrier, "/"), cfg); err == nil {
			c.Close()
			t.Error("one session too many is let in")
		}
		turnedAway(t, r, "sessions_per_address")
	})
	if bystander.Err() != nil {
		t.Errorf("the bystander: %v", bystander.Err())
	}
}

// tooMuchOfAFrame sends a frame that takes more memory than a session has for such: its group is given up, the next one and
// the session go on.
func tooMuchOfAFrame(t *testing.T, r *Relay, carrier string, viewer *client.Client) {
	t.Helper()
	c := dial(t, r, carrier, "/")
	track := publish(t, c, "large")
	waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "large") })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	sub, err := viewer.Subscribe(ctx, "large", track.Name(), client.Subscription{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for seq, size := range []int{90_000, 110_000, 90_000} {
		g, err := track.Group(uint64(seq))
		if err != nil {
			t.Fatal(err)
		}
		_ = g.WriteFrame(uint64(seq), make([]byte, size)) // of a group that is given up, too
		g.Finish()
		if size > 100_000 {
			turnedAway(t, r, "frames")
			continue
		}
		for {
			got, err := sub.NextGroup(ctx)
			if err != nil {
				t.Fatalf("group %d: %v", seq, err)
			}
			if got.Sequence() != uint64(seq) {
				continue
			}
			if frame, err := got.ReadFrame(ctx); err != nil || len(frame.Payload) != size {
				t.Errorf("group %d: %d bytes, %v", seq, len(frame.Payload), err)
			}
			break
		}
	}
	if c.Err() != nil {
		t.Errorf("the session ended: %v", c.Err())
	}
	c.Close()
}

// TestSetupDeadline: who connects and says nothing is shown the door after listen.timeout, over each carrier, and counted.
func TestSetupDeadline(t *testing.T) {
	r := start(t, func(c *Config) { c.Handshake, c.Internal = time.Second, "127.0.0.1:0" })
	d, err := endpoint.NewDialer(endpoint.DialConfig{
		Addr: "127.0.0.1:0", TLS: tlsconf.ClientConfig{Insecure: true}, Protocols: lite.Tokens([]message.Version{message.Lite06}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, carrier := range sessionCarriers {
		u, err := url.Parse(where(r, carrier, "/"))
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		conn, err := d.Dial(t.Context(), endpoint.Target{URL: u})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-conn.Context().Done():
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: still there", carrier)
		}
		var closed *transport.SessionError
		if cause := context.Cause(conn.Context()); !errors.As(cause, &closed) || !closed.Remote || closed.Code != lite.SessionControlTimeout {
			t.Errorf("%s: %v", carrier, cause)
		}
		if took := time.Since(begin); took < 900*time.Millisecond {
			t.Errorf("%s: closed after %v", carrier, took)
		}
		waitFor(t, 5*time.Second, "the count of "+carrier, func() bool { return r.limitMetrics()["timeout"] == uint64(i+1) })
	}
	turnedAway(t, r, "timeout")
}
