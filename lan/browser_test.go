package lan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

// epoch is when tests of pure parts begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// middle is the chance that is always one half.
func middle() float64 { return 0.5 }

const ownName = "own." + serviceName

func recordOf(instance string) record {
	return record{app: "default", instance: instance, port: 4443, nonce: strings.Repeat("0", 32), fingerprint: strings.Repeat("a", 64)}
}

func serviceOf(instance string, texts ...string) service {
	return service{record: recordOf(instance), addrs: addrs(texts...)}
}

// response packs and unpacks what a relay would announce, as on the wire.
func response(t *testing.T, s service, set partSet) *dns.Msg {
	t.Helper()
	return wire(t, s.response(set))
}

func wire(t *testing.T, m *dns.Msg) *dns.Msg {
	t.Helper()
	data, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	out := new(dns.Msg)
	if err := out.Unpack(data); err != nil {
		t.Fatal(err)
	}
	return out
}

func newTestBrowser() *browser { return newBrowser(epoch, "default", ownName, middle) }

func names(fs []found) (out []string) {
	for _, f := range fs {
		out = append(out, f.instance)
	}
	return out
}

// drain runs a browser by its deadlines until end and returns when it asked what.
func drain(b *browser, now, end time.Time, own dns.RR) (asked []string) {
	for range 10_000 {
		at := b.deadline()
		if at.After(end) {
			return asked
		}
		if at.Before(now) {
			at = now
		}
		now = at
		q := b.expire(now, own)
		if q == nil {
			continue
		}
		text := fmt.Sprintf("%.2f:", now.Sub(epoch).Seconds())
		for _, question := range q.Question {
			name := strings.TrimSuffix(strings.TrimSuffix(question.Name, ".local."), "._moq._udp")
			text += " " + dns.TypeToString[question.Qtype] + " " + name
		}
		if len(q.Answer) > 0 {
			text += fmt.Sprintf(" known %d", len(q.Answer))
		}
		asked = append(asked, text)
	}
	return append(asked, "busy loop")
}

// TestBrowse is the schedule of questions on an empty network.
func TestBrowse(t *testing.T) {
	b := newTestBrowser()
	want := []string{
		"0.07: PTR _default._sub", "1.07: PTR _default._sub", "3.07: PTR _default._sub", "9.07: PTR _default._sub",
		"27.07: PTR _default._sub", "60.07: PTR _default._sub", "120.07: PTR _default._sub",
	}
	if diff := cmp.Diff(want, drain(b, epoch, epoch.Add(130*time.Second), nil)); diff != "" {
		t.Error(diff)
	}
	own := pointer(subtypeName("default"), ownName)
	if got := drain(b, epoch, epoch.Add(181*time.Second), own); len(got) != 1 || !strings.HasSuffix(got[0], "known 1") {
		t.Errorf("our own record is no known answer: %q", got)
	}
}

// TestFindAndLose follows one relay: announcement, change of address, goodbye.
func TestFindAndLose(t *testing.T) {
	b := newTestBrowser()
	now := epoch
	peer := serviceOf("peer", "10.0.0.2", "fd00::2")
	if !b.handle(now, response(t, peer, announced)) {
		t.Error("not a newcomer")
	}
	want := []found{{instance: "peer", port: 4443, txt: peer.record.txt(), addrs: addrs("10.0.0.2", "fd00::2"), since: epoch}}
	if diff := cmp.Diff(want, b.found(), unexported, byValue); diff != "" {
		t.Fatal(diff)
	}
	if !b.takeChanged() || b.takeChanged() {
		t.Error("changed once was expected")
	}

	now = now.Add(time.Second)
	if b.handle(now, response(t, peer, announced)) || b.takeChanged() {
		t.Error("a repetition changes something")
	}

	// Another address replaces the first a second later, by its cache-flush bit.
	now = now.Add(10 * time.Second)
	peer.addrs = addrs("10.0.0.3", "fd00::2")
	b.handle(now, response(t, peer, announced))
	if got := b.found()[0].addrs; !cmp.Equal(got, addrs("10.0.0.2", "10.0.0.3", "fd00::2"), byValue) {
		t.Errorf("addresses %v", got)
	}
	now = now.Add(flushTime)
	b.expire(now, nil)
	if got := b.found()[0].addrs; !cmp.Equal(got, addrs("10.0.0.3", "fd00::2"), byValue) || !b.takeChanged() {
		t.Errorf("addresses %v", got)
	}

	r := newResponder(epoch, peer, middle)
	r.told = epoch
	b.handle(now, wire(t, r.goodbye()))
	if len(b.found()) != 1 {
		t.Error("gone at once: a goodbye leaves a second for others to object")
	}
	b.expire(now.Add(goodbyeTime), nil)
	if len(b.found()) != 0 || !b.takeChanged() || len(b.cache) != 0 {
		t.Errorf("left over: %v", b.cache)
	}
}

