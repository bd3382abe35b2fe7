//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// clusterPage is GET /cluster.
type clusterPage struct {
	Peers []struct {
		Key, Source, State string
		LastError          string `json:"last_error"`
		Sessions           []uint64
	}
	List *struct {
		Peers int
		Error string
	}
}

func cluster(t *testing.T, r drive.Relay) (p clusterPage) {
	t.Helper()
	if err := json.Unmarshal([]byte(drive.Get(t, r.InternalURL("/cluster"))), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// connected counts the peers that a relay has a session with.
func connected(t *testing.T, r drive.Relay) (n int) {
	t.Helper()
	for _, p := range cluster(t, r).Peers {
		if p.State == "connected" {
			n++
		}
	}
	return n
}

// TestThreeRelaysByPeerList (C15 to C20): three relays find each other through a file that all follow; content crosses
// the mesh; bad lists change nothing, and a peer that leaves the list is dropped while a viewer goes on.
func TestThreeRelaysByPeerList(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "peers.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(list+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(list+".new", list); err != nil {
			t.Fatal(err)
		}
	}
	write("[]")
	var relays []drive.Relay
	var urls []string
	for i := range 3 {
		r := drive.StartRelayWith(t, fmt.Sprintf("relay%d", i), func(r drive.Relay) string {
			return fmt.Sprintf("[cluster]\nconnect_api = %q\nnode = %q\n[connect.tls]\ninsecure = true\n", list, r.HTTPS())
		})
		relays, urls = append(relays, r), append(urls, fmt.Sprintf("%q", r.HTTPS()))
	}
	write("[" + strings.Join(urls, ",") + "]")
	for _, r := range relays {
		drive.WaitFor(t, 10*time.Second, r.Name+" meshed", func() bool { return connected(t, r) == 2 })
	}
	drive.Start(t, "pub", binary(t), "pub", relays[0].MOQT(), "demo", "--hash", relays[0].Hash)
	sub := drive.Start(t, "sub", binary(t), "sub", relays[1].MOQT(), "demo", "--hash", relays[1].Hash, "--seconds", "8")
	sub.Expect(t, "second", 10*time.Second)
	dials := func() float64 { return relays[1].Metric(t, "moqmesh_dials_total") }
	before := dials()
	for _, text := range []string{`{}`, `["https://x/`, `["ftp://x/"]`} {
		write(text)
		drive.WaitFor(t, 5*time.Second, "bad list told", func() bool { l := cluster(t, relays[1]).List; return l.Error != "" && l.Peers == 2 })
		write("[" + strings.Join(urls, ", ") + "]")
		drive.WaitFor(t, 5*time.Second, "good list back", func() bool { return cluster(t, relays[1]).List.Error == "" })
	}
	write("[" + urls[0] + "," + urls[1] + "]") // without the third, whom nobody needs
	drive.WaitFor(t, 5*time.Second, "third peer dropped", func() bool { return len(cluster(t, relays[1]).Peers) == 1 })
	summary := sub.Expect(t, "summary", 20*time.Second)
	if summary["ok"] != true {
		t.Errorf("the viewer missed something: %v", summary)
	}
	if got := dials(); got != before {
		t.Errorf("%v dials more although no peer was added", got-before)
	}
}

// TestPeerListOverHTTP (C16 to C18): a control plane gives a list, then fails in many ways: the link stays.
func TestPeerListOverHTTP(t *testing.T) {
	hub := drive.StartRelay(t, "hub")
	var mu sync.Mutex
	var nodes []string
	status, body := http.StatusInternalServerError, ""
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, r.URL.Query().Get("node"))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer api.Close()
	r := drive.StartRelayWith(t, "relay", func(drive.Relay) string {
		return fmt.Sprintf("[cluster]\nconnect_api = \"%s/peers?token=S3CRET\"\nnode = \"relay.example\"\n[connect.tls]\nfingerprint = %q\n", api.URL, hub.Hash)
	})
	drive.WaitFor(t, 5*time.Second, "failing list told", func() bool { return cluster(t, r).List.Error == "status 500 Internal Server Error" })
	mu.Lock()
	status, body = http.StatusOK, fmt.Sprintf(`[%q, {"url": "https://relay.example/", "token": "S3CRET"}]`, hub.HTTPS())
	mu.Unlock()
	drive.WaitFor(t, 10*time.Second, "linked", func() bool { return connected(t, r) == 1 })
	if p := cluster(t, r).Peers; len(p) != 1 || p[0].Source != "connect_api" || p[0].Key != hub.HTTPS() {
		t.Errorf("peers %+v", p)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, n := range nodes {
		if n != "https://relay.example/" {
			t.Errorf("the server was told we are %q", n)
		}
	}
	if strings.Contains(r.Stderr(), "S3CRET") {
		t.Errorf("a secret is logged: %s", r.Stderr())
	}
}
