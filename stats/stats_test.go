package stats_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/stats"
)

// host writes down what is announced.
type host struct {
	mu   sync.Mutex
	live map[session.AdvertID]string
}

func (h *host) Announce(id session.AdvertID, ad session.Advertisement) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[id] = ad.Prefix
	return nil
}

func (h *host) Withdraw(id session.AdvertID, explicit bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !explicit {
		h.live[id] += " lost"
		return
	}
	delete(h.live, id)
}

func (h *host) announced() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	names := make([]string, 0, len(h.live))
	for _, n := range h.live {
		names = append(names, n)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

// rig runs a publisher for the time of a test, in virtual time.
type rig struct {
	t    *testing.T
	book *stats.Book
	pub  *stats.Publisher
	host *host
}

func run(t *testing.T, cfg stats.Config, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Prefix = ".stats"
		if cfg.Interval == 0 {
			cfg.Interval = time.Second
		}
		if cfg.Linger == 0 {
			cfg.Linger = 5 * time.Minute
		}
		r := &rig{t: t, book: stats.NewBook(cfg.Prefix), host: &host{live: make(map[session.AdvertID]string)}}
		r.pub = stats.New(cfg, r.book)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.pub.Run(ctx, r.host)
		}()
		test(r)
		cancel()
		<-done
	})
}

type silent struct{}

func (silent) Wake() {}

// watcher reads one track.
type watcher struct {
	r      *rig
	reader *media.Reader
	sub    session.Subscription
	last   uint64
}

