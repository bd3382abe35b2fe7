//go:build linux

package linklab

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// Link is what a link does to packets in each direction.
type Link struct {
	Rate  int64         // bit/s, packets whole with their IP headers; 0 = no limit
	Delay time.Duration // one way, beside the queue
	Loss  float64       // share of packets that are lost at random, 0 to 1
	// Queue is how many bytes wait for the rate; what does not fit is dropped. 0 = what the link carries in a round trip,
	// at least 30,000.
	Queue int64
}

func (l Link) queue() int64 {
	if l.Queue > 0 {
		return l.Queue
	}
	return max(30_000, int64(float64(l.Rate)/8*2*l.Delay.Seconds()))
}

// Counters are what happened in one direction.
type Counters struct{ Sent, Lost, Dropped, Bytes int64 }

// direction moves packets from one device to another.
type direction struct {
	from, to *os.File
	link     Link

	mu       sync.Mutex
	counters Counters
	free     time.Time // when the rate is through with all that waits
	waiting  []packet  // on the way
	more     chan struct{}
	gone     chan struct{}
}

type packet struct {
	at   time.Time // of arrival
	data []byte
}

// maxPacket is more than the MTU of the devices.
const maxPacket = 2048

var packets = sync.Pool{New: func() any { return new([maxPacket]byte) }}

func newDirection(from, to *os.File, link Link) *direction {
	return &direction{from: from, to: to, link: link, more: make(chan struct{}, 1), gone: make(chan struct{})}
}

// read takes packets from the sender until its device is closed.
func (d *direction) read(rng *rand.Rand) {
	defer close(d.gone)
	for {
		b := packets.Get().(*[maxPacket]byte)
		n, err := d.from.Read(b[:])
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil || n == 0 {
			continue // the device is down for a moment
		}
		d.take(time.Now(), b[:n], rng)
	}
}

// take queues a packet that was sent at a time, loses it, or drops it.
func (d *direction) take(now time.Time, data []byte, rng *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := now
	if d.link.Rate > 0 {
		start := d.free
		if start.Before(now) {
			start = now
		}
		backlog := int64(start.Sub(now).Seconds() * float64(d.link.Rate) / 8)
		if backlog+int64(len(data)) > d.link.queue() {
			d.counters.Dropped++
			return
		}
		d.free = start.Add(time.Duration(float64(len(data)) * 8 / float64(d.link.Rate) * float64(time.Second)))
		at = d.free
	}
	if d.link.Loss > 0 && rng.Float64() < d.link.Loss {
		d.counters.Lost++
		return
	}
	d.counters.Sent++
	d.counters.Bytes += int64(len(data))
	d.waiting = append(d.waiting, packet{at.Add(d.link.Delay), data})
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// deliver hands packets to the receiver when they arrive.
func (d *direction) deliver() {
	for {
		next, due := d.due(time.Now())
		for _, p := range due {
			_, _ = d.to.Write(p.data) // a receiver that takes nothing loses it
			packets.Put((*[maxPacket]byte)(p.data[:maxPacket]))
		}
		if len(due) > 0 {
			continue
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-d.more:
		case <-d.gone:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// due returns the packets that have arrived at a time, and when the next one will.
func (d *direction) due(now time.Time) (next time.Time, due []packet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for n < len(d.waiting) && !d.waiting[n].at.After(now) {
		n++
	}
	due = append(due, d.waiting[:n]...)
	d.waiting = append(d.waiting[:0], d.waiting[n:]...)
	if len(d.waiting) > 0 {
		next = d.waiting[0].at
	}
	return next, due
}

// set changes the link for packets to come.
func (d *direction) set(l Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = l
	d.counters = Counters{}
}

func (d *direction) count() Counters {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counters
}
