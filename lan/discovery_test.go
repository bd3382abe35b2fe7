package lan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// office is n hosts with one interface each on one wire.
func office(n int) (*segment, []*fakeHost) {
	s := new(segment)
	var hosts []*fakeHost
	for i := range n {
		h := newHost(s)
		h.plug(2, "eth0", "office", fmt.Sprintf("10.0.0.%d/24", i+1), fmt.Sprintf("fd00::%d/64", i+1))
		hosts = append(hosts, h)
	}
	return s, hosts
}

func TestTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(2)
		a := boot(t, hosts[0], 0xaa, nil)
		elapse(10 * time.Second)
		b := boot(t, hosts[1], 0xbb, nil)
		begin := time.Now()
		peers, err := a.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 1200*time.Millisecond {
			t.Errorf("found after %v", took)
		}
		elapse(time.Second)
		if len(peers) != 1 || b.dials() != "" || peers[0].Address != "moqt://10.0.0.2:4443" || fmt.Sprint(peers[0].Addrs) != "[10.0.0.2:4443 [fd00::2]:4443]" {
			t.Errorf("a dials %+v, b dials %q", peers, b.dials())
		}
		credential := strings.TrimPrefix(peers[0].Path, Prefix)
		if !b.Admits(credential) || a.Admits(credential) || b.Admits("") || b.Admits(credential+"0") {
			t.Error("the credential does not open b, and b alone")
		}
		if !isReady(a.Discovery) || !isReady(b.Discovery) {
			t.Error("not ready")
		}
		begin = time.Now()
		_ = b.Close()
		if peers, err = a.Next(t.Context(), peers); err != nil || len(peers) != 0 || time.Since(begin) > 1500*time.Millisecond {
			t.Errorf("after the goodbye: %v, %v, %v", peers, err, time.Since(begin))
		}
		for _, m := range []*machine{a, b} {
			if strings.Contains(m.logs.String(), credential) {
				t.Errorf("the credential is logged: %s", m.logs)
			}
		}
	})
}

func TestFive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hosts := office(5)
		var all []*machine
		for i, h := range hosts {
			all = append(all, boot(t, h, byte(0xa1+i), nil))
		}
		elapse(3 * time.Second)
		want := []string{"a2 a3 a4 a5", "a3 a4 a5", "a4 a5", "a5", ""}
		check := func(when string) {
			for i, m := range all {
				if got := m.dials(); got != want[i] {
					t.Errorf("%s: %x dials %q, want %q", when, 0xa1+i, got, want[i])
				}
			}
		}
		check("at first")
		busy := s.count()
		elapse(3 * time.Hour)
		check("after three hours")
		// Two families; each relay asks once a minute, and refreshes four others every 96 s. Answers are shared.
		if perMinute := (s.count() - busy) / 180; perMinute > 60 {
			t.Errorf("%d packets a minute", perMinute)
		}
	})
}

func TestGroups(t *testing.T) {
	other := strings.Repeat("1", 64)
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(6)
		secret := func(text string) func(*Config) { return func(c *Config) { c.Secret, _ = ParseSecret(text) } }
		app := func(c *Config) { c.App = "rack7" }
		var all []*machine
		for i, change := range []func(*Config){secret(testSecret), secret(testSecret), secret(other), nil, nil, app} {
			all = append(all, boot(t, hosts[i], byte(0xa1+i), change))
		}
		elapse(5 * time.Second)
		for i, want := range []string{"a2", "", "", "a5", "", ""} {
			if got := all[i].dials(); got != want {
				t.Errorf("%x dials %q, want %q", 0xa1+i, got, want)
			}
		}
	})
}

// TestCrash is a relay that says no goodbye: gone when its records are, and back at once when it starts anew.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hosts := office(2)
		a, b := boot(t, hosts[0], 0xaa, nil), boot(t, hosts[1], 0xbb, nil)
		elapse(3 * time.Second)
		s.isolate(hosts[1], true)
		_ = b.Close()
		elapse(100 * time.Second)
		if a.dials() != "bb" {
			t.Errorf("gone before its time: %q", a.dials())
		}
		elapse(30 * time.Second)
		if a.dials() != "" {
			t.Errorf("still there: %q", a.dials())
		}
		s.isolate(hosts[1], false)
		boot(t, hosts[1], 0xcc, nil)
		elapse(2 * time.Second)
		if a.dials() != "cc" {
			t.Errorf("after the restart: %q", a.dials())
		}
	})
}

