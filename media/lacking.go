package media

// Lacking returns where a new copy starts (F27): the first frame that some reader lacks between the lowest and the
// newest group delivered, else the group after the newest. After a time without readers, when all is complete, it is
// the end of the newest cached group, so that a source that is still there answers at once (F16). Nil means that
// nothing was delivered yet: the aggregate is asked as it is. It is never below the aggregate's start. Copy.Ask
// includes it.
func (t *Track) Lacking(agg Subscription) *Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacking(agg)
}

func (t *Track) lacking(agg Subscription) *Position {
	newest := t.index.newest()
	if !t.ledger.any || t.dormant && newest == nil {
		return nil
	}
	pos, ok := t.firstWanted()
	switch {
	case ok:
	case t.dormant && newest.seq == t.ledger.high && newest.complete:
		pos = Position{newest.seq, newest.splice.next}
	default:
		pos = Position{t.ledger.high + 1, 0}
	}
	if agg.Start != nil && pos.Before(*agg.Start) {
		pos = *agg.Start
	}
	return &pos
}

// firstWanted looks through the groups that are not complete, lowest first. The numbers between two cached groups share
// their age, so that it takes one step per cached group and gap, and per reader only where the age still allows it.
func (t *Track) firstWanted() (pos Position, ok bool) {
	var patience uint64
	for _, r := range t.readers {
		patience = max(patience, r.budget)
	}
	t.ledger.gaps(func(gap span) bool {
		for lo := gap.lo; lo <= gap.hi && !ok; {
			hi := gap.hi
			above := t.index.search(lo)
			if above < len(t.index.g) && t.index.g[above].seq == lo {
				pos, ok = t.wantedOpen(t.index.g[above])
				lo++
				continue
			}
			if above < len(t.index.g) {
				hi = min(hi, t.index.g[above].seq-1)
			}
			if t.bounded > 0 || !t.index.tooOldAt(above, everything, patience) {
				pos, ok = t.wantedAbsent(lo, hi)
			}
			lo = hi + 1
		}
		return !ok
	})
	return pos, ok
}

// wantedOpen returns the next frame of a cached group if a reader wants it: holds the group, or may still get it.
func (t *Track) wantedOpen(g *group) (Position, bool) {
	if g.complete {
		return Position{}, false
	}
	for r := t.held; r != nil; r = r.next {
		if r.g == g && r.reader.view().covers(g.seq) && g.splice.next < r.end() && !r.tooOld() {
			return Position{g.seq, g.splice.next}, true
		}
	}
	for _, r := range t.readers {
		if r.wants(g.seq, g.splice.next) {
			return Position{g.seq, g.splice.next}, true
		}
	}
	return Position{}, false
}

// wantedAbsent returns the lowest group of lo to hi, none of which is cached, that a reader wants.
func (t *Track) wantedAbsent(lo, hi uint64) (pos Position, ok bool) {
	for _, r := range t.readers {
		seq, some := r.taken.missing(max(lo, r.view().start.Group))
		if !some || seq > hi || ok && seq >= pos.Group || !r.wants(seq, 0) {
			continue
		}
		pos, ok = Position{Group: seq}, true
	}
	return pos, ok
}