// TestEverySection is the packet of the Rust relay: the subtype is among the additional records.
func TestEverySection(t *testing.T) {
	s := serviceOf("peer", "10.0.0.2")
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true}}
	m.Answer = s.records(setOf(partType))
	m.Ns = s.records(setOf(partA, partAAAA))
	m.Extra = s.records(setOf(partTXT, partSRV, partSubtype))
	b := newTestBrowser()
	b.handle(epoch, wire(t, m))
	if got := names(b.found()); len(got) != 1 {
		t.Errorf("found %v", got)
	}
}

// TestIgnored are records that are none of our business, and such as no relay writes.
func TestIgnored(t *testing.T) {
	other := serviceOf("peer", "10.0.0.2")
	other.record.app = "other"
	for name, m := range map[string]*dns.Msg{
		"other app":    response(t, other, announced),
		"type only":    response(t, serviceOf("peer", "10.0.0.2"), everyPart.without(setOf(partSubtype))),
		"own":          response(t, serviceOf("own", "10.0.0.2"), announced),
		"no label":     {Answer: []dns.RR{pointer(subtypeName("default"), serviceName)}},
		"two labels":   {Answer: []dns.RR{pointer(subtypeName("default"), "a.b."+serviceName)}},
		"escaped":      {Answer: []dns.RR{pointer(subtypeName("default"), `a\032b.`+serviceName)}},
		"other domain": {Answer: []dns.RR{pointer(subtypeName("default"), "a._moq._udp.example.")}},
		"goodbye":      {Answer: []dns.RR{&dns.PTR{Hdr: header(subtypeName("default"), dns.TypePTR, dns.ClassINET, 0), Ptr: "a." + serviceName}}},
		"other class":  {Answer: []dns.RR{&dns.PTR{Hdr: header(subtypeName("default"), dns.TypePTR, dns.ClassCHAOS, 9), Ptr: "a." + serviceName}}},
	} {
		b := newTestBrowser()
		if b.handle(epoch, m) || len(b.cache) != 0 || b.takeChanged() {
			t.Errorf("%s: %v", name, b.cache)
		}
	}
}

// TestExpiry asks for records that are about to expire, and loses the instance when nobody answers.
func TestExpiry(t *testing.T) {
	b := newTestBrowser()
	b.handle(epoch, response(t, serviceOf("peer", "10.0.0.2"), announced))
	b.next = epoch.Add(time.Hour) // not what is tested
	b.last = epoch
	want := []string{
		"96.00: SRV peer A peer", "102.00: SRV peer A peer", "108.00: SRV peer A peer", "114.00: SRV peer A peer",
		// Lost at 120 s, but the list of instances has it on: it is asked for, and then not any more.
		"120.20: SRV peer TXT peer", "121.20: SRV peer TXT peer", "123.20: SRV peer TXT peer", "127.20: SRV peer TXT peer",
	}
	if diff := cmp.Diff(want, drain(b, epoch, epoch.Add(400*time.Second), nil)); diff != "" {
		t.Error(diff)
	}
	if got := b.found(); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
	if b.handle(epoch.Add(401*time.Second), response(t, serviceOf("peer", "10.0.0.2"), announced)); len(b.found()) != 1 {
		t.Error("does not come back")
	}
}

// TestRefreshed keeps an instance whose owner answers.
func TestRefreshed(t *testing.T) {
	b := newTestBrowser()
	now := epoch
	for range 100 {
		b.handle(now, response(t, serviceOf("peer", "10.0.0.2"), announced))
		now = now.Add(100 * time.Second)
		b.expire(now, nil)
		if len(b.found()) != 1 {
			t.Fatalf("lost after %v", now.Sub(epoch))
		}
	}
}

