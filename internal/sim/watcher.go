package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/client"
)

// Watcher follows all announcements at one relay.
type Watcher struct {
	*machine

	mu    sync.Mutex
	told  []Told
	names map[string]client.Announcement
}

// Told is one message about announcements.
type Told struct {
	At time.Time
	client.Announcement
}

// Listen starts a watcher.
func (c *Cluster) Listen(access Access) (*Watcher, error) {
	w := &Watcher{names: make(map[string]client.Announcement)}
	var err error
	w.machine, err = c.start("watcher", access, w.run)
	if err == nil {
		c.watchers = append(c.watchers, w)
	}
	return w, err
}

// Stop ends the watcher and its session.
func (w *Watcher) Stop() { w.stop() }

func (w *Watcher) run(ctx context.Context, m *machine) {
	m.sessions(ctx, client.Config{Role: client.RoleSubscriber}, func(ctx context.Context, cl *client.Client) {
		list, err := cl.Announced(ctx, "")
		if err != nil {
			return
		}
		defer list.Close()
		for {
			a, err := list.Next(ctx)
			if err != nil {
				break
			}
			w.note(a)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		clear(w.names) // what a session has said ends with it
	})
}

func (w *Watcher) note(a client.Announcement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, Told{time.Now(), a})
	if a.Active {
		w.names[a.Path] = a
	} else {
		delete(w.names, a.Path)
	}
}

// Told returns what was said about a name since a time.
func (w *Watcher) Told(name string, since time.Time) []Told {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Told
	for _, t := range w.told {
		if t.Path == name && !t.At.Before(since) {
			out = append(out, t)
		}
	}
	return out
}

// Names returns the names that are announced now, in order.
func (w *Watcher) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.names))
	for n := range w.names {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Announced returns what is announced of a name now.
func (w *Watcher) Announced(name string) (client.Announcement, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.names[name]
	return a, ok
}
