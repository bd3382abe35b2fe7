package endpoint_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/internal/netsim"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// dead is an address at which nothing answers.
func dead(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, byte(i)}) }

// lookups is a resolver with delays.
type lookups struct {
	addrs map[string][]netip.Addr // by network
	delay map[string]time.Duration
	fail  map[string]error
	calls atomic.Int32
}

func (l *lookups) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	l.calls.Add(1)
	timer := time.NewTimer(l.delay[network])
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := l.fail[network]; err != nil {
		return nil, err
	}
	if len(l.addrs[network]) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return l.addrs[network], nil
}

// Addresses are tried a quarter of a second apart, those that fail sooner make way, and a dial takes as
// long as it has to. A handshake takes 10 ms here, 25 ms with a session.
func TestRace(t *testing.T) {
	good := relayHost
	closed := netip.MustParseAddr("10.0.0.4")   // refuses, after a round trip
	stranger := netip.MustParseAddr("10.0.0.5") // has a certificate that nobody trusts
	v6 := netip.MustParseAddr("fd00::1")
	many := make([]netip.Addr, 0, 9)
	for i := range 8 {
		many = append(many, dead(i))
	}
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		ip4, ip6   []netip.Addr
		delay      map[string]time.Duration
		want       time.Duration // on raw QUIC
		wantFailed string
	}{
		"good":                       {ip4: []netip.Addr{good}, want: 10 * ms},
		"dead first":                 {ip4: []netip.Addr{dead(1), good}, want: 260 * ms},
		"dead IPv6":                  {ip4: []netip.Addr{good}, ip6: []netip.Addr{v6}, want: 260 * ms},
		"IPv6 in turn":               {ip4: []netip.Addr{good}, ip6: []netip.Addr{v6, netip.MustParseAddr("fd00::2")}, want: 260 * ms},
		"eight dead":                 {ip4: append(many, good), want: 2010 * ms},
		"refused first":              {ip4: []netip.Addr{closed, good}, want: 20 * ms},
		"untrusted first":            {ip4: []netip.Addr{stranger, good}, want: 20 * ms},
		"IPv6 unanswered":            {ip4: []netip.Addr{good}, delay: map[string]time.Duration{"ip6": time.Hour}, want: 60 * ms},
		"IPv6 answered late":         {ip4: []netip.Addr{good}, ip6: []netip.Addr{v6}, delay: map[string]time.Duration{"ip6": 30 * ms}, want: 290 * ms},
		"IPv4 answered late":         {ip4: []netip.Addr{good}, ip6: []netip.Addr{v6}, delay: map[string]time.Duration{"ip4": 100 * ms}, want: 260 * ms},
		"IPv4 answered very late":    {ip4: []netip.Addr{good}, ip6: []netip.Addr{v6}, delay: map[string]time.Duration{"ip4": 400 * ms}, want: 410 * ms},
		"both answered late":         {ip4: []netip.Addr{good}, delay: map[string]time.Duration{"ip4": 500 * ms, "ip6": 500 * ms}, want: 510 * ms},
		"unknown":                    {wantFailed: "no such host"},
		"all dead":                   {ip4: []netip.Addr{dead(1), dead(2)}, want: 5250 * ms, wantFailed: "10.9.0.1:443: timeout"},
		"all dead and one unwilling": {ip4: []netip.Addr{closed, dead(2)}, want: 5010 * ms, wantFailed: "10.0.0.4:443: CRYPTO_ERROR"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, "moqt")
				s := certificates(t)
				w.listen(t, s, nil)
				w.listen(t, s, func(c *endpoint.Config) {
					c.PacketConn, c.Protocols = w.socket(t, "10.0.0.4:443"), []string{"another"}
				})
				w.listen(t, certificates(t), func(c *endpoint.Config) { c.PacketConn = w.socket(t, "10.0.0.5:443") })
				resolver := &lookups{addrs: map[string][]netip.Addr{"ip4": test.ip4, "ip6": test.ip6}, delay: test.delay}
				d := w.dialer(t, s, func(c *endpoint.DialConfig) {
					c.Resolver = resolver
					c.TLS.ServerName = "localhost"
				})
				for range 2 { // each dial resolves anew
					start := time.Now()
					c, err := d.Dial(t.Context(), target(t, "moqt://relay.example/"))
					if took := time.Since(start); took != test.want {
						t.Errorf("took %v, want %v", took, test.want)
					}
					if test.wantFailed != "" {
						if err == nil || !strings.Contains(err.Error(), test.wantFailed) {
							t.Errorf("got %v", err)
						}
					} else if err != nil {
						t.Error(err)
					} else {
						c.Close(0, "")
					}
				}
				if n := resolver.calls.Load(); n != 4 {
					t.Errorf("%d lookups", n)
				}
			})
		})
	}
}

