package origin

import "time"

// behindEvery is how often a track may say that a copy of it is behind.
const behindEvery = time.Minute

// sayBehind tells of a copy that brings nothing but groups that readers are past. A publisher that starts over with its
// numbers under the old name does that, and viewers see nothing of it until the numbers have caught up (F2).
func (t *track) sayBehind(id copyID) {
	u := t.core.byID(id)
	if u == nil || !t.behind.IsZero() && time.Since(t.behind) < behindEvery {
		return
	}
	state := u.media.State()
	if !state.Behind {
		return
	}
	t.behind = time.Now()
	newest, _ := t.core.track.Newest()
	t.o.log.Warn("groups are older than what viewers have: has the publisher started over with its numbers under the old name?",
		"path", t.key.path, "track", t.name, "session", u.src.via.peer.ID, "group", state.Past, "delivered", newest)
}
