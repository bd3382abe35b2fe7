package sim

import (
	"context"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/route"
)

// Announcer publishes many broadcasts without tracks.
type Announcer struct {
	*machine
	names []string
}

// Announce starts an announcer.
func (c *Cluster) Announce(access Access, names []string) (*Announcer, error) {
	a := &Announcer{names: names}
	var err error
	a.machine, err = c.start("announcer", access, a.run)
	if err == nil {
		c.announcers = append(c.announcers, a)
	}
	return a, err
}

// Stop withdraws all names and ends the session.
func (a *Announcer) Stop() { a.stop() }

func (a *Announcer) run(ctx context.Context, m *machine) {
	m.sessions(ctx, client.Config{Role: client.RolePublisher}, func(ctx context.Context, cl *client.Client) {
		var all []*client.Broadcast
		for _, name := range a.names {
			b, err := cl.Publish(name)
			if err == nil {
				err = b.Announce(route.Cost{})
			}
			if err != nil {
				a.of.Logf("%s: %v", name, err)
				return
			}
			all = append(all, b)
		}
		select {
		case <-ctx.Done():
		case <-cl.Done():
		}
		for _, b := range all {
			b.Withdraw()
		}
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		sleep(limit, leaving/2) // the withdrawals are on their way
		_ = cl.Shutdown(limit)
	})
}