// The same race decides which session wins, and losers are closed.
func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simulated(t, "https")
		s := certificates(t)
		relay := w.listen(t, s, nil)
		impostor := w.listen(t, s, func(c *endpoint.Config) { c.PacketConn = w.socket(t, "10.0.0.4:443") })
		stuck := w.listen(t, s, func(c *endpoint.Config) { c.PacketConn = w.socket(t, "10.0.0.5:443") })
		d := w.dialer(t, s, nil)
		to := target(t, "https://localhost/room")
		for _, l := range []*endpoint.Listener{impostor, stuck, relay} {
			to.Addrs = append(to.Addrs, netip.MustParseAddrPort(l.Addr().String()))
		}
		losers := make(chan transport.Conn, 2)
		to.Confirm = func(ctx context.Context, c transport.Conn) error {
			if c.Info().Remote.String() != relay.Addr().String() {
				losers <- c
			}
			switch c.Info().Remote.String() {
			case impostor.Addr().String():
				return errors.New("not the one")
			case stuck.Addr().String():
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}
		start := time.Now()
		client, server := connect(t, d, relay, to)
		if took := time.Since(start); took > 400*time.Millisecond {
			t.Errorf("took %v", took)
		}
		exchange(t, client, server)
		for range cap(losers) {
			wantSessionEnd(t, context.Cause((<-losers).Context()), transport.SessionError{})
		}
	})
}

// A dial ends with its context, its time or its dialer, wherever it has got to.
func TestDialEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(d *endpoint.Dialer, cancel context.CancelCauseFunc)
		want error
	}{
		"cancelled":     {func(_ *endpoint.Dialer, cancel context.CancelCauseFunc) { cancel(errTest) }, errTest},
		"dialer closed": {func(d *endpoint.Dialer, _ context.CancelCauseFunc) { _ = d.Close() }, endpoint.ErrDialerClosed},
		"out of time":   {func(*endpoint.Dialer, context.CancelCauseFunc) {}, context.DeadlineExceeded},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, "https")
				s := certificates(t)
				w.listen(t, s, nil)
				d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.Timeout = 3 * time.Second })
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				confirming := target(t, "https://10.0.0.1/")
				confirming.Confirm = func(ctx context.Context, _ transport.Conn) error {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				errs := make(chan error)
				for _, to := range []endpoint.Target{target(t, "moqt://10.9.0.1/"), confirming} {
					go func() {
						_, err := d.Dial(ctx, to)
						errs <- err
					}()
				}
				time.Sleep(time.Second)
				test.end(d, cancel)
				for range 2 {
					var dial *endpoint.DialError
					if err := <-errs; !errors.Is(err, test.want) || !errors.As(err, &dial) {
						t.Errorf("got %v, want %v", err, test.want)
					}
				}
			})
		})
	}
}

var errTest = errors.New("test")

