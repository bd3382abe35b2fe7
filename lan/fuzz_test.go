package lan

import (
	"testing"
	"time"

	"github.com/miekg/dns"
)

// FuzzLink gives one interface two packets of anybody and lets an hour pass: it keeps within its limits, and what it
// sends can be packed.
func FuzzLink(f *testing.F) {
	for _, set := range []partSet{announced, everyPart, setOf(partSubtype), setOf(partSRV, partTXT), setOf(partA, partAAAA)} {
		s := serviceOf("peer", "10.0.0.2", "fd00::2")
		data, err := s.response(set).Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	own := newResponder(epoch, serviceOf("own", "10.0.0.1"), middle)
	for _, m := range []*dns.Msg{own.probe(), query(subtypeName("default"), dns.TypePTR), query(serviceName, dns.TypeANY), query(metaName, dns.TypePTR)} {
		data, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		l := newLink(epoch, serviceOf("own", "10.0.0.1"), middle)
		now := epoch
		send := func(out []outgoing) {
			for _, o := range out {
				if _, err := o.msg.Pack(); err != nil {
					t.Fatalf("%v: %v", err, o.msg)
				}
			}
		}
		step := func(until time.Time, most int) {
			for range most {
				at := l.deadline()
				if at.After(until) {
					return
				}
				if at.After(now) {
					now = at
				}
				send(l.expire(now))
			}
			t.Fatal("busy loop")
		}
		step(epoch.Add(3*time.Second), 100)
		for _, data := range [][]byte{first, second} {
			m := new(dns.Msg)
			if m.Unpack(data) == nil {
				send(l.handle(now, m, neighbour))
			}
			step(now.Add(time.Second), 200)
		}
		d := newDirectory(group{app: "default"}, recordOf("0"))
		d.update([][]found{l.browser.found()})
		for _, p := range d.list() {
			if len(p.Path) != len(Prefix)+32 {
				t.Fatalf("path %q", p.Path)
			}
		}
		step(epoch.Add(2*time.Hour), 20_000)
		if len(l.browser.cache) != 0 {
			t.Fatalf("kept: %v", l.browser.cache)
		}
	})
}
