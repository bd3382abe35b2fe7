package stats

import (
	"strings"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/session"
)

// maxEntries bounds how many broadcasts, and how many roots of sessions, are counted apart: peers choose their names.
const maxEntries = 10_000

// Book keeps totals by tier and broadcast, and by tier and root of sessions. Its methods may be called concurrently.
type Book struct {
	prefix string // traffic below it is not counted

	mu         sync.Mutex
	broadcasts map[key]*entry
	sessions   map[key]*sessions
}

// key is a path, or the root of a session, on a tier.
type key struct{ tier, path string }

// entry is one broadcast of a tier.
type entry struct {
	session.Broadcast
	seen  uint64    // activity at the last look
	since time.Time // of that activity
}

// sessions are the totals of one root.
type sessions struct {
	Started uint64 `json:"sessions_started"`
	Ended   uint64 `json:"sessions_ended"`
}

// NewBook returns an empty book. prefix is where its content will be published.
func NewBook(prefix string) *Book {
	return &Book{prefix: prefix, broadcasts: make(map[key]*entry), sessions: make(map[key]*sessions)}
}

// Broadcast returns what to count the traffic of a broadcast in; nil = it is not counted, because it is about statistics
// itself or because the book is full. The result may be kept while the broadcast has traffic.
func (b *Book) Broadcast(tier, path string) *session.Broadcast {
	if below(path, b.prefix) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	k := key{tier, path}
	e := b.broadcasts[k]
	if e == nil {
		if len(b.broadcasts) >= maxEntries {
			return nil
		}
		e = new(entry)
		b.broadcasts[k] = e
	}
	return &e.Broadcast
}

// Session counts a session that begins. The function it returns counts its end.
func (b *Book) Session(tier, root string) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := key{tier, root}
	s := b.sessions[k]
	if s == nil {
		if len(b.sessions) >= maxEntries {
			return func() {}
		}
		s = new(sessions)
		b.sessions[k] = s
	}
	s.Started++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		s.Ended++
	}
}

// below reports whether path is prefix or lies below it.
func below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// sweep notes which broadcasts have been active since the last call, and forgets those that are over and were not for
// longer than linger. It returns when each was active last.
func (b *Book) sweep(now time.Time, linger time.Duration) map[string]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]time.Time, len(b.broadcasts))
	for k, e := range b.broadcasts {
		activity, open := e.activity()
		if activity != e.seen || open || e.since.IsZero() {
			e.seen, e.since = activity, now
		}
		if now.Sub(e.since) > linger {
			delete(b.broadcasts, k)
			continue
		}
		if e.since.After(out[k.path]) {
			out[k.path] = e.since
		}
	}
	return out
}

// activity is a number that changes with every event; open tells whether something is going on.
func (e *entry) activity() (n uint64, open bool) {
	for _, t := range []*session.Traffic{&e.Sent, &e.Received} {
		c := totalsOf(t)
		n += c.AnnouncesStarted + c.AnnouncesEnded + c.SubscriptionsStarted + c.SubscriptionsEnded + c.Fetches + c.Frames + c.Groups + c.Datagrams
		open = open || c.AnnouncesStarted != c.AnnouncesEnded || c.SubscriptionsStarted != c.SubscriptionsEnded
	}
	return n, open
}

// totals is one line of publisher.json and subscriber.json.
type totals struct {
	AnnouncesStarted     uint64 `json:"announces_started"`
	AnnouncesEnded       uint64 `json:"announces_ended"`
	AnnouncedBytes       uint64 `json:"announced_bytes"`
	BroadcastsStarted    uint64 `json:"broadcasts_started"`
	BroadcastsEnded      uint64 `json:"broadcasts_ended"`
	SubscriptionsStarted uint64 `json:"subscriptions_started"`
	SubscriptionsEnded   uint64 `json:"subscriptions_ended"`
	Fetches              uint64 `json:"fetches"`
	Bytes                uint64 `json:"bytes"`
	Frames               uint64 `json:"frames"`
	Groups               uint64 `json:"groups"`
	Datagrams            uint64 `json:"datagrams"`
	StaleBytes           uint64 `json:"stale_bytes"`
	StaleFrames          uint64 `json:"stale_frames"`
	StaleGroups          uint64 `json:"stale_groups"`
	StaleDatagrams       uint64 `json:"stale_datagrams"`
}

func totalsOf(t *session.Traffic) totals {
	return totals{
		AnnouncesStarted: t.AnnouncesStarted.Load(), AnnouncesEnded: t.AnnouncesEnded.Load(), AnnouncedBytes: t.AnnouncedBytes.Load(),
		BroadcastsStarted: t.ViewersOpened.Load(), BroadcastsEnded: t.ViewersClosed.Load(),
		SubscriptionsStarted: t.SubscriptionsOpened.Load(), SubscriptionsEnded: t.SubscriptionsClosed.Load(),
		Fetches: t.Fetches.Load(), Bytes: t.Bytes.Load(), Frames: t.Frames.Load(), Groups: t.Groups.Load(), Datagrams: t.Datagrams.Load(),
		StaleBytes: t.StaleBytes.Load(), StaleFrames: t.StaleFrames.Load(), StaleGroups: t.StaleGroups.Load(),
		StaleDatagrams: t.StaleDatagrams.Load(),
	}
}

// traffic returns one direction of the broadcasts of a tier for which in says so; those that saw nothing are left out.
func (b *Book) traffic(tier string, sent bool, in func(path string) bool) map[string]totals {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]totals)
	for k, e := range b.broadcasts {
		if k.tier != tier || !in(k.path) {
			continue
		}
		t := &e.Received
		if sent {
			t = &e.Sent
		}
		if c := totalsOf(t); c != (totals{}) {
			out[k.path] = c
		}
	}
	return out
}

// roots returns the sessions of a tier by root.
func (b *Book) roots(tier string, in func(path string) bool) map[string]sessions {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]sessions)
	for k, s := range b.sessions {
		if k.tier == tier && in(k.path) {
			out[k.path] = *s
		}
	}
	return out
}