func TestDialErrors(t *testing.T) {
	d := must(endpoint.NewDialer(endpoint.DialConfig{Addr: "127.0.0.1:0", Protocols: tokens}))(t)
	for _, test := range []struct {
		url, text string
		want      error
	}{
		{"wss:///secret?jwt=secret", "dial wss://:443: no host", endpoint.ErrHost},
		{"ws:///secret?jwt=secret", "dial ws://:80: no host", endpoint.ErrHost},
		{"tcp://relay.example:1/secret", "dial tcp://relay.example:1: no carrier for this scheme", endpoint.ErrScheme},
		{"unix:///secret", "dial unix://:443: no carrier for this scheme", endpoint.ErrScheme},
		{"https:///secret", "dial https://:443: no host", endpoint.ErrHost},
		{"moqt://127.0.0.1:99999/secret", "port", nil},
	} {
		_, err := d.Dial(t.Context(), target(t, test.url))
		var dial *endpoint.DialError
		if !errors.As(err, &dial) || !strings.Contains(err.Error(), test.text) || (test.want != nil && !errors.Is(err, test.want)) {
			t.Errorf("%s: %v", test.url, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: secret in %v", test.url, err)
		}
	}
	_ = d.Close()
	if _, err := d.Dial(t.Context(), target(t, "moqt://127.0.0.1/")); !errors.Is(err, endpoint.ErrDialerClosed) {
		t.Errorf("closed dialer: %v", err)
	}
}

// TestMovedHost: every dial asks anew, so a host that has moved is found at its new address.
func TestMovedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := simulated(t, "moqt")
		s := certificates(t)
		w.listen(t, s, nil)
		resolver := &lookups{addrs: map[string][]netip.Addr{"ip4": {dead(1)}}}
		d := w.dialer(t, s, func(c *endpoint.DialConfig) {
			c.Resolver = resolver
			c.TLS.ServerName = "localhost"
		})
		if _, err := d.Dial(t.Context(), target(t, "moqt://relay.example/")); err == nil || !strings.Contains(err.Error(), dead(1).String()) {
			t.Errorf("the old address: %v", err)
		}
		resolver.addrs = map[string][]netip.Addr{"ip4": {relayHost}}
		c, err := d.Dial(t.Context(), target(t, "moqt://relay.example/"))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Info().Remote.String(); got != netip.AddrPortFrom(relayHost, 443).String() {
			t.Errorf("connected to %s", got)
		}
		c.Close(0, "")
	})
}

// TestLookupErrors: what went wrong with both families is said once.
func TestLookupErrors(t *testing.T) {
	for name, test := range map[string]struct {
		fail map[string]error
		want string
	}{
		"alike":     {map[string]error{}, "dial moqt://relay.example:443: lookup relay.example: no such host"},
		"different": {map[string]error{"ip4": errTest}, "lookup relay.example: no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			d := must(endpoint.NewDialer(endpoint.DialConfig{
				Addr: "127.0.0.1:0", Protocols: tokens, Resolver: &lookups{fail: test.fail},
			}))(t)
			defer d.Close()
			_, err := d.Dial(t.Context(), target(t, "moqt://relay.example/"))
			text := fmt.Sprint(err)
			if strings.Count(text, "no such host") != 1 || !strings.Contains(text, test.want) {
				t.Errorf("error %q", text)
			}
			for _, err := range test.fail {
				if !strings.Contains(text, err.Error()) {
					t.Errorf("%q says nothing of %q", text, err)
				}
			}
		})
	}
}