// TestRestartUnderNode is the same with a node: one peer all the time, with the newest instance.
func TestRestartUnderNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hosts := office(2)
		node := func(c *Config) { c.Node = "https://b.example/?cost=7" }
		a, b := boot(t, hosts[0], 0x0a, nil), boot(t, hosts[1], 0xbb, node)
		elapse(3 * time.Second)
		s.isolate(hosts[1], true)
		_ = b.Close()
		s.isolate(hosts[1], false)
		boot(t, hosts[1], 0xb0, node)
		elapse(2 * time.Second)
		if a.dials() != "b0" {
			t.Errorf("dials %q", a.dials())
		}
		elapse(5 * time.Minute)
		if a.dials() != "b0" {
			t.Errorf("dials %q", a.dials())
		}
		if a.logs.count("is gone") != 0 || a.logs.count("has changed") != 1 || a.logs.count("found a peer") != 1 {
			t.Errorf("logs: %s", a.logs)
		}
	})
}

// TestPartition heals without anybody starting anew, also when the records have expired in the meantime.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hosts := office(2)
		a, b := boot(t, hosts[0], 0xaa, nil), boot(t, hosts[1], 0xbb, nil)
		elapse(3 * time.Second)
		for _, gap := range []time.Duration{30 * time.Second, 10 * time.Minute, 3 * time.Hour} {
			s.isolate(hosts[1], true)
			elapse(gap)
			s.isolate(hosts[1], false)
			elapse(65 * time.Second)
			if a.dials() != "bb" || b.dials() != "" {
				t.Errorf("after %v: %q, %q", gap, a.dials(), b.dials())
			}
		}
	})
}

// TestInterfaces come, go and change: three per host, of which one is shared, and both have one address in common.
func TestInterfaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(2)
		for i, h := range hosts {
			h.plug(3, "docker0", fmt.Sprintf("docker%d", i), "172.17.0.1/16")
			h.plug(4, "eth1", fmt.Sprintf("lab%d", i), fmt.Sprintf("192.168.%d.1/24", i))
		}
		a, b := boot(t, hosts[0], 0xaa, nil), boot(t, hosts[1], 0xbb, nil)
		elapse(3 * time.Second)
		check := func(when, want string) {
			t.Helper()
			if got := a.addresses(); got != want {
				t.Errorf("%s: a dials %q, want %q", when, got, want)
			}
		}
		check("at first", "[10.0.0.2:4443 [fd00::2]:4443]")

		hosts[1].plug(4, "eth1", "lab0", "192.168.0.2/24")
		elapse(8 * time.Second)
		check("a second shared interface", "[10.0.0.2:4443 192.168.0.2:4443 [fd00::2]:4443]")

		hosts[1].plug(2, "eth0", "office", "10.0.0.22/24", "fd00::2/64")
		elapse(8 * time.Second)
		check("another address", "[10.0.0.22:4443 192.168.0.2:4443 [fd00::2]:4443]")

		hosts[0].unplug("eth0")
		elapse(8 * time.Second)
		check("our interface is down", "[192.168.0.2:4443]")
		hosts[0].unplug("eth1")
		elapse(8 * time.Second)
		check("both are", "")
		hosts[0].plug(12, "eth0", "office", "10.0.0.1/24") // deleted and created anew
		elapse(8 * time.Second)
		check("back", "[10.0.0.22:4443 [fd00::2]:4443]")
		if b.dials() != "" || a.logs.count("level=WARN") != 0 {
			t.Errorf("b dials %q; logs: %s", b.dials(), a.logs)
		}
	})
}

