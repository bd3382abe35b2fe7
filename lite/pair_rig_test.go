package lite_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// side is one end of a pair of sessions.
type side struct {
	*lite.Session
	host  *host
	conn  *peertest.Conn
	ended chan error // what Run returned
}

// run runs the session until the test is over, or it ends by itself.
func (s *side) run(tb testing.TB, interests []string) {
	s.ended = make(chan error, 1)
	ctx := tb.Context()
	go func() { s.ended <- s.Run(ctx, s.host, interests) }()
}

// room is the broadcast of all tests with a pair.
const room = "room"

// pair is a session against a session: the client asks, the server serves, unless a test does otherwise.
type pair struct {
	t              testing.TB
	client, server *side
	cache          *media.Cache
}

// newPair connects two sessions of one version in memory. It does not run them.
func newPair(tb testing.TB, v message.Version, o options) *pair {
	tb.Helper()
	o.pair.Client.Protocol = v.Token()
	clientConn, serverConn := peertest.Pair(o.pair)
	var serverEnd transport.Conn = serverConn
	if o.discard {
		serverEnd = discardConn{serverConn}
	}
	p := connectPair(tb, v, o, clientConn, serverEnd)
	p.client.conn, p.server.conn = clientConn, serverConn
	return p
}

// connectPair does the handshake between two sessions over a connection.
func connectPair(tb testing.TB, v message.Version, o options, clientConn, serverConn transport.Conn) *pair {
	tb.Helper()
	if v.HasInbandSetup() {
		o.cfg.Versions = []message.Version{v}
	}
	p := &pair{
		t:      tb,
		client: &side{host: newHost(nil)},
		server: &side{host: newHost(o.initial)},
		cache:  media.NewCache(media.CacheConfig{}),
	}
	accepted := make(chan error, 1)
	serverConfig, clientConfig := o.cfg, o.cfg
	serverConfig.Hop, clientConfig.Hop = ourHop, peerHop
	go func() {
		var err error
		p.server.Session, err = lite.Accept(tb.Context(), serverConn, serverConfig)
		accepted <- err
	}()
	var err error
	if p.client.Session, err = lite.Connect(tb.Context(), clientConn, clientConfig); err != nil {
		tb.Fatal(err)
	}
	if err := <-accepted; err != nil {
		tb.Fatal(err)
	}
	return p
}

// running connects and runs two sessions. They are closed, and waited for, at the end of the test.
func running(tb testing.TB, v message.Version, o options) *pair {
	tb.Helper()
	p := newPair(tb, v, o)
	p.runBoth(tb, o.interests)
	return p
}

// runBoth runs both sessions until the end of the test.
func (p *pair) runBoth(tb testing.TB, interests []string) {
	tb.Helper()
	p.server.run(tb, nil)
	p.client.run(tb, interests)
	tb.Cleanup(func() {
		p.client.Close(lite.SessionNoError, "")
		p.wait()
	})
}

// wait waits until both ends are over.
func (p *pair) wait() {
	_, _ = <-p.client.ended, <-p.server.ended
}

// source is a track that a host serves, and the copy that feeds it.
type source struct {
	*media.Track
	*media.Copy
}

// publish makes a host serve a track.
func (p *pair) publish(s *side, name string, info media.Info) source {
	c := source{Track: p.cache.NewTrack(info)}
	c.Copy = c.NewCopy(nil)
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.host.tracks[room+"|"+name] = c.Track
	return c
}

// add publishes a whole group: one frame per payload, a second apart from one group to the next.
func (c source) add(tb testing.TB, group uint64, payloads ...string) {
	tb.Helper()
	w := c.begin(tb, group, payloads...)
	w.Finish()
}

