package relay

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/client"
)

// TestMounts: a session reads through the mounts of its grant, over every way into a relay; nothing comes in through them
// (auth 5.3).
func TestMounts(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	s.set(granting(time.Minute, ""))
	fleet := dial(t, r, "quic", "/")
	track := publish(t, fleet, "fleet/p1/cam")
	publish(t, fleet, "p1/svc/forged")
	publish(t, fleet, "p1/own")
	g, err := track.Group(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFrame(0, []byte("frame")); err != nil {
		t.Fatal(err)
	}
	g.Finish()
	waitFor(t, 5*time.Second, "the routes", func() bool { return len(r.origin.Routes()) == 3 })

	s.set(granting(time.Minute, `,"mounts":{"svc":"fleet/p1"}`))
	for _, carrier := range sessionCarriers {
		t.Run(carrier, func(t *testing.T) {
			c := dial(t, r, carrier, "/p1")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if diff := cmp.Diff([]string{"own", "svc/cam"}, initial(ctx, t, c, "")); diff != "" {
				t.Errorf("announced (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"svc/cam"}, initial(ctx, t, c, "svc")); diff != "" {
				t.Errorf("announced below the mount (-want +got):\n%s", diff)
			}
			sub, err := c.Subscribe(ctx, "svc/cam", "video", client.Subscription{})
			if err != nil {
				t.Fatal(err)
			}
			group, err := sub.NextGroup(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if frame, err := group.ReadFrame(ctx); err != nil || string(frame.Payload) != "frame" {
				t.Errorf("%q, %v", frame.Payload, err)
			}
			publish(t, c, "svc/mine")
			publish(t, c, carrier)
			waitFor(t, 5*time.Second, "the route", func() bool { return strings.Contains(names(r), "p1/"+carrier) })
			if strings.Contains(names(r), "mine") {
				t.Errorf("published through a mount: %s", names(r))
			}
			c.Close()
			waitFor(t, 5*time.Second, "the end", func() bool { return len(r.origin.Routes()) == 3 })
		})
	}
	if _, body := get(t, where(r, "http", "/p1")); body != "own\nsvc/cam" {
		t.Errorf("announced over HTTP: %q", body)
	}
	if _, body := get(t, where(r, "http", "/p1/svc")); strings.Contains(body, "mine") {
		t.Errorf("announced over HTTP: %q", body)
	}
	s.set(granting(time.Minute, `,"root":"p2","mounts":{"":"fleet/p1/cam"}`)) // the root itself is elsewhere
	if code, body := get(t, "http://"+r.web.addr("web")+"/fetch/p2/video"); code != http.StatusOK || body != "frame" {
		t.Errorf("fetched through a mount: %d %q", code, body)
	}
}

// TestMountsThatOverlap admit nobody (A16).
func TestMountsThatOverlap(t *testing.T) {
	s := newAuthServer(t)
	r := s.start(t, nil)
	for _, mounts := range []string{
		`{"a":"t","a/b":"u"}`, `{".a":"p/.z",".z":"secret"}`, `{"*":"t"}`, `{"":"p"}`, `{"a":"p/a/b"}`, `{"a":""}`,
	} {
		s.set(granting(time.Minute, `,"mounts":`+mounts))
		expect(t, r, "/p", auth.ErrRefused)
	}
	s.set(granting(time.Minute, `,"mounts":["a"]`))
	expect(t, r, "/p", auth.ErrInvalid)
	s.set(granting(time.Minute, `,"mounts":{"a":"t","b":"t"}`))
	expect(t, r, "/p", nil)
}

// initial is what is announced below a prefix to begin with, sorted.
func initial(ctx context.Context, t *testing.T, c *client.Client, prefix string) []string {
	t.Helper()
	a, err := c.Announced(ctx, prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	list, err := a.Initial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, u := range list {
		out = append(out, u.Path)
	}
	slices.Sort(out)
	return out
}
