package client_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var versions = []client.Version{message.Lite03, message.Lite04, message.Lite05, message.Lite06}

// ends is a publisher and a subscriber on the two ends of one connection.
type ends struct {
	pub, sub *client.Client
}

// each runs f for every version, over an in-memory connection in virtual time, over raw QUIC and over WebTransport.
func each(t *testing.T, versions []client.Version, f func(t *testing.T, e ends)) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Run("memory", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f(t, memory(t, v))
				})
			})
			for _, scheme := range []string{"moqt", "https"} {
				t.Run(scheme, func(t *testing.T) {
					f(t, loopback(t, v, scheme))
				})
			}
		})
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// memory joins two clients by an in-memory connection.
func memory(t *testing.T, v client.Version) ends {
	near, far := peertest.Pair(peertest.Options{Client: transport.Info{Protocol: v.Token()}})
	cfg := client.Config{Versions: []client.Version{v}}
	accepted := make(chan *client.Client, 1)
	go func() {
		c, err := client.Accept(t.Context(), far, cfg)
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	e := ends{pub: must[*client.Client](t)(client.New(t.Context(), near, "", cfg)), sub: <-accepted}
	if e.sub == nil {
		t.FailNow()
	}
	t.Cleanup(func() {
		e.pub.Close()
		e.sub.Close()
	})
	return e
}

// loopback joins two clients over real sockets. The subscriber is the end that accepts.
func loopback(t *testing.T, v client.Version, scheme string) ends {
	cfg := client.Config{Versions: []client.Version{v}}
	l := listen(t, cfg.Versions)
	accepted := make(chan *client.Client, 1)
	go func() {
		defer close(accepted)
		conn, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		c, err := client.Accept(t.Context(), conn, cfg)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}()
	dial := cfg
	dial.TLS.Fingerprints = []tlsconf.Fingerprint{l.pin}
	e := ends{pub: must[*client.Client](t)(client.Dial(t.Context(), fmt.Sprintf("%s://%s/", scheme, l.Addr()), dial))}
	t.Cleanup(e.pub.Close)
	if e.sub = <-accepted; e.sub == nil {
		t.FailNow()
	}
	t.Cleanup(e.sub.Close)
	return e
}

type listener struct {
	*endpoint.Listener
	pin tlsconf.Fingerprint
}

// listen opens a listener on a loopback port, with a generated certificate.
func listen(t *testing.T, versions []client.Version) listener {
	store := must[*tlsconf.Store](t)(tlsconf.Open(tlsconf.Config{Generate: []string{"127.0.0.1"}}))
	t.Cleanup(func() { _ = store.Close() })
	l := must[*endpoint.Listener](t)(endpoint.Listen(endpoint.Config{
		Addr: "127.0.0.1:0", TLS: store.Server(nil), Protocols: lite.Tokens(versions),
	}))
	t.Cleanup(func() { _ = l.Close() })
	return listener{l, must[tlsconf.Fingerprint](t)(tlsconf.ParseFingerprint(store.Fingerprint()))}
}

// publish makes a broadcast with one track.
func publish(t *testing.T, c *client.Client, path, track string) (*client.Broadcast, *client.TrackWriter) {
	t.Helper()
	b := must[*client.Broadcast](t)(c.Publish(path))
	w := must[*client.TrackWriter](t)(b.Track(track, client.Info{Priority: 10, MaxAge: time.Minute, Timescale: 90000}))
	return b, w
}

// write writes complete groups of three frames.
func write(t *testing.T, w *client.TrackWriter, groups ...uint64) {
	t.Helper()
	for _, seq := range groups {
		g := must[*client.GroupWriter](t)(w.Group(seq))
		for i := range uint64(3) {
			if err := g.WriteFrame(seq*3000+i*1000, payload(seq, i)); err != nil {
				t.Fatal(err)
			}
		}
		g.Finish()
	}
}

func payload(group, frame uint64) []byte {
	return fmt.Appendf(nil, "frame %d of group %d", frame, group)
}

// readAll reads the frames of a group.
func readAll(ctx context.Context, g *client.GroupReader) (frames []client.Frame, err error) {
	defer g.Close()
	for {
		f, err := g.ReadFrame(ctx)
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
}

// deadline bounds a test on real sockets.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// everything is a subscription from the first group on.
func everything() client.Subscription {
	return client.Subscription{Priority: 5, MaxAge: time.Minute, Start: &client.Position{}}
}
