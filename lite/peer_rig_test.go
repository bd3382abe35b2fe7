package lite_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
	"github.com/moqmesh/moqmesh/transport"
)

// Hops of the two ends.
const (
	ourHop  = 42
	peerHop = 7
)

// rig is a session under test at one end of a connection and a scripted peer at the other.
type rig struct {
	*peertest.Peer
	t    *testing.T
	host *host

	up    *lite.Session // set once ready is closed without err
	ready chan struct{}
	err   error // of the handshake
	ended chan struct{}
}

// options are what a test can change about its session.
type options struct {
	cfg       lite.Config
	interests []string
	initial   []session.Update // what ANNOUNCE streams list first
	pair      peertest.Options
	discard   bool // of a pair: the server's group streams lead nowhere
}

// accept starts a session that is the server, on a connection whose token stands for v. The peer has not said anything yet.
func accept(t *testing.T, v message.Version, o options) *rig {
	t.Helper()
	o.pair.Client.Protocol = v.Token()
	client, server := peertest.Pair(o.pair)
	return start(t, v, o, client, server, lite.Accept)
}

// connect starts a session that is the client.
func connect(t *testing.T, v message.Version, o options) *rig {
	t.Helper()
	o.pair.Client.Protocol = v.Token()
	client, server := peertest.Pair(o.pair)
	return start(t, v, o, server, client, lite.Connect)
}

type handshake func(context.Context, transport.Conn, lite.Config) (*lite.Session, error)

func start(t *testing.T, v message.Version, o options, peer *peertest.Conn, ours transport.Conn, shake handshake) *rig {
	t.Helper()
	r := &rig{
		Peer: peertest.NewPeer(t, peer, v), t: t, host: newHost(o.initial),
		ready: make(chan struct{}), ended: make(chan struct{}),
	}
	o.cfg.Hop = ourHop
	if v.HasInbandSetup() && o.cfg.Versions == nil {
		o.cfg.Versions = []message.Version{v}
	}
	ctx := t.Context()
	go func() {
		defer close(r.ended)
		r.up, r.err = shake(ctx, ours, o.cfg)
		close(r.ready)
		if r.err == nil {
			r.err = r.up.Run(ctx, r.host, o.interests)
		}
	}()
	t.Cleanup(func() {
		peer.Close(0, "")
		<-r.ended
	})
	return r
}

// greet does the peer's part of the handshake, and wants that of the session.
func (r *rig) greet() *rig {
	r.t.Helper()
	m := message.Setup{Hop: peerHop}
	if r.Conn.Info().Dialed {
		r.Client(m)
	} else {
		r.Server(m)
	}
	r.WantSetup()
	<-r.ready
	if r.err != nil {
		r.t.Fatal(r.err)
	}
	return r
}

// wantAnnounceStream wants the session to ask for announcements below prefix.
func (r *rig) wantAnnounceStream(prefix string) *peertest.PeerStream {
	r.t.Helper()
	return r.WantStream(message.StreamAnnounce, message.AnnounceRequest{Prefix: prefix, ExcludeHop: ourHop})
}

// each runs a test for each version from first to last, in a bubble of its own.
func each(t *testing.T, first, last message.Version, f func(t *testing.T, v message.Version)) {
	t.Helper()
	for v := first; v <= last; v++ {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, v) })
		})
	}
}

// host is a session.Handler that writes down what it is told.
type host struct {
	initial []session.Update

	mu     sync.Mutex
	log    []string
	feeds  []*feed
	tracks map[string]*media.Track // by path and track name
	hang   bool                    // requests are not answered
	refuse error                   // what requests for unknown tracks get
}

func newHost(initial []session.Update) *host {
	return &host{initial: initial, tracks: make(map[string]*media.Track), refuse: session.ErrUnroutable}
}

