package lan

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// packet is a message that came in.
type packet struct {
	socket  *netSocket
	msg     *dns.Msg
	from    netip.AddrPort
	unicast bool
}

// netLink is an interface with its sockets.
type netLink struct {
	iface
	link    *link
	sockets [families]*netSocket // nil = none
	told    bool                 // an announcement has gone out
}

// netSocket is a socket with a goroutine that reads.
type netSocket struct {
	socket
	link   *netLink
	family family
}

// run owns everything until Close.
func (d *Discovery) run() {
	defer close(d.done)
	defer d.readers.Wait()
	defer d.leave()
	d.began = time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(d.deadline()))
		select {
		case <-d.stop:
			return
		case p := <-d.packets:
			d.handle(p)
		case s := <-d.broken:
			d.drop(s)
		case <-d.poke:
			d.reseal()
		case <-timer.C:
		}
		d.step(time.Now())
	}
}

// deadline is when something is due.
func (d *Discovery) deadline() time.Time {
	at := d.nextCheck
	if !d.settle.IsZero() {
		at = earlier(at, d.settle)
	}
	for _, l := range d.links {
		at = earlier(at, l.link.deadline())
	}
	return at
}

// step does everything that is due.
func (d *Discovery) step(now time.Time) {
	if !now.Before(d.nextCheck) {
		d.nextCheck = now.Add(checkEvery)
		d.check(now)
	}
	conflict := false
	for _, l := range d.links {
		if !now.Before(l.link.deadline()) {
			d.send(l, nil, l.link.expire(now))
		}
		if l.link.browser.takeChanged() && d.settle.IsZero() {
			d.settle = now.Add(settleTime)
		}
		if l.link.browser.full && d.said.new(l.name+" instances", errTooMany) {
			d.log.Warn("LAN discovery takes up no more instances on an interface", "interface", l.name, "limit", maxInstances)
		}
		conflict = conflict || l.link.responder.conflict
	}
	if conflict {
		d.rename(now)
	}
	if !d.settle.IsZero() && !now.Before(d.settle) {
		d.settle = time.Time{}
		d.publish()
	}
}

var (
	errTooMany = errors.New("too many instances")
	errSilent  = errors.New("no interface announces")
)

// handle gives a packet to the interface that it came from. One that was sent to us alone must come from a neighbour
// (RFC 6762, 11).
func (d *Discovery) handle(p packet) {
	l := p.socket.link
	if l.sockets[p.socket.family] != p.socket || p.unicast && !l.onLink(p.from.Addr()) {
		return
	}
	d.send(l, p.socket, l.link.handle(time.Now(), p.msg, p.from))
}

// send sends packets: those to the group on every socket of the interface, others on the socket of the question.
func (d *Discovery) send(l *netLink, asked *netSocket, out []outgoing) {
	for _, o := range out {
		data, err := o.msg.Pack()
		if err != nil {
			if d.said.new(l.name+" pack", err) {
				d.log.Error("LAN discovery cannot pack a packet", "interface", l.name, "err", err)
			}
			continue
		}
		sent := false
		for _, s := range l.sockets {
			if s == nil || o.to.IsValid() && s != asked {
				continue
			}
			sent = d.write(s, data, o.to) || sent
		}
		if o.announce && sent {
			l.told = true
			d.announcing()
		}
	}
}

// write sends one packet on one socket. A failure is no reason to give the socket up.
func (d *Discovery) write(s *netSocket, data []byte, to netip.AddrPort) bool {
	subject := s.link.name + " " + s.family.String() + " send"
	if err := s.write(data, to); err != nil {
		if to.IsValid() { // the asker is gone
			return false
		}
		d.complain(s.link, subject, "LAN discovery cannot send", err)
		return false
	}
	if !to.IsValid() {
		d.said.forget(subject)
	}
	return true
}

