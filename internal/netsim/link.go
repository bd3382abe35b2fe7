package netsim

import (
	"math/rand/v2"
	"time"
)

// Link describes one direction between two hosts. The zero value delivers everything at once.
type Link struct {
	// Delay is how long a packet is under way, without waiting for its turn.
	Delay time.Duration
	// Jitter adds a random time below it to each packet's delay, which may change their order.
	Jitter time.Duration
	// Loss is the share of packets that are lost, 0 to 1.
	Loss float64
	// Bandwidth is in bits per second; 0 is without limit.
	Bandwidth int64
	// Queue is how many bytes may wait for their turn on a link of limited bandwidth; more are
	// dropped. 0 means what goes through in 100 ms, at least 32 KiB.
	Queue int
}

// Stats counts the packets of one direction.
type Stats struct {
	Sent      int // by the sender, all of them
	Lost      int // by chance, or because the link was cut or a host isolated
	Overflown int // dropped at a full queue
}

type link struct {
	Link
	rand  *rand.Rand
	down  bool
	free  time.Time // when the last packet so far has left the queue
	stats Stats
}

// byteAtOneBit is how long a byte takes at one bit per second, in nanoseconds.
const byteAtOneBit = 8 * int64(time.Second)

// send returns when a packet arrives, or false if it does not.
func (l *link) send(now time.Time, size int, cut bool) (arrival time.Time, ok bool) {
	l.stats.Sent++
	// Drawn for each packet, so that a cut does not change the luck of later ones.
	lost, extra := l.rand.Float64() < l.Loss, time.Duration(0)
	if l.Jitter > 0 {
		extra = time.Duration(l.rand.Int64N(int64(l.Jitter)))
	}
	if lost || cut || l.down {
		l.stats.Lost++
		return now, false
	}
	if l.Bandwidth <= 0 {
		return now.Add(l.Delay + extra), true
	}
	if l.free.Before(now) {
		l.free = now
	}
	if waiting := l.free.Sub(now).Seconds() * float64(l.Bandwidth) / 8; waiting > float64(l.queue()) {
		l.stats.Overflown++
		return now, false
	}
	l.free = l.free.Add(time.Duration(int64(size) * byteAtOneBit / l.Bandwidth))
	return l.free.Add(l.Delay + extra), true
}

func (l *link) queue() int {
	if l.Queue > 0 {
		return l.Queue
	}
	return max(32<<10, int(l.Bandwidth/8/10))
}
