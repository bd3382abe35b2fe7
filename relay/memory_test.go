package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/internal/overload"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/session"
)

// TestOutOfMemory: a relay that has no memory left refuses clients with a reason on every carrier, and takes in peers; those
// who are there stay; and it recovers.
func TestOutOfMemory(t *testing.T) {
	ca := newAuthority(t)
	k, keys := newKey(t, "k")
	r := deciding(t, serve.Config{Keys: keys, MTLSPublish: []string{"**"}, MTLSSubscribe: []string{"**"}, MTLSPeer: true}, func(c *Config) {
		c.ClientRoots, c.Cache = ca.roots, media.CacheConfig{Capacity: 100 << 20}
		secureWeb(c, ca)
	})
	path := "/?jwt=" + sign(t, k, token.Claims{Publish: paths.All, Subscribe: paths.All})
	there := dial(t, r, "quic", path)
	expect(t, r, path, nil)
	r.followMemory(overload.MemoryVerdict{Full: true, Cache: 20 << 20, Collect: true}, 1000)
	for _, carrier := range carriers {
		code := uint32(lite.CodeApplication + http.StatusServiceUnavailable)
		if byStatus(carrier) {
			code = http.StatusServiceUnavailable
		}
		if got := knock(t, r, carrier, path); got.code != code || !byStatus(carrier) && got.reason != "out of memory" {
			t.Errorf("%s: a client got %+v", carrier, got)
		}
	}
	for _, carrier := range sessionCarriers {
		if got := settled(t, dialWith(t, r, carrier, "/", with(ca.client(t, "relay.example", time.Now().Add(time.Hour))))); got.code != 0 {
			t.Errorf("%s: a peer got %+v", carrier, got)
		}
	}
	if got := settled(t, there); got.code != 0 {
		t.Errorf("who was there got %+v", got)
	}
	if got := r.cache.Stats().Capacity; got != 20<<20 {
		t.Errorf("the cache may have %d", got)
	}
	turnedAway(t, r, "memory")
	metrics, _ := page(t, r, "/metrics")
	for _, line := range []string{"moqmesh_memory_short 1", "moqmesh_memory_used_bytes 1000"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
	r.followMemory(overload.MemoryVerdict{}, 500)
	expect(t, r, path, nil)
	if got := r.cache.Stats().Capacity; got != 100<<20 {
		t.Errorf("after it, the cache may have %d", got)
	}
}

// TestMemoryIsWatched: the relay looks at its memory by itself.
func TestMemoryIsWatched(t *testing.T) {
	r := start(t, func(c *Config) { c.Memory = 1 << 20 }) // which a Go program has taken before it begins
	waitFor(t, 30*time.Second, "the relay to find itself short", r.pressure.memory.full.Load)
	if got := r.cache.Stats().Capacity; got != overload.MinCache {
		t.Errorf("the cache may have %d", got)
	}
	calm := start(t, func(c *Config) { c.Memory = 1 << 40 })
	waitFor(t, 30*time.Second, "a look", func() bool { return calm.pressure.memory.used.Load() > 0 })
	if calm.pressure.memory.full.Load() {
		t.Error("short of a terabyte")
	}
}

// TestRoom: the least of what is left to the cache counts.
func TestRoom(t *testing.T) {
	var got []int64
	m := room{most: 100, resize: func(n int64) { got = append(got, n) }}
	for _, step := range []struct {
		why int
		n   int64
	}{{forLimit, 0}, {forLimit, 50}, {forLimit, 50}, {forHeadroom, 80}, {forHeadroom, 40}, {forLimit, 0}, {forHeadroom, 200}} {
		m.leave(step.why, step.n)
	}
	if diff := cmp.Diff([]int64{50, 50, 40, 40, 100}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m = room{resize: func(n int64) { got = append(got, n) }}
	m.leave(forLimit, 7)
	m.leave(forLimit, 0)
	if diff := cmp.Diff([]int64{7, 0}, got[5:]); diff != "" {
		t.Errorf("without a limit (-want +got):\n%s", diff)
	}
}

// TestLastDescriptors: the public is turned away before the last descriptor is taken, and told so; operators are not, nor
// is who comes over QUIC; and it ends by itself.
func TestLastDescriptors(t *testing.T) {
	used := descriptorsNow(t)
	const room = 10
	r := start(t, func(c *Config) {
		c.Web.HTTP, c.Internal = "127.0.0.1:0", "127.0.0.1:0"
		c.fileLimit = used + room + 60
	})
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	refused := ""
	for range 150 {
		c, err := net.Dial("tcp", r.web.addr("web"))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
			refused = line
			break
		}
	}
	if !strings.HasPrefix(refused, "HTTP/1.1 503 ") {
		t.Errorf("after %d connections: %q", len(open), refused)
	}
	turnedAway(t, r, "descriptors") // this asks the operators' listener
	if metrics, _ := page(t, r, "/metrics"); !strings.Contains(metrics, `moq_relay_accept_failures_total{class="exhausted",listener="web"}`) {
		t.Error("accept failures do not tell")
	}
	if got := knock(t, r, "quic", "/"); got.code != 0 {
		t.Errorf("over QUIC: %+v", got)
	}
	for _, c := range open {
		_ = c.Close()
	}
	open = nil
	waitFor(t, 5*time.Second, "the public to be let in again", func() bool {
		c, err := net.Dial("tcp", r.web.addr("web"))
		if err != nil {
			return false
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		return strings.Contains(line, " 200 ")
	})
}

// descriptorsNow is about how many this process has open.
func descriptorsNow(t *testing.T) uint64 {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return descriptor(c)
}

// counted is a session that only counts.
type counted struct {
	protocol
	counters session.Counters
}

func (c *counted) Counters() *session.Counters { return &c.counters }

// TestTiersAreBounded: whatever an auth server names, the rows of metrics have an end, and no session is lost in them.
func TestTiersAreBounded(t *testing.T) {
	var g registry
	g.init()
	const many = 3 * maxTiers
	var all []*live
	for i := range many {
		s := &live{protocol: new(counted), id: uint64(i + 1), tier: fmt.Sprint("tier", i)}
		g.add(s)
		all = append(all, s)
	}
	g.move(all[0], "tier1")
	g.move(all[1], "a new one")
	tiers, live, _ := g.metrics()
	var opened, closed uint64
	for _, m := range tiers {
		opened, closed = opened+m.SessionsOpened, closed+m.SessionsClosed
		if m.Tier == otherTier && m.SessionsOpened != many-maxTiers+1 {
			t.Errorf("%d sessions of other tiers", m.SessionsOpened)
		}
	}
	if len(tiers) != maxTiers+1 || live != many || opened != many+2 || closed != 2 {
		t.Errorf("%d tiers, %d live, %d opened, %d closed", len(tiers), live, opened, closed)
	}
	if all[many-1].tier != otherTier {
		t.Errorf("counted as %q", all[many-1].tier)
	}
}
