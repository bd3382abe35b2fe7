package lite

import (
	"errors"
	"io"

	"github.com/moqmesh/moqmesh/media"
)

// take returns the next group to write: one newer than all before, or backlog as far as its limit allows. Once that is
// reached the reader is asked only if it has woken us, since there is nothing newer otherwise, and keeps the backlog.
// Without a group, take ends the subscription if the track has ended.
func (sv *serving) take(woken bool) *media.GroupReader {
	sv.pull.Lock()
	full := sv.count(0) >= sv.s.cfg.Limits.Backlog
	if full && !woken {
		sv.pull.Unlock()
		return nil
	}
	g, err := sv.takeLocked(full)
	sv.pull.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		sv.end(ending{finish: true, track: true})
	case err != nil:
		sv.end(ending{code: StreamCode(err)})
	}
	return g
}

// takeLocked asks the reader once, if the limit is reached for something newer alone. It is called with pull held.
func (sv *serving) takeLocked(full bool) (g *media.GroupReader, err error) {
	if full && sv.begun {
		g, err = sv.media.NextAbove(sv.newest)
	} else {
		g, err = sv.media.Next()
	}
	if g == nil {
		return nil, err
	}
	if !sv.begun || g.Sequence() > sv.newest {
		sv.newest, sv.begun = g.Sequence(), true
	}
	sv.count(1)
	return g, nil
}

// count changes the number of groups that are taken up and not yet ended, and returns it.
func (sv *serving) count(n int) int {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.active += n
	return sv.active
}
