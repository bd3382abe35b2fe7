package origin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/route"
	"github.com/moqmesh/moqmesh/session"
)

var lite06 = session.Caps{
	TrackInfo: true, Update: true, Fetch: true, FrameBounds: true, Floor: true, Range: true, Timestamps: true,
}

// rig is an origin in a bubble with scripted peers.
type rig struct {
	*testing.T
	o      *origin.Origin
	lastID uint64
}

// bubble runs a test with an origin. All of its goroutines must have ended afterwards, or synctest complains.
func bubble(t *testing.T, cfg origin.Config, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Hop = 1
		r := &rig{T: t, o: origin.New(cfg)}
		f(r)
		r.o.Close()
	})
}

// peer is a scripted peer: an upstream of the origin and, through session, its client.
type peer struct {
	r    *rig
	name string
	*origin.Session
	caps session.Caps
	next session.AdvertID
	ads  map[string]session.AdvertID

	mu      sync.Mutex
	info    media.Info
	infoErr error
	refuse  error         // of SUBSCRIBE
	hang    bool          // questions are not answered, requests not written
	hangSub bool          // SUBSCRIBE is not written
	delay   time.Duration // of answers to questions
	fetch   func(ctx context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error
	infos   []string      // questions asked
	fetches []string      // groups asked for
	subs    []*subscribed // all that were ever made
	hanging int
}

// subscribed is one upstream subscription at a peer.
type subscribed struct {
	req  session.SubscribeRequest
	copy *media.Copy
	done chan struct{}

	mu      sync.Mutex
	updates []media.Subscription
	over    bool
	err     error
	streams map[uint64]*media.GroupWriter
}

type option func(*origin.Peer)

func root(p string) option { return func(o *origin.Peer) { o.Root = p } }

func grants(publish, subscribe string) option {
	return func(o *origin.Peer) { o.Publish, o.Subscribe = set(publish), set(subscribe) }
}

func set(patterns string) paths.Set {
	s, err := paths.ParseSet(strings.Fields(patterns)...)
	if err != nil {
		panic(err)
	}
	return s
}

// peer attaches a scripted peer on moq-lite 06 with its own hop, root "" and all rights.
func (r *rig) peer(name string, opts ...option) *peer {
	r.lastID++
	p := &peer{
		r: r, name: name, caps: lite06, ads: make(map[string]session.AdvertID),
		info: media.Info{Priority: 127, MaxAge: 10 * time.Second, Timescale: 1000},
	}
	desc := origin.Peer{
		ID: r.lastID, Hop: route.Hop(100 + r.lastID), Wire: route.WireLite06, Publish: paths.All, Subscribe: paths.All,
	}
	for _, opt := range opts {
		opt(&desc)
	}
	p.Session = r.o.Attach(desc, upstream{p})
	return p
}

// announce advertises a path; hops are those before the peer itself.
func (p *peer) announce(path string, hops ...route.Hop) {
	p.r.Helper()
	if err := p.tryAnnounce(path, hops...); err != nil {
		p.r.Errorf("announce %s: %v", path, err)
	}
}

func (p *peer) tryAnnounce(path string, hops ...route.Hop) error {
	p.next++
	err := p.Announce(p.next, session.Advertisement{
		Prefix: path, Hops: hops, Sender: p.Peer().Hop, HasSender: true,
	})
	if err == nil {
		p.ads[path] = p.next
	}
	return err
}

func (p *peer) withdraw(path string) {
	p.Withdraw(p.ads[path], true)
	delete(p.ads, path)
}

// upstream is a peer as a source.
type upstream struct{ *peer }

// Caps implements session.Upstream.
func (p upstream) Caps() session.Caps { return p.caps }

func (p *peer) enter(what string, list *[]string) (hang bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if list != nil {
		*list = append(*list, what)
	}
	if p.hang {
		p.hanging++
	}
	return p.hang
}

func (p *peer) wait(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hanging--
	return ctx.Err()
}

// TrackInfo implements session.Upstream.
func (p upstream) TrackInfo(ctx context.Context, path, track string) (media.Info, error) {
	if p.enter(path+" "+track, &p.infos) {
		return media.Info{}, p.wait(ctx)
	}
	if p.delay > 0 {
		select {
		case <-time.After(p.delay):
		case <-ctx.Done():
			return media.Info{}, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info, p.infoErr
}

// Subscribe implements session.Upstream.
func (p upstream) Subscribe(ctx context.Context, req session.SubscribeRequest, c *media.Copy) (session.Subscription, error) {
	if p.enter("", nil) || p.hangSub {
		return nil, p.wait(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return nil, p.refuse
	}
	s := &subscribed{req: req, copy: c, done: make(chan struct{}), streams: make(map[uint64]*media.GroupWriter)}
	p.subs = append(p.subs, s)
	return s, nil
}

// Fetch implements session.Upstream.
func (p upstream) Fetch(ctx context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error {
	if p.enter(fmt.Sprintf("%d,%d", req.Group, req.Frame), &p.fetches) {
		return p.wait(ctx)
	}
	if p.fetch == nil {
		return session.ErrNotFound
	}
	return p.fetch(ctx, req, w, accepted)
}

// Update implements session.Subscription.
func (s *subscribed) Update(sub media.Subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = append(s.updates, sub)
	return nil
}

// Cancel implements session.Subscription.
func (s *subscribed) Cancel() { s.end(media.ErrCancelled) }

// Done implements session.Subscription.
func (s *subscribed) Done() <-chan struct{} { return s.done }

// Err implements session.Subscription.
func (s *subscribed) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end ends a subscription; the first call says how.
func (s *subscribed) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over, s.err = true, err
		close(s.done)
	}
}

func (s *subscribed) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// live lists the subscriptions that are not over.
func (p *peer) live() []*subscribed {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.subs), (*subscribed).isOver)
}

// only is the one live subscription.
func (p *peer) only() *subscribed {
	p.r.Helper()
	live := p.live()
	if len(live) != 1 {
		p.r.Fatalf("%s has %d subscriptions, want 1", p.name, len(live))
	}
	return live[0]
}

// send delivers frames from..to of a group; the payload names the frame.
func (s *subscribed) send(group, from, to uint64) error {
	s.mu.Lock()
	w := s.streams[group]
	s.mu.Unlock()
	if w == nil {
		var err error
		if w, err = s.copy.Group(group, from); err != nil {
			return err
		}
		s.mu.Lock()
		s.streams[group] = w
		s.mu.Unlock()
	}
	for f := from; f <= to; f++ {
		if err := w.WriteFrame(group*1000+f*33, fmt.Appendf(nil, "%d:%d", group, f)); err != nil {
			return err
		}
	}
	return nil
}

func (s *subscribed) finish(group uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[group].Finish()
	delete(s.streams, group)
}

// die ends the session of a peer, as its connection would: the subscriptions first, then the host hears of it.
func (p *peer) die() {
	p.mu.Lock()
	subs := slices.Clone(p.subs)
	p.mu.Unlock()
	for _, s := range subs {
		s.end(fmt.Errorf("connection lost: %w", errClosed))
	}
	p.Close(errors.New("idle timeout"))
}

// viewing is a subscription of a peer, read to the end.
type viewing struct {
	session.Reader
	wake chan struct{}
	stop chan struct{}
	over chan struct{}

	mu      sync.Mutex
	waiters []*media.Waiter
	got     map[uint64][]string
	ends    map[uint64]error
	err     error
	wg      sync.WaitGroup
}

// Wake implements media.Waker.
func (v *viewing) Wake() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// view subscribes.
func view(s *origin.Session, path, track string, sub media.Subscription) (*viewing, error) {
	v := &viewing{
		wake: make(chan struct{}, 1), stop: make(chan struct{}), over: make(chan struct{}),
		got: make(map[uint64][]string), ends: make(map[uint64]error),
	}
	var err error
	if v.Reader, err = s.Subscribe(context.Background(), path, track, sub, v); err != nil {
		return nil, err
	}
	go v.run()
	return v, nil
}

// live is what a viewer of the live edge wants.
func live() media.Subscription { return media.Subscription{Priority: 10, MaxAge: 2 * time.Second} }

func (p *peer) view(path, track string) *viewing {
	p.r.Helper()
	v, err := view(p.Session, path, track, live())
	if err != nil {
		p.r.Fatalf("%s subscribes to %s %s: %v", p.name, path, track, err)
	}
	return v
}

func (v *viewing) run() {
	defer close(v.over)
	defer v.wg.Wait()
	for {
		g, err := v.Media().Next()
		switch {
		case err != nil:
			v.mu.Lock()
			v.err = err
			v.mu.Unlock()
			return
		case g != nil:
			w := media.NewWaiter()
			v.mu.Lock()
			v.waiters = append(v.waiters, w)
			v.mu.Unlock()
			v.wg.Go(func() { v.read(g, w) })
			continue
		}
		select {
		case <-v.wake:
		case <-v.stop:
			return
		}
	}
}

func (v *viewing) read(g *media.GroupReader, w *media.Waiter) {
	defer g.Close()
	for {
		f, err := g.ReadFrame(w)
		v.mu.Lock()
		if err != nil {
			v.ends[g.Sequence()] = err
			v.mu.Unlock()
			return
		}
		v.got[g.Sequence()] = append(v.got[g.Sequence()], string(f.Payload))
		v.mu.Unlock()
	}
}

// close unsubscribes.
func (v *viewing) close() {
	v.Close()
	close(v.stop)
	v.mu.Lock()
	for _, w := range v.waiters {
		w.Cancel()
	}
	v.mu.Unlock()
	<-v.over
}

// frames is what was received of a group.
func (v *viewing) frames(group uint64) string {
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.got[group], " ")
}

// ended is how the track ended.
func (v *viewing) ended() error {
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// frames is what view.frames returns for frames from..to of a group.
func frames(group, from, to uint64) string {
	var out []string
	for f := from; f <= to; f++ {
		out = append(out, fmt.Sprintf("%d:%d", group, f))
	}
	return strings.Join(out, " ")
}

// listening is a feed, read on demand.
type listening struct {
	r *rig
	session.Feed
}

func (p *peer) listen(prefix string) *listening {
	p.r.Helper()
	f, err := p.Listen(prefix, 0)
	if err != nil {
		p.r.Fatalf("listen: %v", err)
	}
	return &listening{p.r, f}
}

// next takes what is there now: "+name", "~name", "-name".
func (l *listening) next() string {
	l.r.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan struct{})
	go func() { // Next returns at once if there is something
		synctest.Wait()
		cancel()
		close(stop)
	}()
	us, err := l.Next(ctx)
	<-stop
	if err != nil && !errors.Is(err, context.Canceled) {
		return "error: " + err.Error()
	}
	var out []string
	for _, u := range us {
		out = append(out, []string{"+", "~", "-"}[u.Kind]+u.Name)
	}
	return strings.Join(out, " ")
}
