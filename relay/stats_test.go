package relay

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// TestStatsBroadcast: a viewer of the statistics sees what others watch, and not itself.
func TestStatsBroadcast(t *testing.T) {
	r := start(t, func(c *Config) {
		c.Stats = Stats{Enabled: true, Prefix: ".stats", Node: "here", Interval: 100 * time.Millisecond, Linger: time.Minute}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	dial := func() *client.Client {
		var cfg client.Config
		cfg.TLS.Insecure = true
		c, err := client.Dial(ctx, r.url(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	pub, viewer, operator := dial(), dial(), dial()
	defer pub.Close()
	defer viewer.Close()
	defer operator.Close()
	b, err := pub.Publish("demo")
	if err != nil {
		t.Fatal(err)
	}
	track, err := b.Track("video", media.DefaultInfo())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 5*time.Second, "announced", func() bool { return len(r.origin.Routes()) == 2 })
	reader, err := viewer.Subscribe(ctx, "demo", "video", client.Subscription{MaxAge: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := track.WaitSubscribed(ctx); err != nil {
		t.Fatal(err)
	}
	g, err := track.Group(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFrame(0, []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	g.Finish()
	totals := func(name string, ok func(map[string]map[string]uint64) bool) {
		t.Helper()
		sub, err := operator.Subscribe(ctx, ".stats/node/here", name, client.Subscription{})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		var last map[string]map[string]uint64
		for {
			g, err := sub.NextGroup(ctx)
			if err != nil {
				t.Fatalf("%s: %v, the last was %v", name, err, last)
			}
			f, err := g.ReadFrame(ctx)
			g.Close()
			if err != nil {
				continue
			}
			last = nil
			if err := json.Unmarshal(f.Payload, &last); err != nil {
				t.Fatal(err)
			}
			if ok(last) {
				if len(last) != 1 {
					t.Errorf("%s: more than was asked for: %v", name, last)
				}
				return
			}
		}
	}
	totals("publisher.json", func(m map[string]map[string]uint64) bool {
		d := m["demo"]
		return d["bytes"] == 10 && d["frames"] == 1 && d["subscriptions_started"] == 1 && d["broadcasts_started"] == 1
	})
	totals("subscriber.json", func(m map[string]map[string]uint64) bool {
		d := m["demo"]
		return d["bytes"] == 10 && d["announces_started"] == 1 && d["announced_bytes"] == 4
	})
	totals("sessions.json", func(m map[string]map[string]uint64) bool { return m[""]["sessions_started"] == 3 })
}
