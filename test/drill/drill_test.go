//go:build drill

package drill

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

const (
	viewers    = 500
	cadence    = 10 * time.Second
	outage     = 20 * time.Second
	window     = 40 * time.Second
	frameEvery = 200 * time.Millisecond
	// longestGap is what a viewer may see without a frame. It has nothing to do with admission; a machine that runs 500
	// viewers beside the relay, and other things, makes some.
	longestGap = 5 * time.Second

	wantUnavailable = "authorization is unavailable"
	wantDenied      = "unauthorized"
)

// drill is the whole set-up.
type drill struct {
	whole     *testing.T
	dir, keys string
	port      int
	proxy     *proxy
	server    *drive.Process
	relay     *drive.Process
	relayPort int
	pages     string // of the relay, where operators look
	dial      *dialer
	audience  []*viewer
	lines     []string
}

func (d *drill) key(t *testing.T, id string) *token.Key {
	t.Helper()
	k, err := token.Generate("ES256", id)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.WriteFile(d.keyFile(id)); err != nil {
		t.Fatal(err)
	}
	return k
}

func (d *drill) keyFile(id string) string { return filepath.Join(d.keys, id+".jwk") }

func (d *drill) revoke(t *testing.T, id string) {
	t.Helper()
	if err := os.Remove(d.keyFile(id)); err != nil {
		t.Fatal(err)
	}
}

func sign(t *testing.T, k *token.Key, root string) string {
	t.Helper()
	text, err := k.Sign(token.Claims{Root: root, Publish: paths.All, Subscribe: paths.All})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// startServer runs the auth server until the whole test ends.
func (d *drill) startServer(t *testing.T) {
	t.Helper()
	d.server = drive.Start(d.whole, "auth", drive.Env(t, "MOQMESH_BIN"), "auth", "serve", "--listen", fmt.Sprintf("127.0.0.1:%d", d.port),
		"--key-dir", d.keys, "--revalidate", cadence.String(), "--expires", "1h")
	drive.WaitFor(t, 10*time.Second, "the auth server", func() bool { return strings.Contains(d.server.Stdout(), "listening") })
}

// url is where the audience dials.
func (d *drill) url() string { return fmt.Sprintf("moqt://127.0.0.1:%d/", d.relayPort) }

// metric reads a metric without labels.
func (d *drill) metric(t *testing.T, name string) (value float64) {
	t.Helper()
	for line := range strings.Lines(drive.Get(t, d.pages+"/metrics")) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			if _, err := fmt.Sscan(text, &value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return value
}

func setUp(t *testing.T) *drill {
	t.Helper()
	d := &drill{whole: t, dir: t.TempDir(), port: drive.FreePort(t)}
	d.keys = filepath.Join(d.dir, "keys")
	if err := os.Mkdir(d.keys, 0o700); err != nil {
		t.Fatal(err)
	}
	d.proxy = newProxy(t, fmt.Sprintf("http://127.0.0.1:%d/", d.port))
	d.startServer(t)
	internal := drive.FreePort(t)
	d.relayPort, d.pages = drive.FreePort(t), fmt.Sprintf("http://127.0.0.1:%d", internal)
	file := filepath.Join(d.dir, "relay.toml")
	// The viewers take the same cores: that makes the relay late, which is another test's business.
	text := fmt.Sprintf(`[listen]
bind = "127.0.0.1:%d"
tls.generate = ["localhost", "127.0.0.1"]
[internal]
listen = "127.0.0.1:%d"
[limits]
lateness = "0s"
[auth]
url = "%s/"
stale_window = "%s"
`, d.relayPort, internal, d.proxy.url, window)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.relay = drive.Start(t, "relay", drive.Env(t, "MOQMESH_BIN"), "relay", file)
	drive.Get(t, d.pages+"/health")
	cfg := client.Config{TLS: tlsconf.ClientConfig{Insecure: true}, DialTimeout: 30 * time.Second}
	shared, err := client.NewDialer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dialer = shared
	d.dial = &dialer{url: d.url(), cfg: cfg}
	t.Cleanup(func() {
		for _, v := range d.audience {
			v.leave()
		}
		_ = shared.Close()
	})
	return d
}

// fill lets the audience in, each with a token of its own.
func (d *drill) fill(t *testing.T) {
	t.Helper()
	k := d.key(t, "audience")
	pub := drive.Start(t, "pub", drive.Env(t, "MOQMESH_BIN"), "pub", d.url()+"?jwt="+sign(t, k, ""), "room", "--insecure",
		"--rate", fmt.Sprint(float64(time.Second)/float64(frameEvery)), "--size", "400", "--group", "10")
	pub.Expect(t, "published", 10*time.Second)
	drive.WaitFor(t, 10*time.Second, "the route", func() bool { return d.metric(t, "moqmesh_routes") == 1 })
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, 20)
	for range viewers {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			v, err := watch(t.Context(), d.dial, sign(t, k, ""))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			d.audience = append(d.audience, v)
		})
	}
	wg.Wait()
	drive.WaitFor(t, 60*time.Second, "the audience", func() bool {
		for _, v := range d.audience {
			if !v.plays() {
				return false
			}
		}
		return len(d.audience) == viewers
	})
}

