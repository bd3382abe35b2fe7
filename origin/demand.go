package origin

import (
	"time"

	"github.com/moqmesh/moqmesh/media"
)

// demand counts the subscriptions of a track by value. Viewers mostly want the same, so that the aggregate of
// thousands costs a handful of comparisons when one of them comes or goes.
type demand struct {
	total int
	wants map[want]int
}

// want is media.Subscription in comparable form.
type want struct {
	priority         uint8
	maxAge           time.Duration
	start, end       media.Position
	hasStart, hasEnd bool
	latest           bool
}

func wantOf(s media.Subscription) want {
	w := want{priority: s.Priority, maxAge: s.MaxAge, latest: s.Latest}
	if s.Start != nil {
		w.start, w.hasStart = *s.Start, true
	}
	if s.End != nil {
		w.end, w.hasEnd = *s.End, true
	}
	return w
}

func (w want) subscription() media.Subscription {
	s := media.Subscription{Priority: w.priority, MaxAge: w.maxAge, Latest: w.latest}
	if w.hasStart {
		s.Start = &media.Position{Group: w.start.Group, Frame: w.start.Frame}
	}
	if w.hasEnd {
		s.End = &media.Position{Group: w.end.Group, Frame: w.end.Frame}
	}
	return s
}

func (d *demand) add(s media.Subscription) {
	if d.wants == nil {
		d.wants = make(map[want]int)
	}
	d.wants[wantOf(s)]++
	d.total++
}

func (d *demand) remove(s media.Subscription) {
	w := wantOf(s)
	if d.wants[w]--; d.wants[w] <= 0 {
		delete(d.wants, w)
	}
	d.total--
}

// aggregate combines all of them (resume 2); false = there is nothing to ask for.
func (d *demand) aggregate(retention time.Duration) (media.Subscription, bool) {
	subs := make([]media.Subscription, 0, len(d.wants))
	for w := range d.wants {
		subs = append(subs, w.subscription())
	}
	return media.Aggregate(subs, retention)
}

// sameWant says whether two subscriptions ask for the same.
func sameWant(a, b media.Subscription) bool { return wantOf(a) == wantOf(b) }
