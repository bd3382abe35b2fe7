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

var neighbour = netip.MustParseAddrPort("10.0.0.9:5353")

// established returns a responder that announced itself a minute ago.
func established(t *testing.T, s service) (*responder, time.Time) {
	t.Helper()
	r := newResponder(epoch, s, middle)
	run(r, epoch.Add(10*time.Second))
	if !r.established() {
		t.Fatal("not established")
	}
	return r, epoch.Add(time.Minute)
}

// run lets a responder do what is due until end, and tells what it sends.
func run(r *responder, end time.Time) (sent []string) {
	for range 1000 {
		at, ok := r.deadline()
		if !ok || at.After(end) {
			return sent
		}
		for _, o := range r.expire(at) {
			sent = append(sent, fmt.Sprintf("%.3f: %s", at.Sub(epoch).Seconds(), show(o)))
		}
	}
	return append(sent, "busy loop")
}

// show describes a packet: Q for a query, R for a response; then the types in each section.
func show(o outgoing) string {
	text := "Q"
	if o.msg.Response {
		text = "R"
	}
	for _, q := range o.msg.Question {
		text += " ?" + dns.TypeToString[q.Qtype]
	}
	for _, section := range [][]dns.RR{o.msg.Answer, o.msg.Ns, o.msg.Extra} {
		text += " |"
		for _, rr := range section {
			text += " " + dns.TypeToString[rr.Header().Rrtype]
		}
	}
	return text
}

func query(name string, rtype uint16) *dns.Msg {
	m := new(dns.Msg)
	ask(m, name, rtype)
	return m
}