// TestMissing asks for what a first packet did not have.
func TestMissing(t *testing.T) {
	s := serviceOf("peer", "10.0.0.2")
	for name, test := range map[string]struct {
		have partSet
		want string
	}{
		"all but the pointer": {setOf(partSubtype), "0.20: SRV peer TXT peer"},
		"TXT":                 {setOf(partSubtype, partSRV, partA), "0.20: SRV peer TXT peer"},
		"addresses":           {setOf(partSubtype, partSRV, partTXT), "0.20: A peer AAAA peer"},
	} {
		b := newTestBrowser()
		b.next = epoch.Add(time.Hour)
		m := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true}, Answer: s.records(test.have)}
		b.handle(epoch, wire(t, m))
		asked := drain(b, epoch, epoch.Add(time.Minute), nil)
		if len(asked) != missingTries || asked[0] != test.want {
			t.Errorf("%s: asked %q", name, asked)
		}
		rest := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true}, Answer: s.records(announced.without(test.have))}
		if b.handle(epoch.Add(time.Minute), wire(t, rest)); len(b.found()) != 1 || len(b.missing) != 0 {
			t.Errorf("%s: found %v, missing %v", name, b.found(), b.missing)
		}
	}
}

// TestKnownAnswers leaves out those that had better be told again.
func TestKnownAnswers(t *testing.T) {
	b := newTestBrowser()
	b.handle(epoch, response(t, serviceOf("whole", "10.0.0.2"), announced))
	half := serviceOf("half", "10.0.0.3")
	b.handle(epoch, wire(t, &dns.Msg{Answer: half.records(setOf(partSubtype))}))
	now := epoch.Add(time.Second)
	q := b.expire(now, nil)
	if len(q.Answer) != 1 || q.Answer[0].(*dns.PTR).Ptr != "whole._moq._udp.local." || q.Answer[0].Header().Ttl != 4499 {
		t.Errorf("known answers %v", q.Answer)
	}
	for k, set := range b.cache { // the details stay
		if k.rtype != dns.TypePTR {
			for _, o := range set {
				o.expires = epoch.Add(2 * time.Hour)
			}
		}
	}
	b.next = epoch.Add(otherTTL / 2 * time.Second)
	if q := b.expire(b.next, nil); len(q.Answer) != 0 {
		t.Errorf("after half of the lifetime: %v", q.Answer)
	}
}

// TestRogueFlood bounds what one interface can make us keep.
func TestRogueFlood(t *testing.T) {
	b := newTestBrowser()
	for i := range maxInstances + 100 {
		m := response(t, serviceOf(fmt.Sprintf("rogue%d", i), "10.0.0.2"), announced)
		for _, rr := range m.Answer {
			rr.Header().Ttl = 1 << 31
		}
		b.handle(epoch, m)
	}
	if got := len(b.instances()); got != maxInstances || !b.full {
		t.Errorf("%d instances, full %v", got, b.full)
	}
	many := serviceOf("rogue0")
	for i := range 4 * maxSet {
		many.addrs = append(many.addrs, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
	}
	b.handle(epoch, response(t, many, announced))
	if got := len(b.cache[key{"rogue0.local.", dns.TypeA}]); got != maxSet {
		t.Errorf("%d addresses", got)
	}
	// An absurd lifetime counts as the longest that is sensible, and with the pointers all else goes.
	b.expire(epoch.Add(maxTTL), nil)
	if len(b.cache) != 0 {
		t.Errorf("%d sets are kept", len(b.cache))
	}
}

// TestNamesThatPass lets short-lived names come and go: nothing of them is kept.
func TestNamesThatPass(t *testing.T) {
	b := newTestBrowser()
	now := epoch
	for i := range 200 {
		m := response(t, serviceOf(fmt.Sprintf("rogue%d", i), "10.0.0.2"), announced)
		m.Answer[0].Header().Ttl = 1 // the pointer; all else is to live long
		b.handle(now, m)
		now = now.Add(2 * time.Second)
		b.expire(now, nil)
	}
	if len(b.cache) != 0 || len(b.missing) != 0 {
		t.Errorf("kept: %d sets, %d searches", len(b.cache), len(b.missing))
	}
}

// TestManyDue spreads many questions over packets, and never asks faster than the spacing.
func TestManyDue(t *testing.T) {
	b := newTestBrowser()
	b.next = epoch.Add(time.Hour)
	for i := range 100 {
		b.handle(epoch, response(t, serviceOf(fmt.Sprintf("p%02d", i), "10.0.0.2"), announced))
	}
	var last time.Time
	questions := 0
	for now := epoch; now.Before(epoch.Add(101 * time.Second)); now = b.deadline() {
		q := b.expire(now, nil)
		if q == nil {
			continue
		}
		if len(q.Question) > maxQuestions || now.Sub(last) < querySpacing {
			t.Fatalf("%d questions, %v after the last", len(q.Question), now.Sub(last))
		}
		last, questions = now, questions+len(q.Question)
	}
	if questions != 200 {
		t.Errorf("%d questions, want one for each SRV and A", questions)
	}
}