// TestIPv6Off disables IPv6 while two relays run: before the next look at the interfaces sending fails.
func TestIPv6Off(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(2)
		a, b := boot(t, hosts[0], 0xaa, nil), boot(t, hosts[1], 0xbb, nil)
		elapse(7 * time.Second)
		for i, h := range hosts {
			h.fail(func() { h.sendErr[six], h.openErr[six] = errBroken, errBroken })
			h.plug(2, "eth0", "office", fmt.Sprintf("10.0.0.%d/24", i+1))
		}
		elapse(10 * time.Minute)
		if got := a.addresses(); got != "[10.0.0.2:4443]" || b.dials() != "" {
			t.Errorf("a dials %q", got)
		}
		for i, h := range hosts {
			h.fail(func() { clear(h.sendErr); clear(h.openErr) })
			h.plug(2, "eth0", "office", fmt.Sprintf("10.0.0.%d/24", i+1), fmt.Sprintf("fd00::%d/64", i+1))
		}
		elapse(10 * time.Second)
		if got := a.addresses(); got != "[10.0.0.2:4443 [fd00::2]:4443]" {
			t.Errorf("back on: %q", got)
		}
		for _, m := range []*machine{a, b} {
			if n := m.logs.count("level=WARN"); n > 2 {
				t.Errorf("%d warnings: %s", n, m.logs)
			}
		}
	})
}

// TestFailing goes through everything that an interface can refuse for ten minutes: no busy loop, each cause said once,
// not ready, and all well a few seconds after it ends.
func TestFailing(t *testing.T) {
	for name, set := range map[string]func(*fakeHost, error){
		"open": func(h *fakeHost, err error) { h.openErr[four], h.openErr[six] = err, err },
		"send": func(h *fakeHost, err error) { h.sendErr[four], h.sendErr[six] = err, err },
		"read": func(h *fakeHost, err error) { h.readErr = err },
		"list": func(h *fakeHost, err error) { h.listErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, hosts := office(2)
				h := hosts[0]
				set(h, errBroken)
				a, b := boot(t, h, 0xaa, nil), boot(t, hosts[1], 0xbb, nil)
				elapse(10 * time.Minute)
				if opened, tried := h.counts(); opened > 260 || tried > 2500 {
					t.Errorf("%d sockets opened, %d packets sent", opened, tried)
				}
				if name != "read" && isReady(a.Discovery) {
					t.Error("ready although nothing was announced")
				}
				if n := a.logs.count("level=WARN"); n > 3 || n == 0 && name != "read" {
					t.Errorf("%d warnings: %s", n, a.logs)
				}
				h.fail(func() { set(h, nil) })
				elapse(10 * time.Second)
				if !isReady(a.Discovery) || a.dials() != "bb" || b.dials() != "" {
					t.Errorf("ready %v, dials %q", isReady(a.Discovery), a.dials())
				}
			})
		})
	}
}

// TestNoNetwork starts without any interface (L14).
func TestNoNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hosts := office(2)
		h := newHost(s)
		a, b := boot(t, h, 0xaa, nil), boot(t, hosts[1], 0xbb, nil)
		elapse(time.Minute)
		if isReady(a.Discovery) || a.logs.count("announce on no interface") != 1 {
			t.Errorf("ready %v; logs: %s", isReady(a.Discovery), a.logs)
		}
		h.plug(2, "eth0", "office", "10.0.0.1/24")
		elapse(10 * time.Second)
		if !isReady(a.Discovery) || a.dials() != "bb" || b.dials() != "" {
			t.Errorf("ready %v, dials %q", isReady(a.Discovery), a.dials())
		}
		h.unplug("eth0")
		elapse(time.Minute)
		if a.logs.count("announce on no interface") != 2 || a.dials() != "" {
			t.Errorf("dials %q; logs: %s", a.dials(), a.logs)
		}
	})
}

// TestBind advertises only where the listener can be reached.
func TestBind(t *testing.T) {
	for bind, want := range map[string]string{
		"::": "[10.0.0.2:4443 [fd00::2]:4443]", "0.0.0.0": "[10.0.0.2:4443]", "fd00::2": "[[fd00::2]:4443]", "127.0.0.1": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			_, hosts := office(2)
			a := boot(t, hosts[0], 0xaa, nil)
			boot(t, hosts[1], 0xbb, func(c *Config) { c.Bind = netip.MustParseAddr(bind) })
			elapse(3 * time.Second)
			if got := a.addresses(); got != want {
				t.Errorf("bound to %s: %q", bind, got)
			}
		})
	}
}

