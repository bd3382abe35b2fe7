package lite

import "github.com/moqmesh/moqmesh/session"

// count writes the counters of one direction: those of the session and, where somebody wants to know, those of the
// broadcast.
type count struct {
	all *session.Traffic
	own *session.Traffic // nil = nobody asks
}

// sent counts what we publish below a path.
func (s *Session) sent(path string) count {
	c := count{all: &s.counters.Sent}
	if b := s.counters.Broadcast(path); b != nil {
		c.own = &b.Sent
	}
	return c
}

// received counts what we subscribe to below a path.
func (s *Session) received(path string) count {
	c := count{all: &s.counters.Received}
	if b := s.counters.Broadcast(path); b != nil {
		c.own = &b.Received
	}
	return c
}

func (c count) each(f func(t *session.Traffic)) {
	f(c.all)
	if c.own != nil {
		f(c.own)
	}
}

// frames is the one on the hot path.
func (c count) frames(n, bytes int) {
	c.all.Frames.Add(uint64(n))
	c.all.Bytes.Add(uint64(bytes))
	if c.own != nil {
		c.own.Frames.Add(uint64(n))
		c.own.Bytes.Add(uint64(bytes))
	}
}

func (c count) group() {
	c.each(func(t *session.Traffic) { t.Groups.Add(1) })
}

func (c count) datagram(bytes int) {
	c.each(func(t *session.Traffic) {
		t.Datagrams.Add(1)
		t.Bytes.Add(uint64(bytes))
	})
}

// stale counts groups that were given up, with the frames and payload bytes that were lost.
func (c count) stale(groups, frames, bytes int) {
	c.each(func(t *session.Traffic) {
		t.StaleGroups.Add(uint64(groups))
		t.StaleFrames.Add(uint64(frames))
		t.StaleBytes.Add(uint64(bytes))
	})
}

// staleDatagrams counts datagrams that came too late, or that newer ones replaced before they could be sent.
func (c count) staleDatagrams(n, bytes uint64) {
	c.each(func(t *session.Traffic) {
		t.StaleDatagrams.Add(n)
		t.StaleBytes.Add(bytes)
	})
}

func (c count) fetch() {
	c.each(func(t *session.Traffic) { t.Fetches.Add(1) })
}

// announced and withdrawn count a name as long as path.
func (c count) announced(path string) {
	c.each(func(t *session.Traffic) {
		t.AnnouncesStarted.Add(1)
		t.AnnouncedBytes.Add(uint64(len(path)))
	})
}

func (c count) withdrawn(path string) {
	c.each(func(t *session.Traffic) {
		t.AnnouncesEnded.Add(1)
		t.AnnouncedBytes.Add(uint64(len(path)))
	})
}

func (c count) opened(viewer bool) {
	c.each(func(t *session.Traffic) {
		t.SubscriptionsOpened.Add(1)
		if viewer {
			t.ViewersOpened.Add(1)
		}
	})
}

func (c count) closed(viewer bool) {
	c.each(func(t *session.Traffic) {
		t.SubscriptionsClosed.Add(1)
		if viewer {
			t.ViewersClosed.Add(1)
		}
	})
}
