package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

// apply plays the peer: it demands that every update fits what the peer knows.
func apply(t *rapid.T, peer map[string]route.Cost, updates []session.Update) {
	for _, u := range updates {
		_, known := peer[u.Name]
		if known == (u.Kind == session.UpdateNew) {
			t.Fatalf("update %+v, known %v", u, known)
		}
		if len(u.Hops) > 0 {
			t.Fatalf("a publisher has no hops: %+v", u)
		}
		if u.Kind == session.UpdateGone {
			delete(peer, u.Name)
		} else {
			peer[u.Name] = u.Cost
		}
	}
}

// TestFeedFollows changes broadcasts at random while two feeds are read now and then; what each has told must end up
// as what is announced below its prefix.
func TestFeedFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLocal(1, media.NewCache(media.CacheConfig{}))
		changes := rapid.Bool().Draw(t, "changes")
		type reader struct {
			feed   *feed
			prefix string
			peer   map[string]route.Cost
		}
		var readers []*reader
		actual := map[string]route.Cost{}
		broadcasts := map[string]*Broadcast{}
		read := func(r *reader) {
			updates, _, err := r.feed.take()
			if err != nil {
				t.Fatal(err)
			}
			apply(t, r.peer, updates)
		}
		open := func(prefix string) {
			f, err := l.listen(prefix, 0, changes)
			if err != nil {
				t.Fatal(err)
			}
			readers = append(readers, &reader{f, prefix, map[string]route.Cost{}})
		}
		open("")
		names := []string{"a", "a/b", "a/b/c", "ab", "d"}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				b := broadcasts[name]
				if b == nil {
					b, _ = l.publish(name)
					broadcasts[name] = b
				}
				cost := route.Cost{Warm: rapid.Uint64Range(0, 2).Draw(t, "cost")}
				if err := b.Announce(cost); err != nil {
					t.Fatal(err)
				}
				actual[name] = cost
			case 2:
				if b := broadcasts[name]; b != nil {
					b.Withdraw()
					delete(actual, name)
				}
			case 3:
				if b := broadcasts[name]; b != nil {
					b.Close()
					delete(actual, name)
					delete(broadcasts, name)
				}
			case 4:
				read(rapid.SampledFrom(readers).Draw(t, "reader"))
			case 5:
				open(rapid.SampledFrom([]string{"a", "a/b", "nothing"}).Draw(t, "prefix"))
			}
		}
		for _, r := range readers {
			read(r)
			want := map[string]route.Cost{}
			for name, cost := range actual {
				if rest, ok := below(r.prefix, name); ok {
					want[rest] = cost
				}
			}
			if !changes {
				for name := range want { // prices stay as first told
					want[name] = r.peer[name]
				}
			}
			if !maps.Equal(want, r.peer) {
				t.Fatalf("below %q the peer knows %v, want %v", r.prefix, r.peer, want)
			}
			if len(r.feed.pending)+len(r.feed.order) > 0 {
				t.Fatalf("left over: %v %v", r.feed.pending, r.feed.order)
			}
		}
	})
}

// below is the obvious form of paths.Suffix.
func below(prefix, path string) (string, bool) {
	switch {
	case prefix == "":
		return path, true
	case prefix == path:
		return "", true
	case len(path) > len(prefix) && path[:len(prefix)+1] == prefix+"/":
		return path[len(prefix)+1:], true
	}
	return "", false
}

// TestFeedBounded changes few names often: the feed holds an entry per name, not per change.
func TestFeedBounded(t *testing.T) {
	l := newLocal(1, media.NewCache(media.CacheConfig{}))
	f, err := l.listen("", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		b, err := l.publish(fmt.Sprint(i % 3))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Announce(route.Cost{Warm: uint64(i)}); err != nil {
			t.Fatal(err)
		}
		b.Close()
	}
	if len(f.pending) != 3 || len(f.order) != 3 {
		t.Errorf("%d and %d entries for 3 names", len(f.pending), len(f.order))
	}
	if updates, err := f.Next(context.Background()); err != nil || len(updates) != 0 {
		t.Errorf("first batch %v, %v: all came and went", updates, err)
	}
}

// TestFeedExcludes gives a peer that we would reach ourselves through nothing.
func TestFeedExcludes(t *testing.T) {
	l := newLocal(7, media.NewCache(media.CacheConfig{}))
	b, err := l.publish("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Announce(route.Cost{}); err != nil {
		t.Fatal(err)
	}
	for exclude, want := range map[route.Hop]int{7: 0, 8: 1} {
		f, err := l.listen("", exclude, true)
		if err != nil {
			t.Fatal(err)
		}
		if updates, err := f.Next(context.Background()); err != nil || len(updates) != want {
			t.Errorf("excluding %d: %v, %v", exclude, updates, err)
		}
	}
}

// TestFeedLimit opens one more announce stream than a peer may.
func TestFeedLimit(t *testing.T) {
	l := newLocal(1, media.NewCache(media.CacheConfig{}))
	var last *feed
	for range maxFeeds {
		f, err := l.listen("", 0, true)
		if err != nil {
			t.Fatal(err)
		}
		last = f
	}
	if _, err := l.listen("", 0, true); !errors.Is(err, ErrNoCapacity) {
		t.Errorf("one too many: %v", err)
	}
	last.Close()
	if _, err := l.listen("", 0, true); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	if _, err := last.Next(context.Background()); err == nil {
		t.Error("a closed feed goes on")
	}
}
