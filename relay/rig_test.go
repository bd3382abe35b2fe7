package relay

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logBuffer is a log that tests read while relays write it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a relay on loopback that admits everybody and trusts every peer, until the test ends.
func start(t *testing.T, change func(*Config)) *Relay {
	t.Helper()
	admit, err := auth.NewPublic(auth.PublicRules{Both: []string{"**"}})
	if err != nil {
		t.Fatal(err)
	}
	log := new(logBuffer)
	cfg := Config{
		Listen: endpoint.Config{Addr: "127.0.0.1:0"}, Certificates: tlsconf.Config{Generate: []string{"localhost"}},
		Dial: endpoint.DialConfig{Addr: "127.0.0.1:0", TLS: tlsconf.ClientConfig{Insecure: true}},
		Web:  Web{HTTP: "127.0.0.1:0"},
		Auth: admit, Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		if t.Failed() {
			t.Logf("--- relay %d\n%s", r.Hop(), log)
		}
	})
	return r
}

func (r *Relay) url() string { return fmt.Sprintf("moqt://%s/", r.Addr()) }

// peers is a list for Config.
func peers(t *testing.T, values ...any) []cluster.Entry {
	t.Helper()
	list, err := cluster.Parse(values, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Entries
}

// waitFor polls until ok says so.
func waitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, limit)
}
