package lan

import (
	"net/netip"
	"slices"
	"time"
)

// service is what we tell on an interface.
func (d *Discovery) service(i *iface) service {
	return service{record: d.self, addrs: advertised(i.addrs, d.cfg.Bind)}
}

// maxAdvertised keeps our record within one packet.
const maxAdvertised = 24

// advertised returns the addresses of an interface under which a listener that is bound to an address can be reached.
func advertised(addrs []netip.Prefix, bind netip.Addr) (out []netip.Addr) {
	for _, p := range addrs {
		a := p.Addr()
		var ok bool
		switch {
		case bind.IsUnspecified():
			ok = bind.Is6() || a.Is4()
		default:
			ok = a == bind.WithZone("")
		}
		if ok {
			out = append(out, a)
		}
	}
	return out[:min(len(out), maxAdvertised)]
}

// check looks at the interfaces: closes what is gone, opens what is new or has failed, tells of other addresses.
func (d *Discovery) check(now time.Time) {
	present, err := d.cfg.network.interfaces()
	if err != nil {
		if d.said.new("interfaces", err) {
			d.log.Warn("LAN discovery cannot list the interfaces", "err", err)
		}
		return
	}
	d.said.forget("interfaces")
	present = slices.DeleteFunc(present, func(i iface) bool { return len(advertised(i.addrs, d.cfg.Bind)) == 0 })
	d.links = slices.DeleteFunc(d.links, func(l *netLink) bool {
		if slices.ContainsFunc(present, func(i iface) bool { return i.same(&l.iface) }) {
			return false
		}
		d.closeLink(l)
		d.said.forget(l.name)
		d.settle = now
		d.log.Info("LAN discovery has lost an interface", "interface", l.name)
		return true
	})
	for _, i := range present {
		d.checkOne(now, i)
	}
	d.checkSilence(now)
}

func (d *Discovery) checkOne(now time.Time, i iface) {
	at := slices.IndexFunc(d.links, func(l *netLink) bool { return l.same(&i) })
	if at < 0 {
		l := &netLink{iface: i, link: newLink(now, d.service(&i), d.cfg.chance)}
		d.links = append(d.links, l)
		d.openSockets(l)
		d.log.Info("LAN discovery uses an interface", "interface", i.name, "addresses", advertised(i.addrs, d.cfg.Bind))
		return
	}
	l := d.links[at]
	before := l.iface
	l.iface = i
	opened := d.openSockets(l)
	switch {
	case opened || i.running && !before.running || !slices.Equal(before.addrs, i.addrs):
		l.link.responder.update(now, d.service(&i))
		l.link.browser.restart(now)
	case !l.told && l.link.responder.established(): // none of the announcements could be sent
		l.link.responder.restart(now)
	}
}

// openSockets opens the sockets that are missing and closes those whose family is gone. It reports whether there are
// new ones.
func (d *Discovery) openSockets(l *netLink) (opened bool) {
	for f := range families {
		subject := l.name + " " + f.String() + " open"
		switch s := l.sockets[f]; {
		case s != nil && !l.has(f):
			_ = s.close()
			l.sockets[f] = nil
		case s == nil && l.has(f):
			sock, err := d.cfg.network.open(l.iface, f)
			if err != nil {
				d.complain(l, subject, "LAN discovery cannot listen", err)
				continue
			}
			d.said.forget(subject)
			s := &netSocket{socket: sock, link: l, family: f}
			l.sockets[f], opened = s, true
			d.readers.Go(func() { d.read(s) })
		}
	}
	return opened
}

// checkSilence says once that nothing announces us, and that it goes on trying (L14).
func (d *Discovery) checkSilence(now time.Time) {
	d.announces = slices.ContainsFunc(d.links, func(l *netLink) bool { return l.told })
	if !d.announces && now.Sub(d.began) >= checkEvery && d.said.new("all", errSilent) {
		d.log.Warn("LAN discovery can announce on no interface, trying on", "every", checkEvery)
	}
}
