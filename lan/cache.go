package lan

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Limits of the cache of one interface.
const (
	maxInstances = 1024             // relays of an application; more are not taken up
	maxSet       = 64               // records of one name and type, but for the list of instances
	maxTTL       = 75 * time.Minute // of a record; a longer one counts as this
)

// Times of RFC 6762.
const (
	goodbyeTime = time.Second // how long a record lives on after its goodbye (10.1)
	flushTime   = time.Second // records this close together belong together (10.2)
)

// key names a set of records.
type key struct {
	name  string // lower case
	rtype uint16
}

// cached is one record that was heard.
type cached struct {
	data     string // what it says, for comparison
	rr       dns.RR
	since    time.Time // when it was first heard
	received time.Time // when last
	ttl      time.Duration
	expires  time.Time
	asked    int // how often it was asked for since then
}

// fresh reports whether more than half of the lifetime is left: such records are known answers (RFC 6762, 7.1).
func (c *cached) fresh(now time.Time) bool { return c.expires.Sub(now) > c.ttl/2 }

// refreshAt is when to ask for the record again: at 80, 85, 90 and 95 % of its lifetime (RFC 6762, 5.2). ok is false when
// it is past that or taking its leave.
func (c *cached) refreshAt() (at time.Time, ok bool) {
	if c.asked > 3 || c.expires.Before(c.received.Add(c.ttl)) {
		return time.Time{}, false
	}
	return c.received.Add(c.ttl * time.Duration(80+5*c.asked) / 100), true
}

// cache holds records until they expire. It is pure.
type cache map[key][]*cached

// put takes a record in. It reports whether that changed what is known.
func (c cache) put(now time.Time, k key, rr dns.RR, limit int) (changed bool) {
	set, data := c[k], dataOf(rr)
	ttl := min(time.Duration(rr.Header().Ttl)*time.Second, maxTTL)
	at := slices.IndexFunc(set, func(o *cached) bool { return o.data == data })
	switch {
	case at >= 0 && ttl == 0:
		set[at].expires = earlier(set[at].expires, now.Add(goodbyeTime))
		return false
	case at >= 0:
		set[at].rr, set[at].received, set[at].ttl, set[at].expires, set[at].asked = rr, now, ttl, now.Add(ttl), 0
		return false
	case ttl == 0 || len(set) >= limit:
		return false
	}
	c[k] = append(set, &cached{data: data, rr: rr, since: now, received: now, ttl: ttl, expires: now.Add(ttl)})
	return true
}

// flush makes the records of a set that are older than its newest ones leave: their owner has told all that is valid.
func (c cache) flush(now time.Time, k key) {
	for _, o := range c[k] {
		if now.Sub(o.received) > flushTime {
			o.expires = earlier(o.expires, now.Add(flushTime))
		}
	}
}

// expire drops what is past its time and reports whether there was any.
func (c cache) expire(now time.Time) (gone bool) {
	for k, set := range c {
		kept := slices.DeleteFunc(set, func(o *cached) bool { return !now.Before(o.expires) })
		gone = gone || len(kept) < len(set)
		if len(kept) == 0 {
			delete(c, k)
		} else {
			c[k] = kept
		}
	}
	return gone
}

// keep drops the sets for which needed says no.
func (c cache) keep(needed func(key) bool) {
	for k := range c {
		if !needed(k) {
			delete(c, k)
		}
	}
}

// newest is the record of a set that was heard last, and of those heard together the one that is new; nil if the set is
// empty.
func (c cache) newest(k key) (last *cached) {
	for _, o := range c[k] {
		if last == nil || o.received.After(last.received) || o.received.Equal(last.received) && o.since.After(last.since) {
			last = o
		}
	}
	return last
}

// addresses returns the addresses of a host, in order.
func (c cache) addresses(host string) (out []netip.Addr) {
	for _, rtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, o := range c[key{host, rtype}] {
			if a, ok := addressOf(o.rr); ok {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

func addressOf(rr dns.RR) (netip.Addr, bool) {
	switch rr := rr.(type) {
	case *dns.A:
		a, ok := netip.AddrFromSlice(rr.A)
		return a.Unmap(), ok
	case *dns.AAAA:
		return netip.AddrFromSlice(rr.AAAA)
	}
	return netip.Addr{}, false
}

// dataOf is what a record says, apart from its header, in a form that can be compared.
func dataOf(rr dns.RR) string {
	switch rr := rr.(type) {
	case *dns.PTR:
		return lower(rr.Ptr)
	case *dns.SRV:
		return lower(strings.TrimPrefix(rr.String(), rr.Hdr.String()))
	}
	return strings.TrimPrefix(rr.String(), rr.Header().String())
}

// lower is dns.CanonicalName for names that are absolute already.
func lower(name string) string { return strings.ToLower(name) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
