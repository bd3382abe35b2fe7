package stats

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// Config of a Publisher. Prefix and Interval are required.
type Config struct {
	Prefix string // normalized
	Node   string // normalized; empty = the broadcasts do not name us
	// Depth is how many leading segments of the counted paths make a group with a broadcast of its own; 0 = one for all.
	Depth    int
	Interval time.Duration
	// Linger is how long after its last traffic a broadcast is counted, and a group announced.
	Linger time.Duration
	Logger *slog.Logger // nil discards
}

// Host is the part of a session.Handler that a Publisher calls.
type Host interface {
	Announce(id session.AdvertID, ad session.Advertisement) error
	Withdraw(id session.AdvertID, explicit bool)
}

// Publisher serves the content of a book. It implements session.Upstream.
type Publisher struct {
	cfg  Config
	book *Book

	mu     sync.Mutex
	feeds  map[*feed]struct{}
	groups map[string]session.AdvertID // announced
	ids    session.AdvertID
	last   uint64 // group
}

var _ session.Upstream = (*Publisher)(nil)

// New returns a Publisher. It serves at once and announces from Run on.
func New(cfg Config, book *Book) *Publisher {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Publisher{cfg: cfg, book: book, feeds: make(map[*feed]struct{}), groups: make(map[string]session.AdvertID)}
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context, host Host) {
	tick := time.NewTicker(p.cfg.Interval)
	defer tick.Stop()
	for {
		now := time.Now()
		p.announce(host, p.book.sweep(now, p.cfg.Linger))
		p.publish(now)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// name is the broadcast of a group.
func (p *Publisher) name(group string) string {
	parts := []string{p.cfg.Prefix, group, "node", p.cfg.Node}
	return strings.Trim(strings.ReplaceAll(strings.Join(parts, "/"), "//", "/"), "/")
}

// group is the group of a counted path.
func (p *Publisher) group(path string) string {
	segments := strings.Split(path, "/")
	return strings.Join(segments[:min(p.cfg.Depth, len(segments))], "/")
}

// announce makes known what there is to see now.
func (p *Publisher) announce(host Host, active map[string]time.Time) {
	want := map[string]bool{}
	if p.cfg.Depth == 0 {
		want[""] = true
	} else {
		for path := range active {
			want[p.group(path)] = true
		}
	}
	p.mu.Lock()
	var begun []string
	var ended []session.AdvertID
	for g, id := range p.groups {
		if !want[g] {
			ended = append(ended, id)
			delete(p.groups, g)
		}
	}
	for g := range want {
		if _, there := p.groups[g]; !there {
			begun = append(begun, g)
		}
	}
	p.mu.Unlock()
	for _, id := range ended {
		host.Withdraw(id, true)
	}
	for _, g := range begun {
		p.ids++ // of this goroutine
		if err := host.Announce(p.ids, session.Advertisement{Prefix: p.name(g)}); err != nil {
			p.cfg.Logger.Warn("statistics are not announced", "err", err)
			continue
		}
		p.mu.Lock()
		p.groups[g] = p.ids
		p.mu.Unlock()
	}
}

// publish writes the next group of every track that is read.
func (p *Publisher) publish(now time.Time) {
	p.mu.Lock()
	feeds := make([]*feed, 0, len(p.feeds))
	for f := range p.feeds {
		feeds = append(feeds, f)
	}
	seq := p.next(now)
	p.mu.Unlock()
	for _, f := range feeds {
		if err := f.write(seq, now, p.render(f.in, f.kind)); err != nil {
			p.cfg.Logger.Debug("statistics not written", "track", f.kind.name, "err", err)
		}
	}
}

// next is the number of a group that begins now: microseconds, so that a restart goes on upwards. p.mu is held.
func (p *Publisher) next(now time.Time) uint64 {
	p.last = max(p.last+1, uint64(now.UnixMicro()))
	return p.last
}

// kind is what a track holds.
type kind struct {
	name, tier string
	packed     bool
}

// parseTrack reads the name of a track: [<tier>/]publisher.json, subscriber.json or sessions.json, with .z for the
// compressed form.
func parseTrack(track string) (kind, bool) {
	k := kind{name: track}
	if at := strings.LastIndexByte(track, '/'); at >= 0 {
		k.tier, k.name = track[:at], track[at+1:]
	}
	k.name, k.packed = strings.CutSuffix(k.name, ".z")
	switch k.name {
	case "publisher.json", "subscriber.json", "sessions.json":
		return k, true
	}
	return kind{}, false
}

// scope finds which paths a broadcast is about.
func (p *Publisher) scope(path string) (in func(string) bool, ok bool) {
	if p.cfg.Depth == 0 {
		return func(string) bool { return true }, path == p.name("")
	}
	rest, found := strings.CutPrefix(path, p.cfg.Prefix+"/")
	if !found {
		return nil, false
	}
	group, found := strings.CutSuffix(rest, strings.TrimSuffix("/node/"+p.cfg.Node, "/"))
	if !found || group == "" {
		return nil, false
	}
	return func(counted string) bool { return p.group(counted) == group }, true
}

// render is the content of a track now.
func (p *Publisher) render(in func(string) bool, k kind) []byte {
	var v any
	switch k.name {
	case "publisher.json":
		v = p.book.traffic(k.tier, true, in)
	case "subscriber.json":
		v = p.book.traffic(k.tier, false, in)
	default:
		v = p.book.roots(k.tier, in)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return []byte("{}") // maps of numbers always can
	}
	if !k.packed {
		return text
	}
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // the level is valid
	_, _ = w.Write(text)                                  // into memory
	_ = w.Close()
	return b.Bytes()
}

// find says what a track of a broadcast is.
func (p *Publisher) find(path, track string) (in func(string) bool, k kind, err error) {
	in, ok := p.scope(path)
	if ok {
		k, ok = parseTrack(track)
	}
	if !ok {
		return nil, kind{}, session.ErrNotFound
	}
	return in, k, nil
}

// TrackInfo implements session.Upstream.
func (p *Publisher) TrackInfo(_ context.Context, path, track string) (media.Info, error) {
	_, _, err := p.find(path, track)
	return media.DefaultInfo(), err
}

// Subscribe implements session.Upstream. The first group comes at once.
func (p *Publisher) Subscribe(_ context.Context, req session.SubscribeRequest, copy *media.Copy) (session.Subscription, error) {
	in, k, err := p.find(req.Path, req.Track)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	f := &feed{of: p, in: in, kind: k, copy: copy, done: make(chan struct{})}
	p.mu.Lock()
	seq := p.next(now)
	p.feeds[f] = struct{}{}
	p.mu.Unlock()
	copy.Start(seq)
	return f, f.write(seq, now, p.render(in, k))
}

// Fetch implements session.Upstream: nothing is kept, so there is nothing to fetch.
func (p *Publisher) Fetch(context.Context, session.FetchRequest, *media.GroupWriter, func()) error {
	return session.ErrNotFound
}

// Caps implements session.Upstream.
func (p *Publisher) Caps() session.Caps {
	return session.Caps{TrackInfo: true, Update: true, Fetch: true, FrameBounds: true, Floor: true, Range: true, Timestamps: true}
}

// feed is one subscription.
type feed struct {
	of   *Publisher
	in   func(string) bool
	kind kind
	copy *media.Copy
	done chan struct{}
	once sync.Once
}

func (f *feed) write(seq uint64, now time.Time, payload []byte) error {
	w, err := f.copy.Group(seq, 0)
	if err != nil {
		return err
	}
	if err := w.WriteFrame(uint64(now.UnixMilli()), payload); err != nil {
		w.Abort(err)
		return err
	}
	w.Finish()
	return nil
}

// Update implements session.Subscription: everybody gets the same.
func (f *feed) Update(media.Subscription) error { return nil }

// Cancel implements session.Subscription.
func (f *feed) Cancel() {
	f.once.Do(func() {
		f.of.mu.Lock()
		delete(f.of.feeds, f)
		f.of.mu.Unlock()
		close(f.done)
	})
}

// Done implements session.Subscription.
func (f *feed) Done() <-chan struct{} { return f.done }

// Err implements session.Subscription.
func (f *feed) Err() error { return media.ErrCancelled }