func (r *rig) watch(path, track string) *watcher {
	r.t.Helper()
	info, err := r.pub.TrackInfo(r.t.Context(), path, track)
	if err != nil {
		r.t.Fatal(err)
	}
	cached := media.NewCache(media.CacheConfig{}).NewTrack(info)
	w := &watcher{r: r, reader: cached.NewReader(media.Subscription{MaxAge: media.Unlimited}, silent{})}
	copy := cached.NewCopy(nil)
	w.sub, err = r.pub.Subscribe(r.t.Context(), session.SubscribeRequest{Path: path, Track: track, Info: info}, copy)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// next returns the newest frame; nil if there is none that was not taken.
func (w *watcher) next() (payload []byte) {
	w.r.t.Helper()
	synctest.Wait()
	for {
		g, err := w.reader.Next()
		if err != nil {
			w.r.t.Fatal(err)
		}
		if g == nil {
			return payload
		}
		f, err := g.ReadFrame(media.NewWaiter())
		if err != nil {
			w.r.t.Fatal(err)
		}
		if g.Sequence() > w.last {
			w.last, payload = g.Sequence(), f.Payload
		}
		g.Close()
	}
}

func (w *watcher) object() map[string]map[string]uint64 {
	w.r.t.Helper()
	var out map[string]map[string]uint64
	if err := json.Unmarshal(w.next(), &out); err != nil {
		w.r.t.Fatal(err)
	}
	return out
}

// TestTotals: what was counted comes every second, apart by role and tier; the names of the fields are those that
// dashboards know.
func TestTotals(t *testing.T) {
	run(t, stats.Config{Node: "us-west"}, func(r *rig) {
		if got := r.host.announced(); got != ".stats/node/us-west" {
			t.Errorf("announced %q", got)
		}
		const name = ".stats/node/us-west"
		sent, received, peers := r.watch(name, "publisher.json"), r.watch(name, "subscriber.json"), r.watch(name, "mesh/publisher.json")
		if got := sent.object(); len(got) != 0 {
			t.Errorf("at first %v", got)
		}
		demo := r.book.Broadcast("", "demo")
		demo.Sent.Bytes.Add(5)
		demo.Sent.ViewersOpened.Add(2)
		demo.Received.Frames.Add(7)
		r.book.Broadcast("mesh", "demo").Sent.Groups.Add(9)
		time.Sleep(time.Second)
		if got := sent.object()["demo"]; got["bytes"] != 5 || got["broadcasts_started"] != 2 || got["frames"] != 0 || len(got) != 16 {
			t.Errorf("publisher %v", got)
		}
		if got := received.object()["demo"]["frames"]; got != 7 {
			t.Errorf("subscriber: %d frames", got)
		}
		if got := peers.object()["demo"]["groups"]; got != 9 {
			t.Errorf("tier: %d groups", got)
		}
		before := sent.last
		demo.Sent.Bytes.Add(5)
		time.Sleep(time.Second)
		if got := sent.object()["demo"]["bytes"]; got != 10 || sent.last <= before {
			t.Errorf("%d bytes in group %d after %d", got, sent.last, before)
		}
		if at := time.UnixMicro(int64(sent.last)); time.Since(at) > time.Second {
			t.Errorf("group number %d is %v", sent.last, at)
		}
	})
}

// TestPacked: the compressed track holds the same, each frame for itself.
func TestPacked(t *testing.T) {
	run(t, stats.Config{}, func(r *rig) {
		r.book.Broadcast("", "demo").Sent.Bytes.Add(5)
		plain, packed := r.watch(".stats/node", "publisher.json"), r.watch(".stats/node", "publisher.json.z")
		for range 2 {
			text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed.next())))
			if diff := cmp.Diff(string(plain.next()), string(text)); diff != "" || err != nil || len(text) == 0 {
				t.Errorf("%v, %s", err, diff)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestSessions: by root.
func TestSessions(t *testing.T) {
	run(t, stats.Config{}, func(r *rig) {
		end := r.book.Session("", "room")
		r.book.Session("", "room")
		r.book.Session("mesh", "")
		end()
		w := r.watch(".stats/node", "sessions.json")
		want := map[string]map[string]uint64{"room": {"sessions_started": 2, "sessions_ended": 1}}
		if diff := cmp.Diff(want, w.object()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestGroups: with a depth each group has a broadcast of its own, announced while there is traffic and for a while after.
func TestGroups(t *testing.T) {
	run(t, stats.Config{Depth: 1, Node: "n", Linger: time.Minute}, func(r *rig) {
		if got := r.host.announced(); got != "" {
			t.Errorf("announced %q without traffic", got)
		}
		acme := r.book.Broadcast("", "acme/one")
		r.book.Broadcast("", "acme/two").Sent.Bytes.Add(1)
		other := r.book.Broadcast("", "other")
		acme.Sent.SubscriptionsOpened.Add(1)
		acme.Sent.Bytes.Add(3)
		other.Sent.Frames.Add(1)
		time.Sleep(time.Second)
		if got := r.host.announced(); got != ".stats/acme/node/n .stats/other/node/n" {
			t.Errorf("announced %q", got)
		}
		w := r.watch(".stats/acme/node/n", "publisher.json")
		got := w.object()
		if len(got) != 2 || got["acme/one"]["bytes"] != 3 || got["acme/two"]["bytes"] != 1 {
			t.Errorf("acme: %v", got)
		}
		time.Sleep(50 * time.Second)
		other.Sent.Frames.Add(1) // again
		time.Sleep(50 * time.Second)
		if got := r.host.announced(); got != ".stats/acme/node/n .stats/other/node/n" {
			t.Errorf("announced %q", got)
		}
		time.Sleep(time.Minute)
		if got := r.host.announced(); got != ".stats/acme/node/n" { // its subscription is still open
			t.Errorf("announced %q", got)
		}
		acme.Sent.SubscriptionsClosed.Add(1)
		time.Sleep(62 * time.Second)
		if got := r.host.announced(); got != "" {
			t.Errorf("announced %q", got)
		}
	})
}

// TestNotCounted: the statistics themselves are not, and a book that is full takes nobody new.
func TestNotCounted(t *testing.T) {
	b := stats.NewBook(".stats")
	for _, path := range []string{".stats", ".stats/node", ".stats/x/y"} {
		if b.Broadcast("", path) != nil {
			t.Errorf("%s is counted", path)
		}
	}
	if b.Broadcast("", ".statsx") == nil || b.Broadcast("", "a/.stats") == nil {
		t.Error("others are not counted")
	}
	for i := range 20_000 {
		b.Broadcast("", fmt.Sprint("b", i))
		b.Session("", fmt.Sprint("r", i))()
	}
	if b.Broadcast("", "new") != nil || b.Broadcast("", "b1") == nil {
		t.Error("the book has no limit, or forgets whom it knows")
	}
}

// TestUnknown: what is not there is not found.
func TestUnknown(t *testing.T) {
	run(t, stats.Config{Node: "n"}, func(r *rig) {
		for _, name := range [][2]string{
			{".stats/node", "publisher.json"}, {".stats/node/n", "other.json"}, {".stats/node/n", "publisher"}, {".stats/x/node/n", "publisher.json"}, {"", ""},
		} {
			if _, err := r.pub.TrackInfo(t.Context(), name[0], name[1]); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%v: %v", name, err)
			}
			if _, err := r.pub.Subscribe(t.Context(), session.SubscribeRequest{Path: name[0], Track: name[1]}, nil); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%v: %v", name, err)
			}
		}
	})
}

// TestCancel: who unsubscribes gets nothing more.
func TestCancel(t *testing.T) {
	run(t, stats.Config{}, func(r *rig) {
		w := r.watch(".stats/node", "publisher.json")
		w.next()
		w.sub.Cancel()
		w.sub.Cancel()
		<-w.sub.Done()
		time.Sleep(3 * time.Second)
		if w.next() != nil || !errors.Is(w.sub.Err(), media.ErrCancelled) {
			t.Errorf("more came, or %v", w.sub.Err())
		}
	})
}