// Trust by fingerprint, by name of the target, or not at all; and what the caller learns of it.
func TestDialTrust(t *testing.T) {
	loopback(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l := w.listen(t, s, nil)
		right := must(tlsconf.ParseFingerprint(s.Fingerprint()))(t)
		for name, test := range map[string]struct {
			trust     tlsconf.ClientConfig
			pins      []tlsconf.Fingerprint
			name      string
			want      error
			certified bool
		}{
			"no trust":            {want: x509.UnknownAuthorityError{}},
			"pin of dialer":       {trust: tlsconf.ClientConfig{Fingerprints: []tlsconf.Fingerprint{right}}, certified: true},
			"pin of target":       {pins: []tlsconf.Fingerprint{right}, certified: true},
			"wrong pin of target": {trust: tlsconf.ClientConfig{Fingerprints: []tlsconf.Fingerprint{right}}, pins: []tlsconf.Fingerprint{{}}, want: tlsconf.ErrFingerprint},
			"name of target":      {trust: trust(t, s), name: "localhost", certified: true},
			"wrong name":          {trust: trust(t, s), name: "other", want: x509.HostnameError{}},
			"insecure":            {trust: tlsconf.ClientConfig{Insecure: true, Fingerprints: []tlsconf.Fingerprint{{}}}},
		} {
			d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.TLS = test.trust })
			to := w.target(t, l)
			to.Fingerprints, to.ServerName = test.pins, test.name
			c, err := d.Dial(timeout(t), to)
			if test.want != nil {
				if !like(err, test.want) {
					t.Errorf("%s: got %v, want %T", name, err, test.want)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := len(c.Info().PeerCertificates) > 0; got != test.certified {
				t.Errorf("%s: certified %v", name, got)
			}
			c.Close(0, "")
		}
	})
}

// like compares errors of crypto/x509 by type, others as errors.Is does.
func like(err, want error) bool {
	if _, ok := errors.AsType[x509.HostnameError](want); ok {
		_, ok = errors.AsType[x509.HostnameError](err)
		return ok
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](want); ok {
		_, ok = errors.AsType[x509.UnknownAuthorityError](err)
		return ok
	}
	return errors.Is(err, want)
}

func TestDialPresentsCertificate(t *testing.T) {
	loopback(t, func(t *testing.T, w *world) {
		s := certificates(t)
		peer, pool := clientCertificate(t)
		l := w.listen(t, s, func(c *endpoint.Config) { c.TLS = s.Server(tlsconf.FixedRoots(pool)) })
		d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.TLS.Certificate = peer })
		_, server := connect(t, d, l, w.target(t, l))
		if certs := server.Info().PeerCertificates; len(certs) != 1 || !certs[0].Equal(peer.Leaf) {
			t.Errorf("server sees %d certificates", len(certs))
		}
		_, server = connect(t, w.dialer(t, s, nil), l, w.target(t, l))
		if certs := server.Info().PeerCertificates; len(certs) != 0 {
			t.Errorf("server sees %d certificates of a client without", len(certs))
		}
	})
}

// An http URL is a development server that says which certificate it has.
func TestDialHTTP(t *testing.T) {
	s := certificates(t)
	answer := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.Fingerprint()) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /certificate.sha256", func(w http.ResponseWriter, r *http.Request) { answer(w, r) })
	web := httptest.NewServer(mux)
	defer web.Close()
	w := &world{}
	l := w.listen(t, s, func(c *endpoint.Config) { c.Addr = web.Listener.Addr().String() })
	d := w.dialer(t, s, func(c *endpoint.DialConfig) { c.TLS = tlsconf.ClientConfig{} })

	client, _ := connect(t, d, l, target(t, web.URL+"/room?jwt=secret"))
	if info := client.Info(); info.Kind != transport.KindWebTransport || info.URL.RequestURI() != "/room?jwt=secret" {
		t.Errorf("dialed %v, %v", info.Kind, info.URL)
	}
	for name, bad := range map[string]http.HandlerFunc{
		"none":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"nonsense":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") },
		"another's": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("0", 64)) },
		"endless":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("0", 1<<20)) },
		"redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example", http.StatusFound)
		},
	} {
		answer = bad
		_, err := d.Dial(timeout(t), target(t, web.URL+"/room?jwt=secret"))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	web.Close()
	var refused *net.OpError
	if _, err := d.Dial(timeout(t), target(t, web.URL)); !errors.As(err, &refused) {
		t.Errorf("nobody there: %v", err)
	}
}

