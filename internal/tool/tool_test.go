package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/testmedia"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/relay"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startRelay runs a relay on a loopback port.
func startRelay(t *testing.T) *relay.Relay {
	t.Helper()
	public, err := auth.NewPublic(auth.PublicRules{Both: []string{"**"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(relay.Config{
		Listen:       endpoint.Config{Addr: "127.0.0.1:0"},
		Certificates: tlsconf.Config{Generate: []string{"localhost"}},
		Auth:         public,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// buffer collects what a command writes. It is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text.Bytes())
}

// row is a JSON line.
type row map[string]any

// lines are those of one kind of event.
func (b *buffer) lines(t *testing.T, ev string) (found []row) {
	t.Helper()
	for text := range bytes.Lines(b.bytes()) {
		var l row
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if l["ev"] == ev {
			found = append(found, l)
		}
	}
	return found
}

// wait waits for the first line of a kind.
func (b *buffer) wait(t *testing.T, ev string) row {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if found := b.lines(t, ev); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("no %q: %s", ev, b.bytes())
	return nil
}

// command is one that runs.
type command struct {
	out, err buffer
	cancel   context.CancelFunc // as an interrupt does
	done     chan error
}

// start runs a command with the URL of the relay in place of URL.
func start(t *testing.T, r *relay.Relay, in io.Reader, args ...string) *command {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &command{cancel: cancel, done: make(chan error, 1)}
	for i, a := range args {
		args[i] = strings.Replace(a, "URL", "moqt://"+r.Addr()+"/", 1)
	}
	args = append(args, "--insecure")
	var all cli
	k, err := kong.New(&all, kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(&Streams{In: in, Out: &c.out, Err: &c.err}))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := k.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	go func() { c.done <- parsed.Run() }()
	t.Cleanup(cancel)
	return c
}

// wait waits for the end of a command.
func (c *command) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.done:
		c.done <- err
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("still running: %s", c.out.bytes())
		return nil
	}
}

// summary waits for the end and demands what the summary says.
func (c *command) summary(t *testing.T, ok bool) row {
	t.Helper()
	err := c.wait(t)
	found := c.out.lines(t, "summary")
	if len(found) != 1 {
		t.Fatalf("%d summaries, %v: %s", len(found), err, c.out.bytes())
	}
	if found[0]["ok"] != ok || (err == nil) != ok {
		t.Errorf("want ok %v, got %v: %v", ok, err, found[0])
	}
	return found[0]
}

func number(l row, field string) float64 { n, _ := l[field].(float64); return n }

// TestPubSub plays each version to each other.
func TestPubSub(t *testing.T) {
	r := startRelay(t)
	for _, v := range []string{"lite-03", "lite-04", "lite-05", "lite-06"} {
		t.Run(v, func(t *testing.T) {
			pub := start(t, r, nil, "pub", "URL", v, "--version", v, "--rate", "100", "--group", "10")
			if got := pub.out.wait(t, "published"); got["version"] != "moq-"+v {
				t.Errorf("published: %v", got)
			}
			subs := map[string]*command{}
			for _, w := range []string{"lite-03", "lite-04", "lite-05", "lite-06"} {
				subs[w] = start(t, r, nil, "sub", "URL", v, "--version", w, "--groups", "8")
			}
			for w, sub := range subs {
				got := sub.summary(t, true)
				// More than asked for if the machine is busy: what has arrived when the eighth is complete.
				groups, frames := number(got, "groups"), number(got, "frames")
				if groups < 8 || frames < 80 || frames > 10*(groups+2) || number(got, "bytes") != frames*4096 {
					t.Errorf("to %s: %v", w, got)
				}
				if p50 := number(got, "p50_ms"); p50 <= 0 || p50 > 1000 {
					t.Errorf("latency: %v", got)
				}
				if sub := sub.out.wait(t, "subscribed"); sub["version"] != "moq-"+w {
					t.Errorf("subscribed: %v", sub)
				}
			}
			pub.cancel()
			pub.summary(t, true)
		})
	}
}

// TestViewers watches ten times at once, for a number of seconds.
func TestViewers(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, nil, "pub", "URL", "demo", "--rate", "50", "--group", "5", "--broadcasts", "2")
	pub.out.wait(t, "published")
	sub := start(t, r, nil, "sub", "URL", "demo/1", "--viewers", "10", "--seconds", "2.2")
	got := sub.summary(t, true)
	if number(got, "viewers") != 10 || number(got, "frames") < 10*80 {
		t.Errorf("summary %v", got)
	}
	seconds := sub.out.lines(t, "second")
	if len(seconds) < 1 || number(seconds[len(seconds)-1], "viewers") != 10 {
		t.Errorf("seconds %v", seconds)
	}
	if len(sub.out.lines(t, "subscribed")) != 10 {
		t.Error("not ten subscriptions")
	}
}

// TestTrackEnds lets the publisher stop in the middle of a group: that is no fault.
func TestTrackEnds(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, nil, "pub", "URL", "demo", "--rate", "100", "--group", "30", "--seconds", "1", "--wait")
	pub.out.wait(t, "published")
	sub := start(t, r, nil, "sub", "URL", "demo")
	got := sub.summary(t, true)
	sent := pub.summary(t, true)
	if got["ended"] != "track ended" || number(got, "frames") != number(sent, "frames") || number(sent, "frames") < 90 {
		t.Errorf("got %v of %v", got, sent)
	}
}

// TestJS uses the frames of the other clients.
func TestJS(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, nil, "pub", "URL", "demo", "--rate", "100", "--group", "10", "--format", "js", "--size", "1200")
	pub.out.wait(t, "published")
	if got := start(t, r, nil, "sub", "URL", "/demo/", "--format", "js", "--groups", "3").summary(t, true); number(got, "p50_ms") <= 0 {
		t.Errorf("no latency: %v", got)
	}
	got := start(t, r, nil, "sub", "URL", "demo", "--groups", "3", "--seconds", "0.5").summary(t, false)
	if number(got, "wrong") == 0 {
		t.Errorf("frames of another format pass: %v", got)
	}
}

