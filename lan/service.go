package lan

import (
	"net/netip"

	"github.com/miekg/dns"
)

// Lifetimes of our records, in seconds.
const (
	hostTTL  = 120  // SRV and addresses
	otherTTL = 4500 // PTR and TXT
	// legacyTTL bounds what those get who ask from another port: they do not hear of changes (RFC 6762, 6.7).
	legacyTTL = 10
)

// part names records of ours that are asked for and sent together.
type part uint8

const (
	partSubtype part = iota // PTR of the application to the instance
	partType                // PTR of the service to the instance
	partMeta                // PTR of the list of services to the service
	partSRV
	partTXT
	partA
	partAAAA
	parts
)

// shared reports whether others have records of the same name and type: answers with those are delayed, so that not all
// answer at once.
func (p part) shared() bool { return p <= partMeta }

// partSet is a set of parts.
type partSet uint8

func (s partSet) has(p part) bool           { return s&(1<<p) != 0 }
func (s partSet) without(o partSet) partSet { return s &^ o }

func setOf(ps ...part) (s partSet) {
	for _, p := range ps {
		s |= 1 << p
	}
	return s
}

var (
	everyPart    = setOf(partSubtype, partType, partMeta, partSRV, partTXT, partA, partAAAA)
	pointerParts = setOf(partSubtype, partType)
	detailParts  = setOf(partSRV, partTXT, partA, partAAAA)
	announced    = everyPart.without(setOf(partMeta))
)

// service makes the records of our instance for one interface.
type service struct {
	record record
	addrs  []netip.Addr // of the interface
}

// records returns those of a set, with the lifetimes and cache-flush bits of multicast.
func (s *service) records(set partSet) (out []dns.RR) {
	for p := range parts {
		if set.has(p) {
			out = append(out, s.part(p)...)
		}
	}
	return out
}

func (s *service) part(p part) []dns.RR {
	r := &s.record
	switch p {
	case partSubtype:
		return []dns.RR{pointer(subtypeName(r.app), r.name())}
	case partType:
		return []dns.RR{pointer(serviceName, r.name())}
	case partMeta:
		return []dns.RR{pointer(metaName, serviceName)}
	case partSRV:
		return []dns.RR{&dns.SRV{Hdr: header(r.name(), dns.TypeSRV, dns.ClassINET|flushBit, hostTTL), Port: r.port, Target: r.host()}}
	case partTXT:
		return []dns.RR{&dns.TXT{Hdr: header(r.name(), dns.TypeTXT, dns.ClassINET|flushBit, otherTTL), Txt: escape(r.txt())}}
	default:
		return s.addresses(p == partA)
	}
}

func (s *service) addresses(four bool) (out []dns.RR) {
	for _, a := range s.addrs {
		switch {
		case a.Is4() && four:
			out = append(out, &dns.A{Hdr: header(s.record.host(), dns.TypeA, dns.ClassINET|flushBit, hostTTL), A: a.AsSlice()})
		case a.Is6() && !four:
			out = append(out, &dns.AAAA{Hdr: header(s.record.host(), dns.TypeAAAA, dns.ClassINET|flushBit, hostTTL), AAAA: a.AsSlice()})
		}
	}
	return out
}

func pointer(from, to string) dns.RR {
	return &dns.PTR{Hdr: header(from, dns.TypePTR, dns.ClassINET, otherTTL), Ptr: to}
}

func header(name string, rtype, class uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: rtype, Class: class, Ttl: ttl}
}

// asked returns the parts that a question wants.
func (s *service) asked(q dns.Question) partSet {
	if class := q.Qclass & classMask; class != dns.ClassINET && class != dns.ClassANY {
		return 0
	}
	byType := func(m map[uint16]part) (set partSet) {
		for rtype, p := range m {
			if q.Qtype == rtype || q.Qtype == dns.TypeANY {
				set |= setOf(p)
			}
		}
		return set
	}
	switch r := &s.record; lower(q.Name) {
	case subtypeName(r.app):
		return byType(map[uint16]part{dns.TypePTR: partSubtype})
	case serviceName:
		return byType(map[uint16]part{dns.TypePTR: partType})
	case metaName:
		return byType(map[uint16]part{dns.TypePTR: partMeta})
	case r.name():
		return byType(map[uint16]part{dns.TypeSRV: partSRV, dns.TypeTXT: partTXT})
	case r.host():
		return byType(map[uint16]part{dns.TypeA: partA, dns.TypeAAAA: partAAAA})
	}
	return 0
}

// known returns the pointers that a query says it knows already, with half of their lifetime left at least (RFC 6762,
// 7.1).
func (s *service) known(answers []dns.RR) (set partSet) {
	for _, rr := range answers {
		ptr, ok := rr.(*dns.PTR)
		if !ok || ptr.Hdr.Ttl < otherTTL/2 {
			continue
		}
		for _, p := range []part{partSubtype, partType, partMeta} {
			own := s.part(p)[0].(*dns.PTR)
			if lower(ptr.Hdr.Name) == own.Hdr.Name && lower(ptr.Ptr) == own.Ptr {
				set |= setOf(p)
			}
		}
	}
	return set
}

// response makes an answer. Pointers take along what will be asked for next.
func (s *service) response(set partSet) *dns.Msg {
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Compress: true}
	m.Answer = s.records(set)
	if set&pointerParts != 0 {
		m.Extra = s.records(detailParts.without(set))
	}
	return m
}
