package media

import "time"

// Aggregate combines what readers want into what their copy asks for (F4, F5): the highest priority, the longest max
// age, clamped to the retention window, the lowest start and the highest end, each compared as a whole; one reader
// without a bound removes it. Readers whose range is empty take no part. False means that there is nothing to ask
// for. Pure; the result shares no memory with subs.
func Aggregate(subs []Subscription, retention time.Duration) (Subscription, bool) {
	var agg Subscription
	any := false
	for _, s := range subs {
		if s.Empty() {
			continue
		}
		if !any {
			agg, any = Subscription{Priority: s.Priority, MaxAge: s.MaxAge, Start: s.Start, End: s.End}, true
			continue
		}
		agg.Priority = max(agg.Priority, s.Priority)
		agg.MaxAge = max(agg.MaxAge, s.MaxAge)
		if agg.Start != nil && (s.Start == nil || s.Start.Before(*agg.Start)) {
			agg.Start = s.Start
		}
		if agg.End != nil && (s.End == nil || agg.End.Before(*s.End)) {
			agg.End = s.End
		}
	}
	agg.MaxAge = max(0, min(agg.MaxAge, retention))
	agg.Start, agg.End = clone(agg.Start), clone(agg.End)
	return agg, any
}

// Empty says whether the range holds no frame: the end is not after the start.
func (s Subscription) Empty() bool {
	if s.End == nil {
		return false
	}
	var start Position
	if s.Start != nil {
		start = *s.Start
	}
	return !start.Before(*s.End)
}

func clone(p *Position) *Position {
	if p == nil {
		return nil
	}
	q := *p
	return &q
}
