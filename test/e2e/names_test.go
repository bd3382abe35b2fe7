//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
)

// segments is a path of n segments.
func segments(n int) string { return strings.Repeat("s/", n-1) + "s" }

// publishAt announces a broadcast of one track with one group, whose only frame is the name as given.
func publishAt(t *testing.T, c *client.Client, name string) {
	t.Helper()
	b, err := c.Publish(name)
	if err != nil {
		t.Fatal(err)
	}
	track, err := b.Track("video", media.DefaultInfo())
	if err != nil {
		t.Fatal(err)
	}
	g, err := track.Group(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.WriteFrame(0, []byte(name)); err != nil {
		t.Fatal(err)
	}
	g.Finish()
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
}

// TestNames: how names may be spelled, what is listed and how deep they may be (faults 8), on the wire of each version and
// over HTTP.
func TestNames(t *testing.T) {
	r := drive.StartRelay(t, "relay")
	d := dialerTo(t, r, message.Lite06)
	dial := func(path string, v message.Version) *client.Client {
		t.Helper()
		cfg := client.Config{Dialer: d}
		if v != message.Lite06 {
			cfg = client.Config{Dialer: dialerTo(t, r, v), Versions: []client.Version{v}}
		}
		c, err := client.Dial(t.Context(), strings.TrimSuffix(r.HTTPS(), "/")+path, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	const odd = `w/%2e%2e/..//./x\y`
	top, deep := dial("/", message.Lite06), dial("/root", message.Lite06)
	for _, name := range []string{"//a//b/", ".hidden/x", odd} {
		publishAt(t, top, name)
	}
	publishAt(t, deep, segments(31))
	publishAt(t, deep, segments(32)) // 33 with the root
	for v := message.Lite01; v <= message.Lite06; v++ {
		viewer := dial("/", v)
		for asked, frame := range map[string]string{
			"a/b": "//a//b/", "/a/b": "//a//b/", "a/b/": "//a//b/", "a//b": "//a//b/",
			".hidden/x": ".hidden/x", odd: odd, "root/" + segments(31): segments(31),
		} {
			drive.WaitFor(t, patience, fmt.Sprintf("%v: %q", v, asked), func() bool { return oneFrame(t, viewer, asked) == frame })
		}
		for _, asked := range []string{"a", "A/b", "a/b/c", "x/y", "root/" + segments(30)} {
			if _, err := viewer.Subscribe(t.Context(), asked, "video", client.Subscription{}); v >= message.Lite05 && err == nil {
				t.Errorf("%v: %q is there", v, asked)
			}
		}
		if err := viewer.Err(); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	listed := "a/b\nroot/" + segments(31)
	for path, want := range map[string]string{
		"/announced": listed, "/announced/": listed, "/announced/a": "b", "/announced//a//": "b", "/announced/a/": "b",
		"/announced/.hidden": "x", "/announced/w": "", "/announced/..": "", "/announced/%2e%2e/%2e%2e/etc": "",
		"/announced/a/../..": "", `/announced/a\b`: "", "/announced/a%00": "",
		"/fetch/a/b/video": "//a//b/", "/fetch//a//b//video": "//a//b/",
	} {
		if status, body := raw(t, r, path); status != http.StatusOK || body != want {
			t.Errorf("GET %s: %d, %q, want %q", path, status, body, want)
		}
	}
	for _, path := range []string{"/../../etc/passwd", "/%2e%2e/etc/passwd", "/announced/" + segments(33), "/announced/%ff", "//announced"} {
		if status, body := raw(t, r, path); status < 400 || status >= 500 {
			t.Errorf("GET %s: %d, %q", path, status, body)
		}
	}
	if err := errors.Join(top.Err(), deep.Err()); err != nil {
		t.Error(err)
	}
}

// oneFrame subscribes and returns the first frame, or what went wrong.
func oneFrame(t *testing.T, c *client.Client, path string) string {
	t.Helper()
	track, err := c.Subscribe(t.Context(), path, "video", client.Subscription{})
	if err != nil {
		return err.Error()
	}
	defer track.Close()
	g, err := track.NextGroup(t.Context())
	if err != nil {
		return err.Error()
	}
	defer g.Close()
	frame, err := g.ReadFrame(t.Context())
	if err != nil {
		return err.Error()
	}
	return string(frame.Payload)
}

// raw sends a GET with a target as it is: other clients would tidy it up.
func raw(t *testing.T, r drive.Relay, target string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Web))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	if _, err := fmt.Sscanf(head, "HTTP/1.0 %d", &status); err != nil {
		t.Fatalf("GET %s: %q", target, head)
	}
	return status, body
}