func (h *host) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// wantLog waits until all is done, compares what the host was told, and forgets it.
func (r *rig) wantLog(want ...string) {
	r.t.Helper()
	synctest.Wait()
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(r.host.log, "\n")); diff != "" {
		r.t.Fatalf("host was told (-want +got):\n%s", diff)
	}
	r.host.log = nil
}

func (h *host) Announce(_ session.AdvertID, ad session.Advertisement) error {
	h.note("announce %s", describe(ad))
	return nil
}

func (h *host) Reannounce(_ session.AdvertID, ad session.Advertisement) error {
	h.note("reannounce %s", describe(ad))
	return nil
}

func describe(ad session.Advertisement) string {
	s := fmt.Sprintf("%q hops %v", ad.Prefix, ad.Hops)
	if ad.HasSender {
		s += fmt.Sprintf(" from %d", ad.Sender)
	}
	if ad.Cost != (route.Cost{}) {
		s += fmt.Sprintf(" cost %d/%d", ad.Cost.Warm, ad.Cost.Cold)
	}
	return s
}

func (h *host) Withdraw(_ session.AdvertID, explicit bool) { h.note("withdraw, explicit %v", explicit) }
func (h *host) Goaway(uri string)                          { h.note("goaway %q", uri) }

func (h *host) Listen(prefix string, exclude route.Hop) (session.Feed, error) {
	h.note("listen %q exclude %d", prefix, exclude)
	f := &feed{first: h.initial, more: make(chan []session.Update), closed: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds = append(h.feeds, f)
	return f, nil
}

func (h *host) track(path, name string) (*media.Track, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tracks[path+"|"+name]; t != nil {
		return t, nil
	}
	return nil, h.refuse
}

// wait blocks until ctx ends if the host does not answer.
func (h *host) wait(ctx context.Context) error {
	h.mu.Lock()
	hang := h.hang
	h.mu.Unlock()
	if !hang {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (h *host) TrackInfo(ctx context.Context, path, name string) (media.Info, error) {
	if err := h.wait(ctx); err != nil {
		return media.Info{}, err
	}
	t, err := h.track(path, name)
	if err != nil {
		return media.Info{}, err
	}
	return t.Info(), nil
}

func (h *host) Subscribe(_ context.Context, path, name string, sub media.Subscription, w media.Waker) (session.Reader, error) {
	t, err := h.track(path, name)
	if err != nil {
		return nil, err
	}
	h.note("subscribe %s|%s priority %d", path, name, sub.Priority)
	return &reader{h: h, r: t.NewReader(sub, w)}, nil
}

func (h *host) Fetch(ctx context.Context, req session.FetchRequest) (*media.GroupReader, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	t, err := h.track(req.Path, req.Track)
	if err != nil {
		return nil, err
	}
	g, missing := t.Fetch(req.Group, req.Frame)
	if missing != nil {
		missing.Close(media.ErrNotFound)
		return nil, media.ErrNotFound
	}
	return g, nil
}

// reader is a subscription at the host.
type reader struct {
	h *host
	r *media.Reader
}

func (r *reader) Media() *media.Reader { return r.r }

func (r *reader) Update(sub media.Subscription) {
	r.h.note("update priority %d", sub.Priority)
	r.r.Update(sub)
}

func (r *reader) Close() {
	r.h.note("unsubscribe")
	r.r.Close()
}

// feed is what one ANNOUNCE stream must say.
type feed struct {
	first  []session.Update
	begun  bool
	more   chan []session.Update
	closed chan struct{}
}

func (f *feed) Next(ctx context.Context) ([]session.Update, error) {
	if !f.begun {
		f.begun = true
		return f.first, nil
	}
	select {
	case u := <-f.more:
		return u, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (f *feed) Close() { close(f.closed) }

// tell passes updates to the newest ANNOUNCE stream.
func (r *rig) tell(updates ...session.Update) {
	r.t.Helper()
	synctest.Wait()
	r.host.mu.Lock()
	f := r.host.feeds[len(r.host.feeds)-1]
	r.host.mu.Unlock()
	f.more <- updates
	synctest.Wait()
}