// TestProbeAndAnnounce is the start: three probes, two announcements.
func TestProbeAndAnnounce(t *testing.T) {
	r := newResponder(epoch, serviceOf("peer", "10.0.0.2", "fd00::2"), middle)
	want := []string{
		"0.125: Q ?ANY ?ANY | | SRV TXT A AAAA |",
		"0.375: Q ?ANY ?ANY | | SRV TXT A AAAA |",
		"0.625: Q ?ANY ?ANY | | SRV TXT A AAAA |",
		"0.875: R | PTR PTR SRV TXT A AAAA | |",
		"1.875: R | PTR PTR SRV TXT A AAAA | |",
	}
	if diff := cmp.Diff(want, run(r, epoch.Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
}

// TestRecords is the table of what a record looks like on the wire.
func TestRecords(t *testing.T) {
	s := serviceOf("0123456789abcdef", "10.0.0.2", "fd00::2")
	var got []string
	for _, rr := range response(t, s, everyPart).Answer {
		h := rr.Header()
		flush := h.Class&flushBit != 0
		h.Class &= classMask
		got = append(got, strings.Join(strings.Fields(rr.String()), " ")+fmt.Sprintf(" %v", flush))
	}
	i := "0123456789abcdef"
	want := []string{
		"_default._sub._moq._udp.local. 4500 IN PTR " + i + "._moq._udp.local. false",
		"_moq._udp.local. 4500 IN PTR " + i + "._moq._udp.local. false",
		"_services._dns-sd._udp.local. 4500 IN PTR _moq._udp.local. false",
		i + "._moq._udp.local. 120 IN SRV 0 0 4443 " + i + ".local. true",
		i + `._moq._udp.local. 4500 IN TXT "fp=` + strings.Repeat("a", 64) + `" "n=` + strings.Repeat("0", 32) + `" true`,
		i + ".local. 120 IN A 10.0.0.2 true",
		i + ".local. 120 IN AAAA fd00::2 true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnswers(t *testing.T) {
	name, host := "peer._moq._udp.local.", "peer.local."
	for question, want := range map[*dns.Msg]string{
		query("_default._sub._moq._udp.local.", dns.TypePTR): "60.030: R | PTR | | SRV TXT A AAAA",
		query("_DEFAULT._sub._MoQ._udp.LOCAL.", dns.TypePTR): "60.030: R | PTR | | SRV TXT A AAAA",
		query("_moq._udp.local.", dns.TypePTR):               "60.030: R | PTR | | SRV TXT A AAAA",
		query("_moq._udp.local.", dns.TypeANY):               "60.030: R | PTR | | SRV TXT A AAAA",
		query("_services._dns-sd._udp.local.", dns.TypePTR):  "60.030: R | PTR | |",
		query(name, dns.TypeSRV):                             "R | SRV | |",
		query(name, dns.TypeTXT):                             "R | TXT | |",
		query(name, dns.TypeANY):                             "R | SRV TXT | |",
		query(host, dns.TypeA):                               "R | A | |",
		query(host, dns.TypeAAAA):                            "R | AAAA | |",
		query(host, dns.TypeANY):                             "R | A AAAA | |",
		query(name, dns.TypeA):                               "",
		query("_other._sub._moq._udp.local.", dns.TypePTR):   "",
		query("other._moq._udp.local.", dns.TypeANY):         "",
		query("_moq._udp.local.", dns.TypeSRV):               "",
	} {
		r, now := established(t, serviceOf("peer", "10.0.0.2", "fd00::2"))
		var got []string
		for _, o := range r.handle(now, wire(t, question), neighbour) {
			got = append(got, show(o))
		}
		got = append(got, run(r, now.Add(time.Minute))...)
		if strings.Join(got, "; ") != want {
			t.Errorf("%v: %q, want %q", question.Question[0].String(), got, want)
		}
	}
}

// TestBothQuestionsAtOnce get one packet.
func TestBothQuestionsAtOnce(t *testing.T) {
	r, now := established(t, serviceOf("peer", "10.0.0.2"))
	m := query("_default._sub._moq._udp.local.", dns.TypePTR)
	ask(m, "peer._moq._udp.local.", dns.TypeSRV)
	m.Question[0].Qclass |= flushBit // asks for a unicast answer, and gets one that all hear
	if out := r.handle(now, wire(t, m), neighbour); len(out) != 0 {
		t.Errorf("at once: %v", out)
	}
	if got := run(r, now.Add(time.Minute)); len(got) != 1 || got[0] != "60.030: R | PTR SRV | | TXT A" {
		t.Errorf("got %q", got)
	}
}

// TestQuiet: nothing is answered before the name is ours, to who knows, or again within a second.
func TestQuiet(t *testing.T) {
	sub := "_default._sub._moq._udp.local."
	early := newResponder(epoch, serviceOf("peer", "10.0.0.2"), middle)
	run(early, epoch.Add(700*time.Millisecond))
	if out := early.handle(epoch.Add(700*time.Millisecond), query("peer._moq._udp.local.", dns.TypeANY), neighbour); len(out) != 0 {
		t.Error("answers while it probes")
	}

	r, now := established(t, serviceOf("peer", "10.0.0.2"))
	knows := query(sub, dns.TypePTR)
	knows.Answer = []dns.RR{pointer(sub, "peer._moq._udp.local.")}
	if r.handle(now, wire(t, knows), neighbour); r.pending != 0 {
		t.Error("answers what is known")
	}
	knows.Answer[0].Header().Ttl = otherTTL/2 - 1
	if r.handle(now, wire(t, knows), neighbour); r.pending == 0 {
		t.Error("lets half of the lifetime pass")
	}
	if got := run(r, now.Add(time.Second)); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	at := now.Add(30 * time.Millisecond)
	for _, q := range []*dns.Msg{query(sub, dns.TypePTR), query("peer._moq._udp.local.", dns.TypeSRV)} {
		if out := r.handle(at.Add(900*time.Millisecond), q, neighbour); len(out) != 0 || r.pending != 0 {
			t.Error("repeats itself within a second")
		}
	}
	probe := query("peer._moq._udp.local.", dns.TypeANY)
	probe.Ns = r.service.records(setOf(partSRV))
	if out := r.handle(at.Add(300*time.Millisecond), probe, neighbour); len(out) != 1 {
		t.Error("does not defend its name")
	}
}

// TestLegacy answers plain resolvers to their port, with short lifetimes, and not without end.
func TestLegacy(t *testing.T) {
	r, now := established(t, serviceOf("peer", "10.0.0.2"))
	from := netip.MustParseAddrPort("10.0.0.9:40000")
	q := query("_default._sub._moq._udp.local.", dns.TypePTR)
	q.Id = 77
	out := r.handle(now, wire(t, q), from)
	if len(out) != 1 || out[0].to != from || show(out[0]) != "R ?PTR | PTR | | SRV TXT A" || out[0].msg.Id != 77 {
		t.Fatalf("answer %+v", out)
	}
	for _, rr := range append(out[0].msg.Answer, out[0].msg.Extra...) {
		if h := rr.Header(); h.Ttl > legacyTTL || h.Class != dns.ClassINET {
			t.Errorf("%v", rr)
		}
	}
	for _, rr := range r.service.records(everyPart) {
		if rr.Header().Ttl < hostTTL {
			t.Errorf("the answer has changed our records: %v", rr)
		}
	}
	count := 0
	for range 100 {
		count += len(r.handle(now, q, from))
	}
	if count != legacyLimit-1 {
		t.Errorf("%d more answers within a second", count)
	}
	if len(r.handle(now.Add(time.Second), q, from)) != 1 {
		t.Error("silent for ever")
	}
}

// TestUpdate announces a change twice, without probing anew, and a goodbye takes all back.
func TestUpdate(t *testing.T) {
	r, now := established(t, serviceOf("peer", "10.0.0.2"))
	r.update(now, serviceOf("peer", "10.0.0.3"))
	want := []string{"60.000: R | PTR PTR SRV TXT A | |", "61.000: R | PTR PTR SRV TXT A | |"}
	if diff := cmp.Diff(want, run(r, now.Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
	bye := r.goodbye()
	for _, rr := range bye.Answer {
		if rr.Header().Ttl != 0 {
			t.Errorf("stays: %v", rr)
		}
	}
	if len(bye.Answer) != 5 {
		t.Errorf("goodbye %v", bye.Answer)
	}
	if m := newResponder(epoch, serviceOf("peer", "10.0.0.2"), middle).goodbye(); m != nil {
		t.Error("takes back what it never said")
	}
}

// TestGreet announces to a newcomer, but not at every one.
func TestGreet(t *testing.T) {
	r, now := established(t, serviceOf("peer", "10.0.0.2"))
	for i := range 100 {
		r.greet(now.Add(time.Duration(i) * time.Millisecond))
	}
	if got := run(r, now.Add(time.Minute)); len(got) != 1 || got[0] != "60.030: R | PTR PTR SRV TXT A | |" {
		t.Errorf("got %q", got)
	}
	r.greet(now.Add(10 * time.Second))
	if _, ok := r.deadline(); ok {
		t.Error("announces again after ten seconds")
	}
}

// TestConflict tells other owners of our name from ourselves.
func TestConflict(t *testing.T) {
	ours, theirs := serviceOf("peer", "10.0.0.2"), serviceOf("peer", "10.0.0.7")
	theirs.record.nonce = strings.Repeat("1", 32)
	elsewhere := serviceOf("peer", "192.168.0.1") // our announcement on another interface
	for name, test := range map[string]struct {
		heard service
		after time.Duration
		want  bool
	}{
		"theirs":             {theirs, 500 * time.Millisecond, true},
		"ours":               {ours, 500 * time.Millisecond, false},
		"ours, other place":  {elsewhere, 500 * time.Millisecond, false},
		"before the probes":  {theirs, 0, false},
		"after the announce": {theirs, 5 * time.Second, false},
	} {
		r := newResponder(epoch, ours, middle)
		run(r, epoch.Add(test.after))
		if r.hear(response(t, test.heard, announced)); r.conflict != test.want {
			t.Errorf("%s: conflict %v", name, r.conflict)
		}
	}
}
