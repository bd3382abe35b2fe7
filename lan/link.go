package lan

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// link is one interface: what we tell there and what we find there. It is pure.
type link struct {
	responder *responder
	browser   *browser
}

func newLink(now time.Time, s service, chance func() float64) *link {
	return &link{
		responder: newResponder(now, s, chance),
		browser:   newBrowser(now, s.record.app, s.record.name(), chance),
	}
}

// handle takes in a packet that came from an address on the link, and returns the answers that are due at once.
func (l *link) handle(now time.Time, msg *dns.Msg, from netip.AddrPort) []outgoing {
	if msg.Opcode != dns.OpcodeQuery || msg.Rcode != dns.RcodeSuccess {
		return nil // to be ignored (RFC 6762, 18.3, 18.11)
	}
	if !msg.Response {
		return l.responder.handle(now, msg, from)
	}
	if from.Port() != mdnsPort {
		return nil // 6: no response comes from another port
	}
	l.responder.hear(msg)
	if l.browser.handle(now, msg) {
		l.responder.greet(now)
	}
	return nil
}

// deadline is when expire is to be called next.
func (l *link) deadline() time.Time {
	at := l.browser.deadline()
	if r, ok := l.responder.deadline(); ok {
		at = earlier(at, r)
	}
	return at
}

// expire does what is due and returns the packets to send.
func (l *link) expire(now time.Time) []outgoing {
	out := l.responder.expire(now)
	if q := l.browser.expire(now, l.responder.pointer()); q != nil {
		q.Compress = true
		out = append(out, outgoing{msg: q})
	}
	return out
}
