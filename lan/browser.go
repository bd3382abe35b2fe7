package lan

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Limits and times of queries.
const (
	maxQuestions    = 20                     // in one query
	maxKnown        = 30                     // known answers in one query; who is not among them answers again
	querySpacing    = 200 * time.Millisecond // between two queries
	missingPatience = 200 * time.Millisecond // for the rest of what a first packet had only a part of
	missingTries    = 4                      // questions for it
	firstQueryDelay = 20 * time.Millisecond  // and up to six times that, so that relays do not ask in step (RFC 6762, 5.2)
)

// browseAfter are the pauses before the questions for all instances: the first comes at once, then after 1, 3, 9, 27 s
// and so on up to a minute, for ever.
var browseAfter = []time.Duration{time.Second, 2 * time.Second, 6 * time.Second, 18 * time.Second, 33 * time.Second, time.Minute}

// found is an instance of which everything is known.
type found struct {
	instance string
	port     uint16
	txt      []string
	addrs    []netip.Addr // in order
	since    time.Time    // when port or TXT last changed
}

// browser finds the instances of a subtype on one interface. It is pure: packets and the time in, packets out.
type browser struct {
	subtype string // name
	own     string // full name of our instance, which is not looked at
	chance  func() float64

	cache   cache
	missing map[string]*search // by full name of instance: what is still to be learned
	next    time.Time          // when to ask for all instances
	round   int                // of browseAfter
	last    time.Time          // when the last query went out

	changed bool // what found returns, since the last takeChanged
	full    bool // an instance was turned away
}

// search is the asking for what an instance lacks.
type search struct {
	at    time.Time
	tries int
}

func newBrowser(now time.Time, app, own string, chance func() float64) *browser {
	b := &browser{subtype: subtypeName(app), own: lower(own), chance: chance, cache: make(cache), missing: make(map[string]*search)}
	b.restart(now)
	return b
}

// restart asks for all instances anew, soon: the network may have changed.
func (b *browser) restart(now time.Time) {
	b.round = 0
	b.next = now.Add(firstQueryDelay + time.Duration(b.chance()*float64(5*firstQueryDelay)))
}

// takeChanged reports whether something has changed since the last call.
func (b *browser) takeChanged() bool {
	changed := b.changed
	b.changed = false
	return changed
}

// handle takes a response in and reports whether it named an instance that was not known.
func (b *browser) handle(now time.Time, msg *dns.Msg) (newcomer bool) {
	records := slices.Concat(msg.Answer, msg.Ns, msg.Extra) // any section may hold any of them
	touched := make(map[key]bool)
	for _, rr := range records {
		if ptr, ok := rr.(*dns.PTR); ok && lower(ptr.Hdr.Name) == b.subtype {
			newcomer = b.putInstance(now, ptr) || newcomer
		}
	}
	for _, rr := range records {
		switch rr.(type) {
		case *dns.SRV, *dns.TXT:
			if name := lower(rr.Header().Name); b.knows(name) {
				b.put(now, rr, touched)
			}
		}
	}
	hosts := b.hosts()
	for _, rr := range records {
		switch rr.(type) {
		case *dns.A, *dns.AAAA:
			if hosts[lower(rr.Header().Name)] {
				b.put(now, rr, touched)
			}
		}
	}
	for k := range touched {
		b.cache.flush(now, k)
	}
	b.searchMissing(now)
	return newcomer
}

// class of records, and the bit that says that there are no others of the name and type (RFC 6762, 10.2).
const (
	classMask = 0x7fff
	flushBit  = 0x8000
)

func (b *browser) putInstance(now time.Time, ptr *dns.PTR) (newcomer bool) {
	name := lower(ptr.Ptr)
	label, ok := strings.CutSuffix(name, "."+serviceName)
	if !ok || !isLabel(label) || name == b.own || ptr.Hdr.Class&classMask != dns.ClassINET {
		return false
	}
	k := key{b.subtype, dns.TypePTR}
	newcomer = b.cache.put(now, k, ptr, maxInstances)
	b.full = b.full || ptr.Hdr.Ttl > 0 && !b.knows(name)
	b.changed = b.changed || newcomer
	if s := b.missing[name]; s != nil {
		s.tries = 0
	}
	return newcomer
}

// put takes in a record of a name that counts. Those that have the cache-flush bit go to touched.
func (b *browser) put(now time.Time, rr dns.RR, touched map[key]bool) {
	h := rr.Header()
	if h.Class&classMask != dns.ClassINET {
		return
	}
	k := key{lower(h.Name), h.Rrtype}
	if b.cache.put(now, k, rr, maxSet) {
		b.changed = true
	}
	if h.Class&flushBit != 0 && h.Ttl > 0 {
		touched[k] = true
	}
}

// instances returns the full names of all instances, in order.
func (b *browser) instances() []string {
	set := b.cache[key{b.subtype, dns.TypePTR}]
	out := make([]string, 0, len(set))
	for _, o := range set {
		out = append(out, o.data)
	}
	slices.Sort(out)
	return out
}

// knows reports whether a name is that of an instance.
func (b *browser) knows(name string) bool {
	return slices.ContainsFunc(b.cache[key{b.subtype, dns.TypePTR}], func(o *cached) bool { return o.data == name })
}

// hosts returns the names of the hosts of all instances.
func (b *browser) hosts() map[string]bool {
	out := make(map[string]bool)
	for _, o := range b.cache[key{b.subtype, dns.TypePTR}] {
		if host, ok := b.host(o.data); ok {
			out[host] = true
		}
	}
	return out
}

