package media

// TrackStats is a snapshot of what is cached of a track, fetched groups included.
type TrackStats struct {
	Groups int
	Bytes  int64 // payload plus a fixed overhead per group and frame
}

// Stats counts what is cached. It takes time in proportion to the number of groups.
func (t *Track) Stats() TrackStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	var s TrackStats
	for g := t.uses.head; g != nil; g = g.entry.next {
		s.Groups++
		s.Bytes += int64(g.weight()) + groupOverhead
	}
	return s
}
