package origin

import (
	"container/heap"
	"time"
)

// hedgeRate is how many hedges a relay starts per second (H11).
const hedgeRate = 200

// gate lets tracks hedge: at most hedgeRate in any second, those of the highest priority first. The zero value is open.
type gate struct {
	starts  [hedgeRate]time.Time // a ring
	next    int                  // the oldest of them
	waiting gateQueue
	seq     uint64
	places  map[*track]*gatePlace
}

type gatePlace struct {
	t        *track
	priority uint8
	seq      uint64 // older ones first
	index    int
}

// ask queues a track; it has one place at most.
func (g *gate) ask(t *track, priority uint8) {
	if g.places[t] != nil {
		return
	}
	if g.places == nil {
		g.places = make(map[*track]*gatePlace)
	}
	g.seq++
	p := &gatePlace{t: t, priority: priority, seq: g.seq}
	g.places[t] = p
	heap.Push(&g.waiting, p)
}

// forget takes a track out of the queue.
func (g *gate) forget(t *track) {
	if p := g.places[t]; p != nil {
		heap.Remove(&g.waiting, p.index)
		delete(g.places, t)
	}
}

// admit returns the tracks that may start now.
func (g *gate) admit(now time.Time) (out []*track) {
	for len(g.waiting) > 0 && !now.Before(g.free()) {
		p := heap.Pop(&g.waiting).(*gatePlace)
		delete(g.places, p.t)
		g.starts[g.next] = now
		g.next = (g.next + 1) % hedgeRate
		out = append(out, p.t)
	}
	return out
}

// free is when the next one may start.
func (g *gate) free() time.Time {
	if oldest := g.starts[g.next]; !oldest.IsZero() {
		return oldest.Add(time.Second)
	}
	return time.Time{}
}

// deadline is when admit has something to return; false if nobody waits.
func (g *gate) deadline() (time.Time, bool) { return g.free(), len(g.waiting) > 0 }

// gateQueue is a heap, the first one to go at the top.
type gateQueue []*gatePlace

func (q gateQueue) Len() int { return len(q) }

func (q gateQueue) Less(i, j int) bool {
	if q[i].priority != q[j].priority {
		return q[i].priority > q[j].priority
	}
	return q[i].seq < q[j].seq
}

func (q gateQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *gateQueue) Push(x any) {
	p := x.(*gatePlace)
	p.index = len(*q)
	*q = append(*q, p)
}

// Pop implements heap.Interface.
func (q *gateQueue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return p
}
