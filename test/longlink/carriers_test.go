//go:build drill && linux

package longlink

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/linklab"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/qmux"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

const protocol = "moq-lite-06"

// pair is a connection: the server sends, from host A.
type pair struct{ server, client transport.Conn }

// way is how two relays are linked.
type way struct {
	name    string
	connect func(*testing.T, *linklab.Lab) []pair
}

var ways = []way{
	{"QUIC", func(t *testing.T, l *linklab.Lab) []pair { return overQUIC(t, l, 1) }},
	{"4 QUIC", func(t *testing.T, l *linklab.Lab) []pair { return overQUIC(t, l, 4) }},
	{"16 QUIC", func(t *testing.T, l *linklab.Lab) []pair { return overQUIC(t, l, 16) }},
	{"qmux, cubic", func(t *testing.T, l *linklab.Lab) []pair { return overTCP(t, l, "cubic") }},
	{"qmux, bbr", func(t *testing.T, l *linklab.Lab) []pair { return overTCP(t, l, "bbr") }},
}

// overQUIC opens raw QUIC connections as relays do, with their settings.
func overQUIC(t *testing.T, l *linklab.Lab, n int) []pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	store := must(tlsconf.Open(tlsconf.Config{Generate: []string{"relay"}}))(t)
	t.Cleanup(func() { _ = store.Close() })
	listener := must(endpoint.Listen(endpoint.Config{
		PacketConn: must(l.A.ListenPacket())(t), TLS: store.Server(nil), Protocols: []string{protocol},
	}))(t)
	t.Cleanup(func() { _ = listener.Close() })
	dialer := must(endpoint.NewDialer(endpoint.DialConfig{
		PacketConn: must(l.B.ListenPacket())(t), Protocols: []string{protocol}, TLS: tlsconf.ClientConfig{Insecure: true},
	}))(t)
	t.Cleanup(func() { _ = dialer.Close() })
	at := must(netip.ParseAddrPort(listener.Addr().String()))(t)
	pairs := make([]pair, n)
	for i := range pairs {
		pairs[i].client = must(dialer.Dial(ctx, endpoint.Target{
			URL: &url.URL{Scheme: "moqt", Host: "relay"}, Addrs: []netip.AddrPort{at},
		}))(t)
		pairs[i].server = must(listener.Accept(ctx))(t)
	}
	return pairs
}

// overTCP opens a WebSocket with a congestion control at both ends.
func overTCP(t *testing.T, l *linklab.Lab, congestion string) []pair {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	store := must(tlsconf.Open(tlsconf.Config{Generate: []string{"relay"}}))(t)
	t.Cleanup(func() { _ = store.Close() })
	// What docs/long-links.md says: room for three times what is on the way.
	for _, h := range []*linklab.Host{l.A, l.B} {
		for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
			if err := h.Sysctl("net/ipv4/"+name, "4096 131072 16777216"); err != nil {
				t.Fatal(err)
			}
		}
	}
	accepted := make(chan *qmux.Conn, 1)
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := qmux.Choose(r, []string{protocol})
		if err != nil {
			t.Error(err)
			return
		}
		c, err := qmux.Upgrade(w, r, token, time.Second, qmux.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	})}
	ln := must(l.A.Listen())(t)
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(tls.NewListener(ln, store.Server(nil))) })
	t.Cleanup(func() { _ = web.Close(); wg.Wait() })
	nc := must(l.B.Dial(ln.Addr().String()))(t)
	set(t, nc, congestion)
	secure := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	u := &url.URL{Scheme: "wss", Host: ln.Addr().String(), Path: "/"}
	client := must(qmux.Connect(ctx, secure, u, []string{protocol}, qmux.Config{}))(t)
	server := <-accepted
	set(t, server.NetConn(), congestion)
	t.Cleanup(func() {
		wg.Go(func() { client.Close(0, "") })
		server.Close(0, "")
		server.Wait()
		client.Wait()
	})
	return []pair{{server, client}}
}

// set gives a TCP connection a congestion control, without which there is nothing to measure.
func set(t *testing.T, nc net.Conn, congestion string) {
	t.Helper()
	if err := qmux.SetCongestion(nc, congestion); err != nil {
		t.Skipf("this kernel lacks it: %v", err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// mbit formats a rate.
func mbit(rate float64) string { return fmt.Sprintf("%.1f", rate/1e6) }