// Keep-alives hold a quiet connection, the idle timeout ends a dead one, and both can be set for a target.
func TestKeepAlive(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, scheme)
				s := certificates(t)
				l := w.listen(t, s, func(c *endpoint.Config) { c.QUIC.KeepAlive = -1 })
				d := w.dialer(t, s, nil)
				to := w.target(t, l)
				to.KeepAlive = 200 * time.Millisecond
				client, server := connect(t, d, l, to)
				quiet := server.Stats().PacketsReceived
				time.Sleep(10 * time.Minute)
				if client.Context().Err() != nil || server.Context().Err() != nil {
					t.Fatal("a quiet connection ended")
				}
				if got := server.Stats().PacketsReceived - quiet; got < 10*60*4 {
					t.Errorf("%d packets in ten minutes of pings five times a second", got)
				}
				w.Cut(relayHost, clientHost)
				start := time.Now()
				<-server.Context().Done()
				<-client.Context().Done()
				if took := time.Since(start); took < 9*time.Second || took > 14*time.Second {
					t.Errorf("death noticed after %v", took)
				}
				var end *transport.SessionError
				if err := context.Cause(client.Context()); !errors.As(err, &end) || end.Transport == nil || end.Remote {
					t.Errorf("client's end: %v", err)
				}
			})
		})
	}
}

// Shared or not, a dialer closes what it dialed.
func TestDialerClose(t *testing.T) {
	worlds(t, func(t *testing.T, w *world) {
		s := certificates(t)
		l := w.listen(t, s, nil)
		d := w.dialer(t, s, nil)
		client, server := connect(t, d, l, w.target(t, l))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		wantSessionEnd(t, context.Cause(client.Context()), transport.SessionError{})
		<-server.Context().Done()
		wantSessionEnd(t, context.Cause(server.Context()), transport.SessionError{Remote: true})
	})
}

// Bytes get through a bad network in order, and what it does to connections shows in their counters.
func TestLossyLink(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, scheme)
				w.SetLink(relayHost, clientHost, netsim.Link{
					Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.02, Bandwidth: 20_000_000,
				})
				client, server := w.pair(t)
				const streams, size = 20, 100_000
				for i := range streams {
					out := must(client.OpenUniStream(timeout(t)))(t)
					out.SetPriority(i % 8)
					go func() {
						_, _ = out.Write([]byte(strings.Repeat(string(rune('a'+i)), size)))
						_ = out.Close()
					}()
				}
				for range streams {
					in := must(server.AcceptUniStream(timeout(t)))(t)
					got := must(io.ReadAll(in))(t)
					if len(got) != size || strings.Trim(string(got), string(got[:1])) != "" {
						t.Fatalf("%d bytes of %d, or others'", len(got), size)
					}
				}
				stats := client.Stats()
				if stats.PacketsLost == 0 || stats.MinRTT < 40*time.Millisecond || stats.BytesSent < streams*size {
					t.Errorf("stats: %+v", stats)
				}
			})
		})
	}
}

// On a narrow link an urgent stream overtakes others, and of the least urgent the oldest goes first.
func TestPriority(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := simulated(t, scheme)
				w.SetLink(relayHost, clientHost, netsim.Link{
					// No packet is lost: lost ones go before new ones, whatever their urgency.
					Delay: 10 * time.Millisecond, Bandwidth: 8_000_000, Queue: 8 << 20,
				})
				client, server := w.pair(t)
				order := make(chan byte, 5)
				var outs []transport.SendStream
				for i, urgency := range []int{7, 7, 5, 4, 0} {
					out := must(server.OpenUniStream(timeout(t)))(t)
					out.SetPriority(urgency)
					write(t, out, string(rune('a'+i)))
					in := must(client.AcceptUniStream(timeout(t)))(t)
					go func() {
						b, _ := io.ReadAll(in)
						order <- b[0]
					}()
					outs = append(outs, out)
				}
				for _, out := range outs {
					go func() {
						_, _ = out.Write(make([]byte, 300_000))
						_ = out.Close()
					}()
				}
				got := ""
				for range cap(order) {
					got += string(rune(<-order))
				}
				if got != "edcab" {
					t.Errorf("streams ended in the order %s", got)
				}
			})
		})
	}
}
