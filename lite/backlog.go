package lite

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/moqmesh/moqmesh/media"
)

// take returns the next group to write: one newer than all before, or backlog as far as its limit allows. Once that is
// reached the reader is asked only if it has woken us, since there is nothing newer otherwise. Without a group, take ends
// the subscription if the track has ended.
func (sv *serving) take(woken bool) *media.GroupReader {
	sv.pull.Lock()
	if !woken && sv.count(0) >= sv.s.cfg.Limits.Backlog {
		sv.pull.Unlock()
		return nil
	}
	g, err := sv.takeLocked()
	sv.pull.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		sv.end(ending{finish: true, track: true})
	case err != nil:
		sv.end(ending{code: StreamCode(err)})
	}
	return g
}

// takeLocked asks the reader once. It is called with pull held.
func (sv *serving) takeLocked() (*media.GroupReader, error) {
	g, err := sv.media.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if g != nil && (!sv.begun || g.Sequence() > sv.newest) {
		sv.newest, sv.begun = g.Sequence(), true
		sv.count(1)
		return g, nil
	}
	if g != nil {
		sv.hold(g)
	}
	for len(sv.held) > 0 && sv.count(0) < sv.s.cfg.Limits.Backlog {
		last := len(sv.held) - 1
		g := sv.held[last]
		sv.held = sv.held[:last]
		if !g.TooOld() {
			sv.count(1)
			return g, nil
		}
		sv.stale(g, media.Batch{})
		g.Close()
	}
	if len(sv.held) > 0 {
		err = nil
	}
	return nil, err
}

// hold keeps a group of the backlog for later. If there are too many the oldest is given up.
func (sv *serving) hold(g *media.GroupReader) {
	i, _ := slices.BinarySearchFunc(sv.held, g.Sequence(), func(h *media.GroupReader, seq uint64) int {
		return cmp.Compare(h.Sequence(), seq)
	})
	sv.held = slices.Insert(sv.held, i, g)
	if len(sv.held) > sv.s.cfg.Limits.Groups {
		sv.stale(sv.held[0], media.Batch{})
		sv.held[0].Close()
		sv.held = slices.Delete(sv.held, 0, 1)
	}
}

// count changes the number of groups that are taken up and not yet ended, and returns it.
func (sv *serving) count(n int) int {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.active += n
	return sv.active
}