func (b *browser) host(instance string) (string, bool) {
	o := b.cache.newest(key{instance, dns.TypeSRV})
	if o == nil {
		return "", false
	}
	return lower(o.rr.(*dns.SRV).Target), true
}

// resolve puts together what is known of an instance; ok is false while something is missing.
func (b *browser) resolve(instance string) (f found, ok bool) {
	srv, txt := b.cache.newest(key{instance, dns.TypeSRV}), b.cache.newest(key{instance, dns.TypeTXT})
	if srv == nil || txt == nil {
		return found{}, false
	}
	host, _ := b.host(instance)
	f = found{
		instance: strings.TrimSuffix(instance, "."+serviceName), port: srv.rr.(*dns.SRV).Port,
		txt: unescape(txt.rr.(*dns.TXT).Txt), addrs: b.cache.addresses(host), since: srv.since,
	}
	if txt.since.After(f.since) {
		f.since = txt.since
	}
	return f, len(f.addrs) > 0
}

// found returns all instances of which everything is known, in order.
func (b *browser) found() (out []found) {
	for _, name := range b.instances() {
		if f, ok := b.resolve(name); ok {
			out = append(out, f)
		}
	}
	return out
}

// searchMissing keeps the list of instances that lack something.
func (b *browser) searchMissing(now time.Time) {
	names := make(map[string]bool)
	for _, name := range b.instances() {
		if _, ok := b.resolve(name); ok {
			continue
		}
		names[name] = true
		if b.missing[name] == nil {
			b.missing[name] = &search{at: now.Add(missingPatience)}
		}
	}
	maps.DeleteFunc(b.missing, func(name string, _ *search) bool { return !names[name] })
}

// deadline is when expire is to be called next.
func (b *browser) deadline() time.Time {
	at := b.next
	for _, s := range b.missing {
		if s.tries < missingTries {
			at = earlier(at, s.at)
		}
	}
	for k, set := range b.cache {
		for _, o := range set {
			if refresh, ok := o.refreshAt(); ok && k.rtype != dns.TypePTR {
				at = earlier(at, refresh)
			}
		}
	}
	// All of these are questions, and those keep a distance.
	if earliest := b.last.Add(querySpacing); at.Before(earliest) {
		at = earliest
	}
	for _, set := range b.cache {
		for _, o := range set {
			at = earlier(at, o.expires)
		}
	}
	return at
}

// expire drops what is past its time and returns the query that is due, or nil. ownPTR is our own record if it was
// announced: a known answer like others.
func (b *browser) expire(now time.Time, ownPTR dns.RR) *dns.Msg {
	if b.cache.expire(now) {
		b.changed = true
		b.prune()
	}
	b.searchMissing(now)
	if now.Before(b.last.Add(querySpacing)) {
		return nil
	}
	q := new(dns.Msg)
	b.askMissing(now, q)
	b.askExpiring(now, q)
	if !now.Before(b.next) {
		b.browse(now, q, ownPTR)
	}
	if len(q.Question) == 0 {
		return nil
	}
	b.last = now
	return q
}

// prune drops what belongs to no instance any more.
func (b *browser) prune() {
	hosts := b.hosts()
	b.cache.keep(func(k key) bool { return k.name == b.subtype || b.knows(k.name) || hosts[k.name] })
}

// browse asks for all instances.
func (b *browser) browse(now time.Time, q *dns.Msg, ownPTR dns.RR) {
	b.next = now.Add(browseAfter[b.round])
	b.round = min(b.round+1, len(browseAfter)-1)
	ask(q, b.subtype, dns.TypePTR)
	if ownPTR != nil {
		q.Answer = append(q.Answer, ownPTR)
	}
	for _, o := range b.cache[key{b.subtype, dns.TypePTR}] {
		// Who is not wholly known had better answer.
		if _, ok := b.resolve(o.data); ok && o.fresh(now) && len(q.Answer) < maxKnown {
			known := dns.Copy(o.rr)
			known.Header().Ttl = uint32(o.expires.Sub(now) / time.Second)
			q.Answer = append(q.Answer, known)
		}
	}
}

// askMissing asks for what instances lack.
func (b *browser) askMissing(now time.Time, q *dns.Msg) {
	for _, name := range slices.Sorted(maps.Keys(b.missing)) {
		s := b.missing[name]
		if s.tries >= missingTries || now.Before(s.at) || len(q.Question)+2 > maxQuestions {
			continue
		}
		s.at = now.Add(time.Second << s.tries)
		s.tries++
		host, ok := b.host(name)
		if !ok || b.cache.newest(key{name, dns.TypeTXT}) == nil {
			ask(q, name, dns.TypeSRV)
			ask(q, name, dns.TypeTXT)
			continue
		}
		ask(q, host, dns.TypeA)
		ask(q, host, dns.TypeAAAA)
	}
}

// askExpiring asks for records whose time is nearly up. Those of the list of instances come back with every browse.
func (b *browser) askExpiring(now time.Time, q *dns.Msg) {
	keys := slices.SortedFunc(maps.Keys(b.cache), func(a, b key) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return int(a.rtype) - int(b.rtype)
	})
	for _, k := range keys {
		due := false
		for _, o := range b.cache[k] {
			if at, ok := o.refreshAt(); ok && !now.Before(at) && k.rtype != dns.TypePTR && len(q.Question) < maxQuestions {
				o.asked++
				due = true
			}
		}
		if due {
			ask(q, k.name, k.rtype)
		}
	}
}

func ask(q *dns.Msg, name string, rtype uint16) {
	q.Question = append(q.Question, dns.Question{Name: name, Qtype: rtype, Qclass: dns.ClassINET})
}
