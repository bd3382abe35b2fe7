package lite_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// dialLoopback connects over real sockets, with raw QUIC (moqt) or WebTransport (https).
func dialLoopback(t *testing.T, scheme string, v message.Version, settings endpoint.QUIC) (client, server transport.Conn) {
	t.Helper()
	store, err := tlsconf.Open(tlsconf.Config{Generate: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	cert, err := store.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	tokens := []string{v.Token()}
	l, err := endpoint.Listen(endpoint.Config{Addr: "127.0.0.1:0", TLS: store.Server(nil), Protocols: tokens})
	if err != nil {
		t.Fatal(err)
	}
	d, err := endpoint.NewDialer(endpoint.DialConfig{
		Addr: "127.0.0.1:0", TLS: tlsconf.ClientConfig{Roots: roots}, Protocols: tokens, QUIC: settings,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Close(), l.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(scheme + "://" + l.Addr().String() + "/some/p%61th?jwt=secret")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if client, err = d.Dial(ctx, endpoint.Target{URL: u}); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// TestCarriers runs every version over real connections: everything once, from the handshake to the end of the track.
func TestCarriers(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		for v := message.Lite01; v <= message.Lite06; v++ {
			t.Run(scheme+"/"+v.String(), func(t *testing.T) {
				t.Parallel() // older versions take a moment to be sure that the end is the end
				client, server := dialLoopback(t, scheme, v, endpoint.QUIC{})
				o := options{initial: []session.Update{{Name: "a", Hops: []route.Hop{9}}}}
				o.cfg.Path = "/some/p%61th?jwt=secret"
				p := connectPair(t, v, o, client, server)
				if _, err := p.client.AwaitPeer(t.Context()); err != nil {
					t.Fatal(err)
				}
				checkPeers(t, p, scheme)
				p.runBoth(t, nil)
				announced := make(chan session.Advertisement, 1)
				go func() { _ = p.client.Announced(t.Context(), "x", firstOnly{ads: announced}) }()
				if ad := <-announced; ad.Prefix != "x/a" {
					t.Errorf("announced %+v", ad)
				}
				subscribeOnce(t, p, v)
			})
		}
	}
}

// firstOnly passes announcements on.
type firstOnly struct{ ads chan<- session.Advertisement }

func (f firstOnly) Announce(_ session.AdvertID, ad session.Advertisement) error {
	f.ads <- ad
	return nil
}
func (firstOnly) Reannounce(session.AdvertID, session.Advertisement) error { return nil }
func (firstOnly) Withdraw(session.AdvertID, bool)                          {}
func (firstOnly) Ready()                                                   {}

func checkPeers(t *testing.T, p *pair, scheme string) {
	t.Helper()
	v := p.client.Version()
	if v != p.server.Version() {
		t.Fatalf("client speaks %v, server %v", v, p.server.Version())
	}
	want := lite.Peer{}
	if scheme == "https" || v.HasSetup() {
		want.Path, want.Query = "/some/p%61th", "jwt=secret"
	}
	if v.HasSetup() {
		want.Hop = peerHop
	}
	if got := p.server.Peer(); got != want {
		t.Errorf("the server knows %+v of the client, want %+v", got, want)
	}
	if got := p.client.Peer(); v.HasSetup() && got != (lite.Peer{Hop: ourHop}) {
		t.Errorf("the client knows %+v of the server", got)
	}
}

// subscribeOnce reads a group, a datagram and a fetched group, and the end of the track.
func subscribeOnce(t *testing.T, p *pair, v message.Version) {
	t.Helper()
	c := p.publish(p.server, "video", media.DefaultInfo())
	big := strings.Repeat("x", 300_000)
	c.add(t, 4, "k4", big, "d")
	w := p.watch(p.client, "video", media.Subscription{MaxAge: time.Second})
	w.want("4: k4 " + big + " d")
	if v.HasDatagrams() {
		c.Datagram(5, 5000, []byte("gram"))
		wantDatagram(t, w, "gram")
	}
	if v.HasFetch() {
		local := p.cache.NewTrack(media.DefaultInfo())
		g, fetch := local.Fetch(4, 0)
		gw := fetch.Writer(0)
		if err := p.client.Fetch(t.Context(), session.FetchRequest{Path: room, Track: "video", Group: 4}, gw, func() {}); err != nil {
			t.Fatal(err)
		}
		gw.Finish()
		fetch.Close(nil)
		if got, err := read(g); got != "k4 "+big+" d" || err != nil {
			t.Errorf("fetched %d bytes, %v", len(got), err)
		}
		g.Close()
	}
	c.Copy.End(6)
	c.Track.End(6)
	c.Copy.Close()
	w.wantDone(nil)
	refused := p.watchAs(p.client, "none", media.Subscription{}, media.DefaultInfo())
	refused.wantDone(session.ErrUnroutable)
}

func wantDatagram(t *testing.T, w *watched, payload string) {
	t.Helper()
	for {
		if d, ok := w.reader.NextDatagram(); ok {
			if string(d.Payload) != payload {
				t.Errorf("datagram is %q", d.Payload)
			}
			return
		}
		select {
		case <-w.waker:
		case <-time.After(10 * time.Second):
			t.Fatal("no datagram came")
		}
	}
}

// TestCarrierSlowReader wants a stream that the subscriber does not read to hold up no newer group, and to be reset with
// its code once it is too old.
func TestCarrierSlowReader(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) {
			conn, serverConn := dialLoopback(t, scheme, message.Lite06, endpoint.QUIC{StreamReceiveWindow: 64 << 10, ReceiveWindow: 64 << 20})
			server := &side{host: newHost(nil)}
			accepted := make(chan error, 1)
			go func() {
				var err error
				server.Session, err = lite.Accept(t.Context(), serverConn, lite.Config{Hop: ourHop})
				accepted <- err
			}()
			sendAll(t, must(conn.OpenUniStream(t.Context()))(t), message.UniSetup.Append(nil), message.Setup{Hop: peerHop})
			if err := <-accepted; err != nil {
				t.Fatal(err)
			}
			server.run(t, nil)
			p := &pair{t: t, server: server, cache: media.NewCache(media.CacheConfig{})}
			c := p.publish(server, "video", media.DefaultInfo())
			c.Start(0)
			defer func() {
				conn.Close(0, "")
				if err := <-server.ended; err == nil {
					t.Error("Run does not say how the session ended")
				}
			}()
			sendAll(t, must(conn.OpenStream(t.Context()))(t), message.StreamSubscribe.Append(nil), message.Subscribe{
				Broadcast: room, Track: "video", Bounds: message.Bounds{MaxAge: time.Second},
			})
			setup := must(conn.AcceptUniStream(t.Context()))(t)
			setup.Stop(0)
			c.add(t, 0, strings.Repeat("x", 4<<20))
			blocked := must(conn.AcceptUniStream(t.Context()))(t)
			for g := uint64(1); g <= 3; g++ {
				c.add(t, g, fmt.Sprint("k", g))
				st := must(conn.AcceptUniStream(t.Context()))(t)
				b, err := io.ReadAll(st)
				if err != nil || !strings.HasSuffix(string(b), fmt.Sprint("k", g)) {
					t.Fatalf("group %d is %q, %v", g, b, err)
				}
			}
			for start := time.Now(); server.Counters().Sent.StaleGroups.Load() == 0; time.Sleep(10 * time.Millisecond) {
				if time.Since(start) > 10*time.Second {
					t.Fatal("the old group is not given up")
				}
			}
			_, err := io.Copy(io.Discard, blocked)
			if reset, ok := errors.AsType[*transport.StreamError](err); !ok || reset.Code != lite.StreamOld || !reset.Remote {
				t.Errorf("the old group ended with %v", err)
			}
		})
	}
}

// sendAll writes a stream type and a message.
func sendAll(t *testing.T, st transport.SendStream, b []byte, m message.Encoder) {
	t.Helper()
	b, err := m.Append(b, message.Lite06)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write(b); err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
