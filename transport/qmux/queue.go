package qmux

import "slices"

// urgencies is how many there are; those from sequential on are sent one stream after the other, oldest first, the others
// share.
const (
	urgencies      = 8
	sequential     = 4
	defaultUrgency = 3
)

// schedule holds the streams that have something to send and may, by urgency.
type schedule [urgencies][]*stream

// add puts a stream in, unless it is in.
func (q *schedule) add(s *stream) {
	if s.send.queued {
		return
	}
	s.send.queued = true
	line := &q[s.send.urgency]
	at := len(*line)
	if s.send.urgency >= sequential {
		at, _ = slices.BinarySearchFunc(*line, s, func(a, b *stream) int { return compareAge(a.id, b.id) })
	}
	*line = slices.Insert(*line, at, s)
}

func compareAge(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// remove takes a stream out, if it is in.
func (q *schedule) remove(s *stream) {
	if !s.send.queued {
		return
	}
	s.send.queued = false
	line := &q[s.send.urgency]
	if i := slices.Index(*line, s); i >= 0 {
		*line = slices.Delete(*line, i, i+1)
	}
}

// rotate moves the first stream of an urgency to the end, where streams share.
func (q *schedule) rotate(urgency int) {
	line := q[urgency]
	if urgency < sequential && len(line) > 1 {
		first := line[0]
		copy(line, line[1:])
		line[len(line)-1] = first
	}
}
