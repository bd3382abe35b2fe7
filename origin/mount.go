package origin

import "github.com/moqmesh/moqmesh/paths"

// spot is a place in the live set that a session sees.
type spot struct {
	root    string       // absolute
	through *paths.Mount // nil = not through a mount
	under   string       // what root is called there, relative to what was asked for
}

// spots are the places that hold what the session sees below root: the one below its own root, without what is mounted,
// and the targets of the mounts below that. What lies at or below a mount is in one place only, or in none where it would
// be too deep. Mounts are hidden like any name (R30).
func (s *Session) spots(root string) []spot {
	if m, mounted := s.peer.Mounts.Over(root); mounted {
		if at, ok := m.Resolve(root); ok {
			return []spot{{root: at, through: &m}}
		}
		return nil
	}
	out := []spot{{root: root}}
	for i := range s.peer.Mounts {
		m := &s.peer.Mounts[i]
		if under, ok := paths.Suffix(root, m.At); ok && (s.peer.Hidden || !paths.Hidden(under)) {
			out = append(out, spot{root: m.Target, through: m, under: under})
		}
	}
	return out
}

// ear is where a consumer's news go: into a feed, with what the consumer's root is called in it.
type ear struct {
	*feed
	under string
}
