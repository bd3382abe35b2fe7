package drive

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Relay is one running relay process, open to everybody.
type Relay struct {
	*Process
	// Host is its address, 127.0.0.1 unless it is at the end of a cable.
	Host                string
	Port, Web, Internal int
	// Hash is the SHA-256 of its certificate, in hex.
	Hash string

	file  string
	cable *Cable // nil: it has none
}

// HTTPS is its address for WebTransport.
func (r Relay) HTTPS() string { return fmt.Sprintf("https://%s:%d/", r.Host, r.Port) }

// HTTP is its address for WebSockets; clients make ws of the scheme, peers dial WS.
func (r Relay) HTTP() string { return fmt.Sprintf("http://%s:%d/", r.Host, r.Web) }

// WS is its address for peers over WebSocket.
func (r Relay) WS() string { return fmt.Sprintf("ws://%s:%d/", r.Host, r.Web) }

// MOQT is its address for raw QUIC.
func (r Relay) MOQT() string { return fmt.Sprintf("moqt://%s:%d/", r.Host, r.Port) }

// InternalURL is the address of a page on the internal listener.
func (r Relay) InternalURL(page string) string {
	return fmt.Sprintf("http://%s:%d%s", r.Host, r.Internal, page)
}

// StartRelay runs the binary named by MOQMESH_BIN with a file that makes it dial the given peers, and waits until it
// serves.
func StartRelay(t *testing.T, name string, peers ...Relay) Relay {
	t.Helper()
	return StartRelayWith(t, name, func(Relay) string { return Connect(peers...) })
}

// Connect is what makes a relay dial others: lines of its file, of which the last are of the section cluster.
func Connect(peers ...Relay) string {
	var connect, pins []string
	for _, p := range peers {
		connect = append(connect, fmt.Sprintf("%q", p.HTTPS()))
		pins = append(pins, fmt.Sprintf("%q", p.Hash))
	}
	return fmt.Sprintf("[connect.tls]\nfingerprint = [%s]\n[cluster]\nconnect = [%s]\n", strings.Join(pins, ", "), strings.Join(connect, ", "))
}

// StartRelayWith runs the binary with more lines in its file, which may depend on the relay's ports, and waits until
// it serves. The lines must not open the sections listen, web, internal, auth and log.
func StartRelayWith(t *testing.T, name string, lines func(Relay) string) Relay {
	t.Helper()
	return startRelay(t, name, nil, lines)
}

// StartRelay is StartRelayWith at the far end.
func (c *Cable) StartRelay(t *testing.T, name string, lines func(Relay) string) Relay {
	t.Helper()
	return startRelay(t, name, c, lines)
}

func startRelay(t *testing.T, name string, cable *Cable, lines func(Relay) string) Relay {
	t.Helper()
	r := Relay{Host: "127.0.0.1", Port: FreePort(t), Web: FreePort(t), Internal: FreePort(t), cable: cable}
	if cable != nil {
		r.Host = cable.Host
	}
	r.file = filepath.Join(t.TempDir(), name+".toml")
	text := fmt.Sprintf(`drain_timeout = "1s"
[listen]
bind = "%[1]s:%[2]d"
[listen.tls]
generate = ["localhost", "%[1]s"]
[web.http]
listen = "%[1]s:%[3]d"
[internal]
listen = "%[1]s:%[4]d"
[auth]
public = "**"
[log]
level = "debug"
%[5]s`, r.Host, r.Port, r.Web, r.Internal, lines(r))
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start(t, name)
	return r
}

func (r *Relay) start(t *testing.T, name string) {
	t.Helper()
	start := Start
	if r.cable != nil {
		start = r.cable.Start
	}
	r.Process = start(t, name, Env(t, "MOQMESH_BIN"), "relay", r.file)
	r.Hash = strings.TrimSpace(Get(t, fmt.Sprintf("http://%s:%d/certificate.sha256", r.Host, r.Web)))
}

// Restart runs a relay that has ended once more, with the same file.
func (r *Relay) Restart(t *testing.T) {
	t.Helper()
	r.start(t, r.Name)
}

// Chain runs n relays, each of which dials the one before it, and waits until they are linked.
func Chain(t *testing.T, n int) []Relay {
	t.Helper()
	relays := []Relay{StartRelay(t, "relay0")}
	for i := 1; i < n; i++ {
		relays = append(relays, StartRelay(t, fmt.Sprintf("relay%d", i), relays[i-1]))
	}
	for _, r := range relays[1:] {
		WaitFor(t, 10*time.Second, r.Name+" linked", func() bool {
			return strings.Contains(Get(t, r.InternalURL("/nodes")), `"id"`)
		})
	}
	return relays
}

// Get fetches a page, trying for ten seconds while nobody listens, and demands status 200.
func Get(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	var last error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		status, body, err := get(&client, url)
		if err == nil && status == http.StatusOK {
			return body
		}
		last = fmt.Errorf("status %d, %w", status, err)
	}
	t.Fatalf("GET %s: %v", url, last)
	return ""
}

func get(client *http.Client, url string) (status int, body string, err error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Metric sums the rows of a metric whose labels contain every one of the given texts.
func (r Relay) Metric(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
rows:
	for line := range strings.Lines(Get(t, r.InternalURL("/metrics"))) {
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
