package media

// ledger is what copies delivered of a track so far (the set D of rule F27), by group. It outlives the cached groups.
// Pure.
type ledger struct {
	seen      spans // groups of which a copy sent anything
	complete  spans
	low, high uint64
	any       bool
}

// begin notes a group.
func (l *ledger) begin(seq uint64) {
	if !l.any {
		l.low, l.high, l.any = seq, seq, true
	}
	l.low, l.high = min(l.low, seq), max(l.high, seq)
	l.seen.add(seq, seq)
}

// finish notes that a group is complete.
func (l *ledger) finish(seq uint64) {
	l.begin(seq)
	l.complete.add(seq, seq)
}

// gaps calls yield with each range of numbers between the lowest and the highest group delivered that has no complete
// group, lowest first, until it returns false.
func (l *ledger) gaps(yield func(span) bool) {
	if !l.any {
		return
	}
	for lo := l.low; ; {
		from, ok := l.complete.missing(lo)
		if !ok || from > l.high {
			return
		}
		next, more := l.complete.next(from)
		if !more || next > l.high {
			yield(span{from, l.high})
			return
		}
		if !yield(span{from, next - 1}) {
			return
		}
		lo = next
	}
}
