package media

// GroupOverhead and MaxGroups are limits that tests check.
const (
	GroupOverhead = groupOverhead
	FrameOverhead = frameOverhead
	MaxGroups     = maxGroups
	MaxFetches    = maxFetches
)

// Held counts the group readers that the track knows of.
func (t *Track) Held() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for r := t.held; r != nil; r = r.next {
		n++
	}
	return n
}

// Cached lists the cached groups.
func (t *Track) Cached() []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var seqs []uint64
	for _, g := range t.index.g {
		seqs = append(seqs, g.seq)
	}
	return seqs
}
