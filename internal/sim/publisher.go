package sim

import (
	"context"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/route"
)

// PublisherConfig describes a publisher.
type PublisherConfig struct {
	Content
	Access
	Hop  route.Hop // 0 = random
	Cost route.Cost
	// Backfill is how many whole groups of the past it has when it begins, beside the current one.
	Backfill int
}

// Publisher writes one Content as long as it runs, over as many sessions as that takes.
type Publisher struct {
	*machine
	cfg      PublisherConfig
	costs    chan route.Cost
	withdraw chan struct{}
}

// Publish starts a publisher.
func (c *Cluster) Publish(cfg PublisherConfig) (*Publisher, error) {
	p := &Publisher{cfg: cfg, costs: make(chan route.Cost, 1), withdraw: make(chan struct{}, 1)}
	var err error
	p.machine, err = c.start("publisher of "+cfg.Name, cfg.Access, p.run)
	if err == nil {
		c.publishers = append(c.publishers, p)
	}
	return p, err
}

// Stop ends the publisher cleanly, and returns when it has ended: what it has sent arrives, then its broadcast and its
// session end.
func (p *Publisher) Stop() { p.stop() }

// Crash ends the publisher without a word.
func (p *Publisher) Crash() {
	p.Isolate()
	p.Leave()
}

// Withdraw takes the announcement back; whoever is subscribed goes on getting frames.
func (p *Publisher) Withdraw() { p.withdraw <- struct{}{} }

// Reprice changes the cost at which the broadcast is announced, now or when there is a session again.
func (p *Publisher) Reprice(cost route.Cost) {
	select {
	case <-p.costs: // nobody has heard of that one
	default:
	}
	p.costs <- cost
}

func (p *Publisher) run(ctx context.Context, m *machine) {
	cfg := client.Config{Hop: p.cfg.Hop, Role: client.RolePublisher}
	m.sessions(ctx, cfg, func(ctx context.Context, cl *client.Client) {
		if err := p.serve(ctx, cl); err != nil {
			p.of.Logf("%s: %v", m.name, err)
		}
	})
}

// serve publishes on one session until it or ctx ends.
func (p *Publisher) serve(ctx context.Context, cl *client.Client) error {
	b, err := cl.Publish(p.cfg.Name)
	if err != nil {
		return err
	}
	track, err := b.Track(p.cfg.Track, p.cfg.Info)
	if err != nil {
		return err
	}
	w := &writer{content: &p.cfg.Content, track: track}
	now := p.cfg.first(time.Now())
	per := int64(p.cfg.PerGroup)
	w.next = max(0, (now/per-int64(p.cfg.Backfill))*per) // the current group too, from its beginning
	if err := w.until(now); err != nil {
		return err
	}
	if err := b.Announce(p.cfg.Cost); err != nil {
		return err
	}
	for {
		timer := time.NewTimer(time.Until(w.due()))
		select {
		case <-timer.C:
			if err := w.until(w.next + 1); err != nil {
				return err
			}
		case cost := <-p.costs:
			p.cfg.Cost = cost
			if err := b.Announce(cost); err != nil {
				return err
			}
		case <-p.withdraw:
			b.Withdraw()
		case <-cl.Done():
			timer.Stop()
			return nil
		case <-cl.GoingAway():
			timer.Stop()
			return p.leave(b, cl)
		case <-ctx.Done():
			timer.Stop()
			return p.leave(b, cl)
		}
	}
}

// leaving is how long a publisher waits for its subscribers to get what they lack.
const leaving = 2 * time.Second

func (p *Publisher) leave(b *client.Broadcast, cl *client.Client) error {
	b.Withdraw()
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	_ = cl.Shutdown(ctx) // who is too slow loses the rest
	return nil
}

// writer writes the frames of a content in their order.
type writer struct {
	content *Content
	track   *client.TrackWriter
	next    int64 // number of the next frame
	group   *client.GroupWriter
	payload []byte
}

func (w *writer) due() time.Time {
	at := w.content.position(w.next)
	return w.content.due(at.Group, at.Frame)
}

// until writes the frames below n.
func (w *writer) until(n int64) error {
	for ; w.next < n; w.next++ {
		at := w.content.position(w.next)
		if at.Frame == 0 {
			g, err := w.track.Group(at.Group)
			if err != nil {
				return err
			}
			w.group = g
		}
		w.payload = w.content.payload(w.payload[:0], at.Group, at.Frame)
		if err := w.group.WriteFrame(w.content.timestamp(at.Group, at.Frame), w.payload); err != nil {
			return err
		}
		if at.Frame == uint64(w.content.PerGroup)-1 {
			w.group.Finish()
		}
	}
	return nil
}