// TestBytes sends a megabyte through and compares.
func TestBytes(t *testing.T) {
	r := startRelay(t)
	data := make([]byte, 1<<20)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(data)
	for _, v := range []string{"lite-03", "lite-05", "lite-06"} {
		t.Run(v, func(t *testing.T) {
			pub := start(t, r, bytes.NewReader(data), "pub", "URL", v, "--version", v, "--stdin", "--wait", "--size", "3001", "--group", "7")
			pub.out.wait(t, "published")
			file := filepath.Join(t.TempDir(), "out")
			toFile := start(t, r, nil, "sub", "URL", v, "--version", v, "--start", "0", "--output", file)
			got := toFile.summary(t, true)
			pub.summary(t, true)
			if number(got, "bytes") != float64(len(data)) || got["ended"] != "track ended" {
				t.Errorf("summary %v", got)
			}
			if text, err := os.ReadFile(file); err != nil || !bytes.Equal(text, data) {
				t.Errorf("%d bytes that differ, %v", len(text), err)
			}
		})
	}
}

// TestStdout writes media to standard output and the lines to the other.
func TestStdout(t *testing.T) {
	r := startRelay(t)
	text := strings.Repeat("some text to send. ", 100)
	pub := start(t, r, strings.NewReader(text), "pub", "URL", "demo", "--stdin", "--wait", "--size", "10", "--rate", "2000")
	pub.out.wait(t, "published")
	sub := start(t, r, nil, "sub", "URL", "demo", "--start", "0", "--output", "-")
	if err := sub.wait(t); err != nil {
		t.Errorf("%v: %s", err, sub.err.bytes())
	}
	if got := string(sub.out.bytes()); got != text {
		t.Errorf("got %q", got)
	}
	if len(sub.err.lines(t, "summary")) != 1 {
		t.Errorf("lines: %s", sub.err.bytes())
	}
}

// TestDatagrams sends each frame as a datagram.
func TestDatagrams(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, nil, "pub", "URL", "demo", "--datagrams", "--rate", "50", "--size", "800")
	pub.out.wait(t, "published")
	got := start(t, r, nil, "sub", "URL", "demo", "--datagrams", "--seconds", "1").summary(t, true)
	if number(got, "frames") < 30 || number(got, "groups") != number(got, "frames") {
		t.Errorf("summary %v", got)
	}
}

