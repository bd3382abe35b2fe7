package relay

import (
	"fmt"
	"time"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/stats"
)

// Stats says whether and how the relay publishes its own totals as broadcasts (config 7).
type Stats struct {
	Enabled  bool
	Prefix   string        // such as ".stats"; required
	Node     string        // our name in them; may be empty
	Depth    int           // leading segments of paths that make a group with a broadcast of its own; 0 = one for all
	Interval time.Duration // required
	Linger   time.Duration
}

// startStats begins to count by broadcast and to publish that, if it is enabled.
func (r *Relay) startStats() error {
	s := r.cfg.Stats
	if !s.Enabled {
		return nil
	}
	own, err := paths.ParseSet(s.Prefix + "/**")
	if err != nil {
		return fmt.Errorf("stats.prefix: %w", err)
	}
	r.book = stats.NewBook(s.Prefix)
	pub := stats.New(stats.Config{
		Prefix: s.Prefix, Node: s.Node, Depth: s.Depth, Interval: s.Interval, Linger: s.Linger, Logger: r.log,
	}, r.book)
	h := r.origin.Attach(origin.Peer{ID: r.ids.Add(1), Wire: route.WireLocal, Source: route.SourceLocal, Publish: own}, pub)
	r.wg.Go(func() {
		pub.Run(r.life, h)
		h.Close(nil)
	})
	return nil
}

// countBroadcasts lets a session be counted by broadcast, below its root. It is called before the session runs; the
// function it returns counts its end.
func (r *Relay) countBroadcasts(sess *lite.Session, l *live, root string) (end func()) {
	if r.book == nil {
		return func() {}
	}
	sess.Counters().ByBroadcast = func(path string) *session.Broadcast {
		return r.book.Broadcast(r.sessions.tierOf(l), paths.Join(root, path))
	}
	return r.book.Session(r.sessions.tierOf(l), root)
}