// TestNewCertificate changes the record, and with a secret the credential.
func TestNewCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(2)
		secret := func(c *Config) { c.Secret, _ = ParseSecret(testSecret) }
		a, b := boot(t, hosts[0], 0xaa, secret), boot(t, hosts[1], 0xbb, secret)
		before, err := a.Next(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		b.SetFingerprint(strings.Repeat("c", 64))
		after, err := a.Next(t.Context(), before)
		if err != nil || len(after) != 1 || after[0].Fingerprint != strings.Repeat("c", 64) {
			t.Fatalf("%+v, %v", after, err)
		}
		if b.Admits(strings.TrimPrefix(before[0].Path, Prefix)) || !b.Admits(strings.TrimPrefix(after[0].Path, Prefix)) {
			t.Error("the credential does not go with the record")
		}
	})
}

// TestTakenName gives up a name that somebody else has.
func TestTakenName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(3)
		boot(t, hosts[0], 0xbb, nil)
		elapse(5 * time.Second)
		source := &counter{}
		late := boot(t, hosts[1], 0, func(c *Config) { c.random = source })
		watcher := boot(t, hosts[2], 0x11, nil)
		elapse(10 * time.Second)
		if late.logs.count("has our LAN instance name") != 1 {
			t.Errorf("logs: %s", late.logs)
		}
		if got := watcher.dials(); got != "bb bc" {
			t.Errorf("found %q", got)
		}
	})
}

// counter is a source whose names begin as those of another relay and differ from the third draw on.
type counter struct{ draws int }

func (c *counter) Read(b []byte) (int, error) {
	c.draws++
	v := byte(0xbb) // the name
	if c.draws == 2 {
		v = 0x01 // the nonce
	}
	if c.draws > 2 {
		v = 0xbc
	}
	return repeat(v).Read(b)
}

// TestRogue puts rubbish on the wire: nothing is dialed, nothing is logged, and the true peer is still found.
func TestRogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, hosts := office(2)
		secret := func(c *Config) { c.Secret, _ = ParseSecret(testSecret) }
		a := boot(t, hosts[0], 0xaa, secret)
		elapse(3 * time.Second)
		from := netip.MustParseAddrPort("10.0.0.99:5353")
		send := func(data []byte, unicast bool, from netip.AddrPort) {
			s.inject("office", four, datagram{data: data, from: from, unicast: unicast})
		}
		forged := serviceOf("f0", "10.0.0.99")
		forged.record.advert = strings.Repeat("0", 64)
		packed, err := forged.response(announced).Pack()
		if err != nil {
			t.Fatal(err)
		}
		for cut := range packed {
			send(packed[:cut], false, from)
		}
		send(packed, false, from)
		honest := recordOf("f1")
		a.group.seal(&honest)
		foreign, err := (&service{record: honest, addrs: addrs("10.0.0.99")}).response(announced).Pack()
		if err != nil {
			t.Fatal(err)
		}
		send(foreign, true, netip.MustParseAddrPort("203.0.113.9:5353")) // not a neighbour
		send(foreign, false, netip.MustParseAddrPort("10.0.0.99:40000")) // not from the port of responses
		elapse(time.Second)
		if a.dials() != "" || a.logs.count("level=WARN") != 0 {
			t.Errorf("dials %q; logs: %s", a.dials(), a.logs)
		}
		boot(t, hosts[1], 0xbb, secret)
		elapse(3 * time.Second)
		if a.dials() != "bb" {
			t.Errorf("dials %q", a.dials())
		}
		send(foreign, true, from) // the control: from a neighbour it counts
		elapse(time.Second)
		if a.dials() != "bb f1" {
			t.Errorf("dials %q", a.dials())
		}
	})
}

func TestStartRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  Config
		want error
	}{
		"nothing to advertise": {Config{Port: 1}, ErrNoIdentity},
		"node with a token":    {Config{Port: 1, Node: "https://a/?jwt=x"}, ErrNode},
		"no randomness":        {Config{Port: 1, Node: "https://a/", random: strings.NewReader("")}, nil},
		"app":                  {Config{Port: 1, Node: "https://a/", App: "A B"}, nil},
	} {
		d, err := Start(test.cfg)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s: started", name)
		}
		if test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, hosts := office(1)
		a := boot(t, hosts[0], 0xaa, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.Next(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		go func() { time.Sleep(time.Second); _ = a.Close() }()
		if _, err := a.Next(t.Context(), nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}