// TestAnnounced follows publishers that come and go.
func TestAnnounced(t *testing.T) {
	r := startRelay(t)
	watch := start(t, r, nil, "announced", "URL", "demo", "--seconds", "20")
	watch.out.wait(t, "connected")
	pub := start(t, r, nil, "pub", "URL", "demo/one", "--rate", "0", "--cost", "7", "--hop", "1234")
	pub.out.wait(t, "published")
	other := start(t, r, nil, "pub", "URL", "other", "--rate", "0")
	other.out.wait(t, "published")
	got := watch.out.wait(t, "announced")
	hops, _ := got["hops"].([]any)
	if got["path"] != "demo/one" || number(got, "warm") != 8 || number(got, "cold") != 8 || len(hops) != 2 || hops[0] != 1234.0 {
		t.Errorf("announced %v", got)
	}
	for _, v := range []string{"lite-03", "lite-04", "lite-05", "lite-06"} {
		once := start(t, r, nil, "announced", "URL", "--once", "--version", v)
		if err := once.wait(t); err != nil || len(once.out.lines(t, "announced")) != 2 {
			t.Errorf("%s: %v: %s", v, err, once.out.bytes())
		}
	}
	pub.cancel()
	pub.summary(t, true)
	if got := watch.out.wait(t, "withdrawn"); got["path"] != "demo/one" || got["hops"] != nil {
		t.Errorf("withdrawn %v", got)
	}
	watch.cancel()
	if err := watch.wait(t); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if n := len(watch.out.lines(t, "announced")); n != 1 {
		t.Errorf("%d announcements below demo", n)
	}
}

// TestFetch gets groups from the cache of the relay.
func TestFetch(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, strings.NewReader("abcdefghij"), "pub", "URL", "demo", "--stdin", "--wait", "--size", "1", "--group", "5", "--start", "40", "--linger", "10s")
	pub.out.wait(t, "published")
	start(t, r, nil, "sub", "URL", "demo", "--start", "40", "--format", "raw", "--groups", "2").summary(t, true)
	for _, tc := range []struct{ args, want string }{
		{"40", "abcde"}, {"41", "fghij"}, {"41 --frame 3", "ij"}, {"41 --frame 1 --frames 2", "gh"}, {"40 --frame 2 --version lite-05", "cde"},
	} {
		f := start(t, r, nil, append([]string{"fetch", "URL", "demo", "video"}, strings.Fields(tc.args)...)...)
		if err := f.wait(t); err != nil || string(f.out.bytes()) != tc.want {
			t.Errorf("fetch %s: %q, %v", tc.args, f.out.bytes(), err)
		}
	}
	for _, args := range []string{"demo video 99", "demo audio 40", "nowhere video 1", "demo video 40 --version lite-04"} {
		f := start(t, r, nil, append([]string{"fetch", "URL"}, strings.Fields(args)...)...)
		if err := f.wait(t); err == nil || len(f.out.bytes()) > 0 {
			t.Errorf("fetch %s: %q, %v", args, f.out.bytes(), err)
		}
	}
}

// TestNothing watches what is not there.
func TestNothing(t *testing.T) {
	r := startRelay(t)
	got := start(t, r, nil, "sub", "URL", "demo", "--wait", "100ms").summary(t, false)
	if text, _ := got["error"].(string); !strings.Contains(text, "not announced") {
		t.Errorf("summary %v", got)
	}
	start(t, r, nil, "sub", "URL", "demo", "--wait", "0").summary(t, false)
	pub := start(t, r, nil, "pub", "URL", "demo", "--rate", "0")
	pub.out.wait(t, "published")
	start(t, r, nil, "sub", "URL", "demo", "--seconds", "0.3").summary(t, false)
	start(t, r, nil, "sub", "URL", "demo", "--track", "audio").summary(t, false)
}

