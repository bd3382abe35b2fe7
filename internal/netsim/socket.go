package netsim

import (
	"container/heap"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quic-go/quic-go/testutils/simnet"
)

// maxInbox is how many packets may be under way to a socket or wait in its buffer.
const maxInbox = 1 << 16

// socket is a simnet.SimConn that packets reach when they are due.
type socket struct {
	*simnet.SimConn
	network *Network
	addr    netip.AddrPort
	inbox   *inbox
	wg      sync.WaitGroup
	closing sync.Once
}

func newSocket(n *Network, addr netip.AddrPort) *socket {
	s := &socket{network: n, addr: addr, inbox: &inbox{wake: make(chan struct{}, 1), stop: make(chan struct{})}}
	s.SimConn = simnet.NewBlockingSimConn(net.UDPAddrFromAddrPort(addr), n)
	s.wg.Go(func() { s.inbox.run(s.SimConn) })
	return s
}

// Close frees the address and returns when nothing is delivered any more.
func (s *socket) Close() error {
	s.closing.Do(func() {
		s.network.mu.Lock()
		delete(s.network.sockets, s.addr)
		s.network.mu.Unlock()
		_ = s.SimConn.Close() // never fails
		close(s.inbox.stop)
	})
	s.wg.Wait()
	return nil
}

// inbox holds the packets to one socket until they are due.
type inbox struct {
	mu      sync.Mutex
	packets packetHeap
	count   uint64

	wake chan struct{}
	stop chan struct{}
}

type packet struct {
	simnet.Packet
	due   time.Time
	count uint64 // keeps the order of packets that are due at once
}

func (b *inbox) add(due time.Time, p simnet.Packet) {
	b.mu.Lock()
	if len(b.packets) < maxInbox {
		b.count++
		heap.Push(&b.packets, packet{p, due, b.count})
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// run delivers what is due until stop.
func (b *inbox) run(to simnet.PacketReceiver) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait, p := b.next(time.Now())
		if p != nil {
			to.RecvPacket(p.Packet)
			continue
		}
		timer.Reset(wait)
		select {
		case <-b.stop:
			return
		case <-b.wake:
		case <-timer.C:
		}
	}
}

// next takes the packet that is due, or says how long there is none.
func (b *inbox) next(now time.Time) (wait time.Duration, p *packet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.packets) == 0 {
		return time.Hour, nil
	}
	if wait := b.packets[0].due.Sub(now); wait > 0 {
		return wait, nil
	}
	due := heap.Pop(&b.packets).(packet)
	return 0, &due
}

// packetHeap implements heap.Interface.
type packetHeap []packet

func (h packetHeap) Len() int      { return len(h) }
func (h packetHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *packetHeap) Push(p any)   { *h = append(*h, p.(packet)) }

func (h packetHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].count < h[j].count
}

func (h *packetHeap) Pop() any {
	old := *h
	last := len(old) - 1
	p := old[last]
	old[last] = packet{} // its data may go
	*h = old[:last]
	return p
}