// begin publishes the first frames of a group.
func (c source) begin(tb testing.TB, group uint64, payloads ...string) *media.GroupWriter {
	tb.Helper()
	w, err := c.Group(group, 0)
	if err != nil {
		tb.Fatal(err)
	}
	for i, payload := range payloads {
		if err := w.WriteFrame(stamp(group, i), []byte(payload)); err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

func stamp(group uint64, frame int) uint64 { return 1000*group + 10*uint64(frame) }

// watched is a subscription of a side, read by a reader of its own.
type watched struct {
	t testing.TB
	session.Subscription
	source
	reader *media.Reader
	waker  chan struct{}
}

func (w *watched) Wake() {
	select {
	case w.waker <- struct{}{}:
	default:
	}
}

// watch subscribes to a track of the other end.
func (p *pair) watch(s *side, name string, sub media.Subscription) *watched {
	p.t.Helper()
	info, err := s.TrackInfo(p.t.Context(), room, name)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.watchAs(s, name, sub, info)
}

func (p *pair) watchAs(s *side, name string, sub media.Subscription, info media.Info) *watched {
	p.t.Helper()
	w := &watched{t: p.t, source: source{Track: p.cache.NewTrack(info)}, waker: make(chan struct{}, 1)}
	w.Copy = w.NewCopy(nil)
	w.reader = w.NewReader(media.Subscription{Start: &media.Position{}, MaxAge: media.Unlimited}, w) // whatever comes
	var err error
	req := session.SubscribeRequest{Path: room, Track: name, Subscription: sub, Info: info}
	if w.Subscription, err = s.Subscribe(p.t.Context(), req, w.Copy); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		w.Cancel()
		<-w.Done()
		w.Copy.Close()
		w.reader.Close()
	})
	return w
}

// next waits for the next group.
func (w *watched) next() *media.GroupReader {
	w.t.Helper()
	for {
		g, err := w.reader.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if g != nil {
			w.t.Cleanup(g.Close)
			return g
		}
		select {
		case <-w.waker:
		case <-time.After(time.Minute):
			w.t.Fatal("no group came")
		}
	}
}

// read reads a group to its end.
func read(g *media.GroupReader) (string, error) {
	wait := media.NewWaiter()
	timer := time.AfterFunc(time.Minute, wait.Cancel)
	defer timer.Stop()
	frames := []string{}
	for {
		f, err := g.ReadFrame(wait)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return strings.Join(frames, " "), err
		}
		frames = append(frames, string(f.Payload))
	}
}

// want wants the next n groups, in the order of their numbers, each with its frames.
func (w *watched) want(groups ...string) {
	w.t.Helper()
	got := make([]string, len(groups))
	bySequence := map[uint64]string{}
	low := uint64(1 << 62)
	for range groups {
		g := w.next()
		text, err := read(g)
		if err != nil {
			text += fmt.Sprintf(" (%v)", err)
		}
		bySequence[g.Sequence()] = fmt.Sprintf("%d: %s", g.Sequence(), text)
		low = min(low, g.Sequence())
	}
	for i := range got {
		got[i] = bySequence[low+uint64(i)]
	}
	if diff := cmp.Diff(groups, got); diff != "" {
		w.t.Fatalf("groups (-want +got):\n%s", diff)
	}
}

// wantDone wants the subscription to be over because of want; nil is a clean end.
func (w *watched) wantDone(want error) {
	w.t.Helper()
	select {
	case <-w.Done():
	case <-time.After(time.Minute):
		w.t.Fatal("the subscription goes on")
	}
	if err := w.Err(); !errors.Is(err, want) {
		w.t.Fatalf("subscription ended with %v, want %v", err, want)
	}
}

// wantStreams wants an end to have so many bidirectional streams open, besides the session stream of 01 and 02, and no
// unidirectional ones.
func (s *side) wantStreams(tb testing.TB, bidi int) {
	tb.Helper()
	synctest.Wait()
	if s.Version().HasInbandSetup() && s.conn.Info().Dialed {
		bidi++
	}
	if b, u := s.conn.Streams(); b != bidi || u != 0 {
		tb.Errorf("%d bidirectional and %d unidirectional streams are open, want %d and none", b, u, bidi)
	}
}