// check demands that nobody has gone, and returns the longest gap since the last check.
func (d *drill) check(t *testing.T) (gap time.Duration) {
	t.Helper()
	gone := 0
	for _, v := range d.audience {
		if _, reason, ok := v.ended(); ok {
			if gone++; gone == 1 {
				t.Errorf("a viewer is gone: %s", reason)
			}
		}
		gap = max(gap, v.lap())
	}
	if gone > 0 {
		t.Errorf("%d viewers are gone", gone)
	}
	if gap > longestGap {
		t.Errorf("a viewer had no frame for %v", gap)
	}
	return gap
}

// TestOutages: the auth server fails for 20 s in every way, under 500 viewers (control plane, "What must be shown").
func TestOutages(t *testing.T) {
	d := setUp(t)
	d.fill(t)
	time.Sleep(2 * cadence) // until the questions are spread
	d.check(t)
	normal := time.Now()
	time.Sleep(cadence)
	l := d.proxy.since(normal)
	t.Logf("without a fault: %d questions in %v, at most %d in 100 ms, longest gap %v", l.requests, cadence, l.worst, d.check(t))
	d.lines = append(d.lines, row("Fault", "Viewers lost", "Longest gap", "Recent token", "New token", "Refused before", "First answer", "All renewed", "Refused by it", "Most in 100 ms"),
		row("---", "---", "---", "---", "---", "---", "---", "---", "---", "---"))
	for _, fault := range []string{"killed", "hanging", "status 500", "garbage", "half a body"} {
		t.Run(fault, func(t *testing.T) { d.outage(t, fault) })
	}
	t.Run("for good", func(t *testing.T) { d.forGood(t) })
	t.Logf("on %d cores:\n%s", runtime.NumCPU(), strings.Join(d.lines, "\n"))
}

