//go:build interop

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// env returns a variable that `make interop` sets; without it there is nothing to test against.
func env(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run `make interop`, which installs the clients", name)
	}
	return v
}

// relay is one running moqmesh process.
type relay struct {
	port, web, internal int
	hash                string
	proc                *process
}

func (r relay) https() string { return fmt.Sprintf("https://127.0.0.1:%d/", r.port) }
func (r relay) moqt() string  { return fmt.Sprintf("moqt://127.0.0.1:%d/", r.port) }

// startRelay runs a relay that dials the given peers and waits until it serves.
func startRelay(t *testing.T, name string, peers ...relay) relay {
	t.Helper()
	r := relay{port: freePort(t), web: freePort(t), internal: freePort(t)}
	var connect, pins []string
	for _, p := range peers {
		connect = append(connect, fmt.Sprintf("%q", p.https()))
		pins = append(pins, fmt.Sprintf("%q", p.hash))
	}
	file := filepath.Join(t.TempDir(), name+".toml")
	text := fmt.Sprintf(`drain_timeout = "1s"
[listen]
bind = "127.0.0.1:%d"
[listen.tls]
generate = ["localhost", "127.0.0.1"]
[connect.tls]
fingerprint = [%s]
[cluster]
connect = [%s]
[web.http]
listen = "127.0.0.1:%d"
[internal]
listen = "127.0.0.1:%d"
[auth]
public = "**"
[log]
level = "debug"
`, r.port, strings.Join(pins, ", "), strings.Join(connect, ", "), r.web, r.internal)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.proc = start(t, name, env(t, "MOQMESH_BIN"), "relay", file)
	r.hash = strings.TrimSpace(get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", r.web)))
	return r
}

// chain runs n relays, each of which dials the one before; the first is where the publisher goes.
func chain(t *testing.T, n int) []relay {
	t.Helper()
	relays := []relay{startRelay(t, "relay0")}
	for i := 1; i < n; i++ {
		relays = append(relays, startRelay(t, fmt.Sprintf("relay%d", i), relays[i-1]))
	}
	for _, r := range relays[1:] {
		waitFor(t, 10*time.Second, "peer session", func() bool {
			return strings.Contains(get(t, fmt.Sprintf("http://127.0.0.1:%d/nodes", r.internal)), `"id"`)
		})
	}
	return relays
}

// get fetches a URL, trying for ten seconds while nobody listens.
func get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	var last error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get(url)
		if err != nil {
			last = err
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return string(body)
		}
		last = fmt.Errorf("status %s, %w", resp.Status, err)
	}
	t.Fatalf("GET %s: %v", url, last)
	return ""
}

// metric sums the rows of a metric whose labels contain every one of the given texts.
func metric(t *testing.T, r relay, name string, labels ...string) (sum float64) {
	t.Helper()
rows:
	for line := range strings.Lines(get(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", r.internal))) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue rows
			}
		}
		var v float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &v); err != nil {
			t.Fatalf("metric %q: %v", line, err)
		}
		sum += v
	}
	return sum
}

// freePort finds a port that is free on UDP and TCP.
func freePort(t *testing.T) int {
	t.Helper()
	for range 20 {
		u, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := u.LocalAddr().(*net.UDPAddr).Port
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		u.Close()
		if err != nil {
			continue
		}
		l.Close()
		return port
	}
	t.Fatal("no free port")
	return 0
}

func waitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, limit)
}

// event is one JSON line of a client.
type event map[string]any

func (e event) name() string { s, _ := e["ev"].(string); return s }

// process is a child whose standard output is read line by line.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error

	mu     sync.Mutex
	events []event
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// start runs a command until the test ends; it is then asked to stop, and killed after five seconds.
func start(t *testing.T, name, command string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(command, args...), done: make(chan struct{})}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = &lockedWriter{p: p}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go p.read(stdout)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("--- %s: %v\n%s%s", name, p.err, tail(p.stdout.String()), tail(p.stderr.String()))
		}
	})
	return p
}

func tail(s string) string {
	if len(s) > 6000 {
		return "…" + s[len(s)-6000:]
	}
	return s
}

type lockedWriter struct{ p *process }

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.p.stderr.Write(b)
}

func (p *process) read(r io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		p.mu.Lock()
		p.stdout.Write(append(lines.Bytes(), '\n'))
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			p.events = append(p.events, e)
		}
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
}

// stop asks the process to end and waits for it.
func (p *process) stop() {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// wait waits for the process to end by itself.
func (p *process) wait(t *testing.T, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		t.Fatalf("%s did not end within %v", p.name, limit)
		return nil
	}
}

// find returns the events of a name seen so far.
func (p *process) find(name string) (found []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events {
		if e.name() == name {
			found = append(found, e)
		}
	}
	return found
}

// expect waits for the first event of a name.
func (p *process) expect(t *testing.T, name string, limit time.Duration) event {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if found := p.find(name); len(found) > 0 {
			return found[0]
		}
		select {
		case <-p.done:
			if found := p.find(name); len(found) > 0 {
				return found[0]
			}
			t.Fatalf("%s ended (%v) without %q", p.name, p.err, name)
		default:
		}
	}
	t.Fatalf("%s: no %q within %v", p.name, name, limit)
	return nil
}