// TestFaults publishes media with one fault each; the viewer must find it.
func TestFaults(t *testing.T) {
	r := startRelay(t)
	cfg := client.Config{}
	cfg.TLS.Insecure = true
	cl, err := client.Dial(t.Context(), "moqt://"+r.Addr()+"/", cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	frame := func(group uint64, index uint32) []byte {
		return testmedia.Mesh.Append(nil, testmedia.Header{Sent: time.Now(), Group: group, Index: index, Of: 3}, 100)
	}
	for name, tc := range map[string]struct {
		field string
		frame func(group uint64, index uint32) []byte // nil leaves the frame out
		skip  uint64                                  // a group that is not sent
	}{
		"damaged": {"wrong", func(g uint64, i uint32) []byte {
			f := frame(g, i)
			if g == 2 && i == 1 {
				f[50] ^= 1
			}
			return f
		}, 0},
		"frame missing": {"wrong", func(g uint64, i uint32) []byte {
			if g == 2 && i == 1 {
				return nil
			}
			return frame(g, i)
		}, 0},
		"end missing": {"cut", func(g uint64, i uint32) []byte {
			if g == 2 && i == 2 {
				return nil
			}
			return frame(g, i)
		}, 0},
		"frame again": {"twice", func(g uint64, i uint32) []byte {
			if g == 2 && i == 1 {
				i = 0
			}
			return frame(g, i)
		}, 0},
		"group missing": {"missing", frame, 2},
		"none":          {"", frame, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := strings.ReplaceAll(name, " ", "-")
			b, err := cl.Publish(path)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			track, err := b.Track("video", media.DefaultInfo())
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Announce(route.Cost{}); err != nil {
				t.Fatal(err)
			}
			sub := start(t, r, nil, "sub", "URL", path, "--start", "1", "--max-age", "2s")
			if err := track.WaitSubscribed(t.Context()); err != nil {
				t.Fatal(err)
			}
			for group := uint64(1); group <= 5; group++ {
				if group == tc.skip {
					continue
				}
				if err := writeGroup(track, group, tc.frame); err != nil {
					t.Fatal(err)
				}
			}
			track.Finish()
			got := sub.summary(t, tc.field == "")
			if tc.field != "" && number(got, tc.field) == 0 {
				t.Errorf("%s is not counted: %v", tc.field, got)
			}
		})
	}
}

func writeGroup(track *client.TrackWriter, group uint64, frame func(uint64, uint32) []byte) error {
	g, err := track.Group(group)
	if err != nil {
		return err
	}
	defer g.Finish()
	for i := range uint32(3) {
		if f := frame(group, i); f != nil {
			if err := g.WriteFrame(group*100+uint64(i), f); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestRelayGone closes the relay under a publisher, a viewer and a watcher: all fail, with one line.
func TestRelayGone(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, nil, "pub", "URL", "demo", "--rate", "50")
	pub.out.wait(t, "published")
	sub := start(t, r, nil, "sub", "URL", "demo")
	watch := start(t, r, nil, "announced", "URL")
	sub.out.wait(t, "second")
	watch.out.wait(t, "announced")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	sub.summary(t, false)
	pub.summary(t, false)
	for _, c := range []*command{pub, sub, watch} {
		if err := c.wait(t); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	}
}

// failingWriter fails like a closed pipe.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("closed pipe") }

// TestOutputFails ends when nobody takes the media any more.
func TestOutputFails(t *testing.T) {
	r := startRelay(t)
	pub := start(t, r, nil, "pub", "URL", "demo", "--rate", "50", "--group", "5")
	pub.out.wait(t, "published")
	var all cli
	s := &Streams{Out: failingWriter{}, Err: io.Discard}
	k, err := kong.New(&all, kong.BindTo(t.Context(), (*context.Context)(nil)), kong.Bind(s))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := k.Parse([]string{"sub", fmt.Sprintf("moqt://%s/", r.Addr()), "demo", "--insecure", "--output", "-"})
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Run(); err == nil || !strings.Contains(err.Error(), "closed pipe") {
		t.Errorf("ends with %v", err)
	}
}

// TestEarlyCommand dials an address where nobody listens yet.
func TestEarlyCommand(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	started := make(chan *relay.Relay, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		defer close(started)
		public, err := auth.NewPublic(auth.PublicRules{Both: []string{"**"}})
		if err != nil {
			t.Error(err)
			return
		}
		r, err := relay.New(relay.Config{
			Listen:       endpoint.Config{Addr: addr},
			Certificates: tlsconf.Config{Generate: []string{"localhost"}},
			Web:          relay.Web{HTTP: addr},
			Auth:         public,
		})
		if err != nil {
			t.Error(err)
			return
		}
		started <- r
	})
	cl, err := dial(t.Context(), "http://"+addr+"/", client.Config{})
	if r := <-started; r != nil {
		defer func() { _ = r.Close() }()
	}
	if err != nil {
		t.Fatal(err)
	}
	cl.Close()
}