// outage is one fault of 20 s and its end.
func (d *drill) outage(t *testing.T, fault string) {
	t.Helper()
	id := strings.ReplaceAll(fault, " ", "-")
	recent, denied, fresh := sign(t, d.key(t, "recent-"+id), ""), sign(t, d.key(t, "refused-"+id), ""), sign(t, d.key(t, "new-"+id), "")
	doomed, err := watch(t.Context(), d.dial, sign(t, d.key(t, "doomed-"+id), ""))
	if err != nil {
		t.Fatal(err)
	}
	defer doomed.leave()
	join := func(text, want string) time.Duration {
		got, took := try(t, d.dial, text)
		if got != want {
			t.Errorf("a join ends with %q, want %q", got, want)
		}
		return took
	}
	join(denied, "plays")
	d.revoke(t, "refused-"+id)
	join(denied, wantDenied)
	join(recent, "plays")
	d.check(t)

	start := time.Now()
	d.proxy.set(fault)
	if fault == "killed" {
		d.server.Kill()
	}
	time.Sleep(time.Second)
	d.revoke(t, "doomed-"+id) // which the relay cannot know
	var wg sync.WaitGroup
	var recovered time.Duration
	wg.Go(func() { recovered = join(recent, "plays") })
	wg.Go(func() { join(fresh, wantUnavailable) })
	wg.Go(func() { join(denied, wantDenied) })
	wg.Wait()
	time.Sleep(time.Until(start.Add(outage)))
	if _, reason, ok := doomed.ended(); ok {
		t.Errorf("ended without an answer: %s", reason)
	}
	back := time.Now()
	if fault == "killed" {
		d.startServer(t)
	}
	d.proxy.set("")
	var refused, renewed time.Duration
	drive.WaitFor(t, 30*time.Second, "the answers", func() bool {
		if _, reason, ok := doomed.ended(); ok && refused == 0 {
			if refused = time.Since(back); reason != "refused" {
				t.Errorf("ended with %q", reason)
			}
		}
		if renewed == 0 && d.metric(t, "moqmesh_auth_stale_sessions") == 0 {
			renewed = time.Since(back)
		}
		return refused > 0 && renewed > 0
	})
	first, _ := d.proxy.answer(back)
	l := d.proxy.since(back)
	gap := d.check(t)
	if limit := cadence + cadence/4 + 2*time.Second; first > limit || renewed > limit || refused > limit {
		t.Errorf("first answer after %v, all renewed after %v, refused after %v", first, renewed, refused)
	}
	if l.worst > viewers/4 {
		t.Errorf("%d questions within 100 ms", l.worst)
	}
	round := func(x time.Duration) string { return x.Round(10 * time.Millisecond).String() }
	d.lines = append(d.lines, row(fault, "0", round(gap), "plays after "+round(recovered), "unavailable", "denied", round(first), round(renewed), round(refused), fmt.Sprint(l.worst)))
}

// forGood: the server does not come back. After 30 s nobody new comes in; when the stale window is over all are gone,
// with "unavailable".
func (d *drill) forGood(t *testing.T) {
	t.Helper()
	recent := sign(t, d.key(t, "recent-last"), "")
	if got, _ := try(t, d.dial, recent); got != "plays" {
		t.Fatal(got)
	}
	start := time.Now()
	d.server.Kill()
	time.Sleep(25 * time.Second)
	if got, _ := try(t, d.dial, recent); got != "plays" {
		t.Errorf("25 s later: %s", got)
	}
	time.Sleep(time.Until(start.Add(35 * time.Second)))
	if got, _ := try(t, d.dial, recent); got != wantUnavailable {
		t.Errorf("35 s later: %s", got)
	}
	if gap := d.check(t); gap > longestGap {
		t.Errorf("gap %v", gap)
	}
	var first, last time.Duration
	drive.WaitFor(t, cadence+window, "the end of the stale window", func() bool {
		gone := 0
		for _, v := range d.audience {
			code, reason, ok := v.ended()
			if !ok {
				continue
			}
			gone++
			if code != 64+502 || reason != "unavailable" {
				t.Errorf("ended with %d, %q", code, reason)
			}
		}
		if gone > 0 && first == 0 {
			first = time.Since(start)
		}
		last = time.Since(start)
		return gone == viewers
	})
	if first < window || last > cadence+window+2*time.Second {
		t.Errorf("the first one is gone after %v, the last one after %v", first, last)
	}
	d.lines = append(d.lines, "", fmt.Sprintf("Never back: the recent token plays at 25 s and is refused as unavailable at 35 s; sessions end with `unavailable` from %.1f s to %.1f s.", first.Seconds(), last.Seconds()))
}
