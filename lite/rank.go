package lite

import (
	"cmp"
	"slices"
	"sync"

	"github.com/moqmesh/moqmesh/transport"
)

// Urgencies of group streams: the three most urgent of a session have one each, all others share the last
// (moq-lite 8). Control streams and FETCH stay at the carrier's default, 3, before all of them.
const (
	firstUrgency = 4
	lastUrgency  = 7
)

// ranker ranks the open group streams of a session.
type ranker struct {
	mu      sync.Mutex
	streams []*ranked // most urgent first
}

// ranked is a stream in a ranker, which owns its fields from add to remove.
type ranked struct {
	stream   transport.SendStream
	priority uint8
	id       uint64 // subscribe id
	sequence uint64
	urgency  int // as last set
}

// compare orders by subscriber priority, then the lower subscribe id, then the newer group.
func (e *ranked) compare(o *ranked) int {
	return cmp.Or(
		cmp.Compare(o.priority, e.priority),
		cmp.Compare(e.id, o.id),
		cmp.Compare(o.sequence, e.sequence),
	)
}

// add ranks an open stream.
func (r *ranker) add(e *ranked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.streams, e, (*ranked).compare)
	r.streams = slices.Insert(r.streams, i, e)
	r.applyLocked(i)
	if i > lastUrgency-firstUrgency {
		e.set(lastUrgency)
	}
}

// remove forgets a stream.
func (r *ranker) remove(e *ranked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.streams, e); i >= 0 {
		r.streams = slices.Delete(r.streams, i, i+1)
		r.applyLocked(i)
	}
}

// setPriority changes the priority of all streams of a subscription.
func (r *ranker) setPriority(id uint64, priority uint8) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.streams {
		if e.id == id {
			e.priority = priority
		}
	}
	slices.SortFunc(r.streams, (*ranked).compare)
	for i, e := range r.streams {
		e.set(min(firstUrgency+i, lastUrgency))
	}
}

// applyLocked sets the urgencies that a change at index i can have moved: those of the first ranks, and of the stream that
// was pushed out of them.
func (r *ranker) applyLocked(i int) {
	for ; i <= lastUrgency-firstUrgency && i < len(r.streams); i++ {
		r.streams[i].set(firstUrgency + i)
	}
}

// set sets the urgency if it is another. It is called with the lock of the ranker, so that the last one set is the right
// one; carriers do not block in SetPriority.
func (e *ranked) set(urgency int) {
	if e.urgency != urgency {
		e.urgency = urgency
		e.stream.SetPriority(urgency)
	}
}