// complain logs a cause once. The loopback interface of many systems does no multicast, which matters to nobody.
func (d *Discovery) complain(l *netLink, subject, what string, err error) {
	if !d.said.new(subject, err) {
		return
	}
	log := d.log.Warn
	if l.loopback {
		log = d.log.Debug
	}
	log(what, "interface", l.name, "err", err)
}

// announcing notes that an interface has announced us.
func (d *Discovery) announcing() {
	if d.announces {
		return
	}
	d.announces = true
	d.said.forget("all")
	select {
	case <-d.ready:
	default:
		close(d.ready)
	}
	d.log.Info("LAN discovery announces this relay", "app", d.cfg.App, "instance", d.self.instance, "port", d.self.port)
}

// reseal tells of another certificate.
func (d *Discovery) reseal() {
	old := d.self.fingerprint
	d.seal()
	if d.self.fingerprint == old {
		return
	}
	d.directory.self = d.self
	now := time.Now()
	for _, l := range d.links {
		l.link.responder.update(now, d.service(&l.iface))
	}
}

// rename takes another name, since ours is taken.
func (d *Discovery) rename(now time.Time) {
	old := d.self.instance
	for _, l := range d.links {
		d.takeBack(l)
	}
	if err := d.identify(); err != nil {
		d.log.Error("LAN discovery cannot draw another name", "err", err)
	}
	for _, l := range d.links {
		l.link, l.told = newLink(now, d.service(&l.iface), d.cfg.chance), false
	}
	d.settle = now.Add(settleTime)
	d.log.Warn("another program on the network has our LAN instance name, taking another", "old", old, "new", d.self.instance)
}

// publish makes the list of peers anew.
func (d *Discovery) publish() {
	lists := make([][]found, len(d.links))
	for i, l := range d.links {
		lists[i] = l.link.browser.found()
	}
	events := d.directory.update(lists)
	for _, e := range events {
		switch e.kind {
		case eventFound:
			d.log.Info("found a peer on the LAN", "peer", e.peer, "instance", e.peer.Instance, "addresses", e.peer.Addrs)
		case eventChanged:
			d.log.Info("a peer on the LAN has changed", "peer", e.peer, "instance", e.peer.Instance, "addresses", e.peer.Addrs)
		case eventLost:
			d.log.Info("a peer on the LAN is gone", "peer", e.peer, "instance", e.peer.Instance)
		case eventUnusable:
			d.log.Warn("a peer on the LAN cannot be dialed", "instance", e.peer.Instance, "err", e.err)
		}
	}
	list := d.directory.list()
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.EqualFunc(list, d.peers, func(a, b Peer) bool { return a.same(&b) }) {
		return
	}
	d.peers = list
	close(d.news)
	d.news = make(chan struct{})
}

// leave says goodbye everywhere and closes every socket.
func (d *Discovery) leave() {
	for _, l := range d.links {
		d.takeBack(l)
		d.closeLink(l)
	}
}

// takeBack takes our record back on one interface.
func (d *Discovery) takeBack(l *netLink) {
	if m := l.link.responder.goodbye(); m != nil {
		d.send(l, nil, []outgoing{{msg: m}})
	}
}

func (d *Discovery) closeLink(l *netLink) {
	for f, s := range l.sockets {
		if s != nil {
			_ = s.close()
			l.sockets[f] = nil
		}
	}
}

// drop gives up a socket that cannot be read. The next check opens another.
func (d *Discovery) drop(s *netSocket) {
	_ = s.close()
	if s.link.sockets[s.family] == s {
		s.link.sockets[s.family] = nil
	}
}

// read passes on what a socket receives until it is closed or fails. What is not DNS is dropped.
func (d *Discovery) read(s *netSocket) {
	for {
		in, err := s.read()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			select {
			case d.broken <- s:
			case <-d.stop:
			}
			return
		}
		msg := new(dns.Msg)
		if msg.Unpack(in.data) != nil {
			continue
		}
		select {
		case d.packets <- packet{s, msg, in.from, in.unicast}:
		case <-d.stop:
			return
		}
	}
}
