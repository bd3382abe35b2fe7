package lan

import (
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// Times of RFC 6762.
const (
	probes        = 3
	probeSpacing  = 250 * time.Millisecond // (8.1); the first comes after a random part of it
	announcements = 2
	announceAfter = time.Second           // from the first announcement to the second (8.3)
	answerLeast   = 10 * time.Millisecond // delay of answers that others may give too
	answerMost    = 50 * time.Millisecond
	repeatAfter   = time.Second            // a record is not multicast more often (6)
	repeatProbed  = 250 * time.Millisecond // but for those who probe for its name
	// greetAfter is how long after an announcement a newcomer makes us announce again: that it was not known before may
	// mean that it has not heard of us either, as when two networks are joined.
	greetAfter = 30 * time.Second
	// legacyLimit bounds unicast answers per second, which go to whoever the source address names.
	legacyLimit = 10
)

// mdnsPort is where multicast DNS takes place.
const mdnsPort = 5353

// outgoing is a packet to send.
type outgoing struct {
	msg      *dns.Msg
	to       netip.AddrPort // zero = the group, on every socket of the interface
	announce bool           // it tells of us unasked
}

// responder tells of our instance on one interface: probes, announces, answers, takes its leave. It is pure: packets
// and the time in, packets out.
type responder struct {
	service service
	chance  func() float64

	probed    int       // probes sent
	announced int       // announcements sent since the last change
	next      time.Time // when the next of either is due; zero = all were sent
	told      time.Time // when the last announcement went out

	pending partSet // answers to be sent
	due     time.Time
	sent    [parts]time.Time // when each part was last multicast

	legacySince time.Time
	legacy      int // unicast answers since then

	conflict bool // somebody else has our name
}

func newResponder(now time.Time, s service, chance func() float64) *responder {
	r := &responder{service: s, chance: chance}
	r.restart(now)
	return r
}

// restart probes and announces from the beginning.
func (r *responder) restart(now time.Time) {
	r.probed, r.announced, r.pending, r.told = 0, 0, 0, time.Time{}
	r.next = now.Add(time.Duration(r.chance() * float64(probeSpacing)))
}

// update changes what we tell. The name stays, so that it need not be probed for again.
func (r *responder) update(now time.Time, s service) {
	r.service = s
	r.announceAgain(now)
}

func (r *responder) announceAgain(now time.Time) {
	if r.probed == probes { // else it is to come anyway
		r.announced, r.next = 0, now
	}
}

// greet announces again because of a newcomer, unless that was done a short while ago.
func (r *responder) greet(now time.Time) {
	if r.established() && r.next.IsZero() && now.Sub(r.told) >= greetAfter {
		r.announced = announcements - 1
		r.next = now.Add(r.delay())
	}
}

// established reports whether our names are ours: they were probed for, and announced once.
func (r *responder) established() bool { return r.probed == probes && !r.told.IsZero() }

func (r *responder) delay() time.Duration {
	return answerLeast + time.Duration(r.chance()*float64(answerMost-answerLeast))
}

// handle answers a query.
func (r *responder) handle(now time.Time, q *dns.Msg, from netip.AddrPort) []outgoing {
	if !r.established() || q.Opcode != dns.OpcodeQuery {
		return nil
	}
	var set partSet
	for _, question := range q.Question {
		set |= r.service.asked(question)
	}
	set = set.without(r.service.known(q.Answer))
	if set == 0 {
		return nil
	}
	if from.Port() != mdnsPort {
		return r.answerLegacy(now, q, set, from)
	}
	quiet := repeatAfter
	if len(q.Ns) > 0 { // a probe
		quiet = repeatProbed
	}
	var at struct{ now, later partSet }
	for p := range parts {
		switch {
		case !set.has(p) || now.Sub(r.sent[p]) < quiet:
		case p.shared():
			at.later |= setOf(p)
		default:
			at.now |= setOf(p)
		}
	}
	if at.later != 0 {
		if r.pending == 0 {
			r.due = now.Add(r.delay())
		}
		r.pending |= at.later | at.now // one packet for all
		return nil
	}
	if at.now == 0 {
		return nil
	}
	return []outgoing{r.multicast(now, at.now)}
}

// multicast makes an answer for everybody.
func (r *responder) multicast(now time.Time, set partSet) outgoing {
	m := r.service.response(set)
	for p := range parts {
		if set.has(p) || set&pointerParts != 0 && detailParts.has(p) {
			r.sent[p] = now
		}
	}
	return outgoing{msg: m}
}

// answerLegacy answers a plain resolver, which wants an ordinary answer to its own port (RFC 6762, 6.7).
func (r *responder) answerLegacy(now time.Time, q *dns.Msg, set partSet, from netip.AddrPort) []outgoing {
	if now.Sub(r.legacySince) >= time.Second {
		r.legacySince, r.legacy = now, 0
	}
	if r.legacy++; r.legacy > legacyLimit {
		return nil
	}
	m := r.service.response(set)
	m.Id, m.Question = q.Id, q.Question
	for _, rrs := range [][]dns.RR{m.Answer, m.Extra} {
		for _, rr := range rrs {
			h := rr.Header()
			h.Class &= classMask
			h.Ttl = min(h.Ttl, legacyTTL)
		}
	}
	return []outgoing{{msg: m, to: from}}
}

// hear looks at a response while we probe: a TXT record of our name that is not ours means that the name is taken (RFC
// 6762, 8.1). Our own packets come back to us, from other interfaces too; the nonce tells them apart. Instances are
// random, so only a copied process gets here, such as a machine restored twice.
func (r *responder) hear(msg *dns.Msg) {
	if r.probed == 0 || r.established() {
		return
	}
	for _, rr := range msg.Answer {
		txt, ok := rr.(*dns.TXT)
		if !ok || txt.Hdr.Ttl == 0 || lower(txt.Hdr.Name) != r.service.record.name() {
			continue
		}
		var other record
		other.readTXT(unescape(txt.Txt))
		r.conflict = r.conflict || other.nonce != r.service.record.nonce
	}
}

// deadline is when expire is to be called next; ok is false if there is nothing to wait for.
func (r *responder) deadline() (at time.Time, ok bool) {
	at = r.next
	if r.pending != 0 && (at.IsZero() || r.due.Before(at)) {
		at = r.due
	}
	return at, !at.IsZero()
}

// expire returns the packets that are due.
func (r *responder) expire(now time.Time) (out []outgoing) {
	if r.pending != 0 && !now.Before(r.due) {
		out = append(out, r.multicast(now, r.pending))
		r.pending = 0
	}
	if r.next.IsZero() || now.Before(r.next) {
		return out
	}
	if r.probed < probes {
		r.probed++
		r.next = now.Add(probeSpacing)
		return append(out, outgoing{msg: r.probe()})
	}
	r.announced++
	r.told = now
	if r.next = now.Add(announceAfter); r.announced == announcements {
		r.next = time.Time{}
	}
	send := r.multicast(now, announced)
	send.announce = true
	return append(out, send)
}

// probe asks whether somebody has our names, and says what we mean to do with them.
func (r *responder) probe() *dns.Msg {
	m := &dns.Msg{Compress: true}
	ask(m, r.service.record.name(), dns.TypeANY)
	ask(m, r.service.record.host(), dns.TypeANY)
	m.Ns = r.service.records(detailParts)
	for _, rr := range m.Ns {
		rr.Header().Class &= classMask
	}
	return m
}

// goodbye takes everything back; nil if nothing was announced.
func (r *responder) goodbye() *dns.Msg {
	if r.told.IsZero() {
		return nil
	}
	m := r.service.response(announced)
	for _, rr := range m.Answer {
		rr.Header().Ttl = 0
	}
	return m
}

// pointer is our record in the list that others browse; nil until it was announced.
func (r *responder) pointer() dns.RR {
	if !r.established() {
		return nil
	}
	return r.service.part(partSubtype)[0]
}
