package origin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
	"github.com/moqmesh/moqmesh/session"
)

// group answers a fetch with what is asked of a group of five frames.
func group(_ context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error {
	accepted()
	for f := req.Frame; f < 5; f++ {
		if err := w.WriteFrame(req.Group*1000+f*33, fmt.Appendf(nil, "%d:%d", req.Group, f)); err != nil {
			return err
		}
	}
	return nil
}

// fetched is the result of a fetch: what was read, and the error.
type fetched struct {
	text string
	err  error
}

// fetch asks for a group and reads it to its end.
func (p *peer) fetchGroup(ctx context.Context, group, frame uint64, end *uint64) fetched {
	g, err := p.Fetch(ctx, session.FetchRequest{Path: "room", Track: "v", Group: group, Frame: frame, End: end})
	if err != nil {
		return fetched{"", err}
	}
	defer g.Close()
	var out []string
	w := media.NewWaiter()
	for {
		f, err := g.ReadFrame(w)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return fetched{strings.Join(out, " "), err}
		}
		out = append(out, string(f.Payload))
	}
}

func (p *peer) startFetch(group, frame uint64) chan fetched {
	out := make(chan fetched, 1)
	go func() { out <- p.fetchGroup(context.Background(), group, frame, nil) }()
	return out
}

func TestFetch(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		pub.fetch = group
		ctx := context.Background()
		if got := viewer.fetchGroup(ctx, 4, 1, nil); got.err != nil || got.text != frames(4, 1, 4) {
			r.Errorf("got %+v", got)
		}
		if got := viewer.fetchGroup(ctx, 4, 2, nil); got.text != frames(4, 2, 4) { // cached
			r.Errorf("got %+v", got)
		}
		two := uint64(2)
		if got := viewer.fetchGroup(ctx, 6, 0, &two); got.text != frames(6, 0, 1) {
			r.Errorf("with an end: %+v", got)
		}
		if diff := cmp.Diff([]string{"4,1", "6,0"}, pub.fetches); diff != "" {
			r.Errorf("asked upstream (-want +got):\n%s", diff)
		}
		if len(pub.infos) != 1 || len(pub.subs) != 0 {
			r.Errorf("%d questions, %d subscriptions", len(pub.infos), len(pub.subs))
		}
		if _, err := viewer.Fetch(ctx, session.FetchRequest{Path: "nowhere", Track: "v"}); !errors.Is(err, session.ErrUnroutable) {
			r.Errorf("no route: %v", err)
		}
	})
}

// A cached group needs no source, and what a subscription is delivering is read as it comes (F41).
func TestFetchFromTheSubscription(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		v := viewer.view("room", "v")
		s := pub.only()
		_ = s.send(8, 0, 1)
		got := viewer.startFetch(8, 0)
		synctest.Wait()
		_ = s.send(8, 2, 2)
		s.finish(8)
		if got := <-got; got.err != nil || got.text != frames(8, 0, 2) {
			r.Errorf("got %+v", got)
		}
		v.close()
		if len(pub.fetches) != 0 {
			r.Errorf("asked upstream: %v", pub.fetches)
		}
	})
}

// X43: requests for one group are one upstream fetch.
func TestFetchesMerge(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		answer := make(chan struct{})
		pub.fetch = func(ctx context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error {
			<-answer
			return group(ctx, req, w, accepted)
		}
		a := viewer.startFetch(4, 0)
		synctest.Wait()
		b, c := viewer.startFetch(4, 3), viewer.startFetch(4, 0)
		synctest.Wait()
		if len(pub.fetches) != 1 {
			r.Errorf("asked upstream: %v", pub.fetches)
		}
		close(answer)
		if x, y, z := <-a, <-b, <-c; x.text != frames(4, 0, 4) || y.text != frames(4, 3, 4) || z.text != x.text {
			r.Errorf("got %+v %+v %+v", x, y, z)
		}
	})
}

// X44: the session of the source dies, and the rest comes from the next one.
func TestFetchFollowsTheRoute(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		b, a, viewer := r.peer("b"), r.peer("a"), r.peer("viewer")
		b.announce("room")
		a.announce("room")
		b.fetch = group
		a.fetch = func(ctx context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error {
			accepted()
			_ = w.WriteFrame(4000, []byte("4:0"))
			_ = w.WriteFrame(4033, []byte("4:1"))
			<-ctx.Done()
			return ctx.Err()
		}
		got := viewer.startFetch(4, 0)
		synctest.Wait()
		a.die()
		if got := <-got; got.err != nil || got.text != frames(4, 0, 4) {
			r.Errorf("got %+v", got)
		}
		if diff := cmp.Diff([]string{"4,2"}, b.fetches); diff != "" {
			r.Errorf("asked of b (-want +got):\n%s", diff)
		}
	})
}

// A fetch under way is finished by a source that has withdrawn its route.
func TestFetchFromAWithdrawnRoute(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		rest := make(chan struct{})
		pub.fetch = func(ctx context.Context, req session.FetchRequest, w *media.GroupWriter, accepted func()) error {
			accepted()
			_ = w.WriteFrame(4000, []byte("4:0"))
			<-rest
			return w.WriteFrame(4033, []byte("4:1"))
		}
		got := viewer.startFetch(4, 0)
		synctest.Wait()
		pub.withdraw("room")
		synctest.Wait()
		close(rest)
		if got := <-got; got.err != nil || got.text != frames(4, 0, 1) {
			r.Errorf("got %+v", got)
		}
		if synctest.Wait(); len(r.o.Tracks()) != 0 {
			r.Error("the track is still there")
		}
	})
}

func TestFetchRefused(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		b, a, viewer := r.peer("b"), r.peer("a"), r.peer("viewer")
		b.announce("room")
		a.announce("room")
		b.fetch = group
		ctx := context.Background()
		if got := viewer.fetchGroup(ctx, 4, 0, nil); !errors.Is(got.err, session.ErrNotFound) {
			r.Errorf("what a live source says is the answer: %+v", got)
		}
		if len(b.fetches) != 0 {
			r.Error("b was asked")
		}
		time.Sleep(time.Minute)
		a.infoErr = session.ErrNotFound // refuses the track
		if got := viewer.fetchGroup(ctx, 4, 0, nil); got.err != nil || got.text != frames(4, 0, 4) {
			r.Errorf("the next source: %+v", got)
		}
	})
}

// A track that has ended can still be fetched from.
func TestFetchAfterTheEnd(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		pub.fetch = group
		v := viewer.view("room", "v")
		s := pub.only()
		_ = s.send(8, 0, 0)
		s.finish(8)
		s.copy.End(9)
		s.end(nil)
		if err := v.ended(); !errors.Is(err, io.EOF) {
			r.Errorf("the track ended with %v", err)
		}
		if got := viewer.fetchGroup(context.Background(), 4, 0, nil); got.text != frames(4, 0, 4) {
			r.Errorf("got %+v", got)
		}
		v.close()
	})
}

// A wire without FETCH serves what is cached only.
func TestFetchWithoutTheRequest(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		viewer := r.peer("viewer")
		old := &peer{r: r, name: "old", caps: session.Caps{Update: true, Range: true}, info: media.DefaultInfo()}
		old.Session = r.o.Attach(origin.Peer{Publish: set("**")}, upstream{old})
		if err := old.Announce(1, session.Advertisement{Prefix: "room"}); err != nil {
			r.Fatal(err)
		}
		if got := viewer.fetchGroup(context.Background(), 4, 0, nil); !errors.Is(got.err, session.ErrNotFound) {
			r.Errorf("got %+v", got)
		}
		v := viewer.view("room", "v")
		_ = old.only().send(4, 0, 1)
		old.only().finish(4)
		if got := viewer.fetchGroup(context.Background(), 4, 0, nil); got.text != frames(4, 0, 1) {
			r.Errorf("cached: %+v", got)
		}
		v.close()
	})
}

// Who gives up a fetch that nobody else wants ends it upstream; a source that does not answer costs 10 s.
func TestFetchGivenUp(t *testing.T) {
	bubble(t, origin.Config{}, func(r *rig) {
		pub, viewer := r.peer("pub"), r.peer("viewer")
		pub.announce("room")
		running := 0
		pub.fetch = func(ctx context.Context, _ session.FetchRequest, _ *media.GroupWriter, _ func()) error {
			running++
			<-ctx.Done()
			running--
			return context.Cause(ctx)
		}
		ctx, cancel := context.WithCancel(context.Background())
		got := make(chan fetched)
		go func() { got <- viewer.fetchGroup(ctx, 4, 0, nil) }()
		synctest.Wait()
		if running != 1 {
			r.Fatalf("%d fetches run", running)
		}
		cancel()
		if got := <-got; !errors.Is(got.err, context.Canceled) {
			r.Errorf("got %+v", got)
		}
		if synctest.Wait(); running != 0 {
			r.Errorf("%d fetches run", running)
		}
		start := time.Now()
		first := viewer.startFetch(4, 0)
		time.Sleep(5 * time.Second)
		joined := viewer.startFetch(4, 0) // the time of the source runs, not its own
		for _, c := range []chan fetched{first, joined} {
			if got := <-c; !errors.Is(got.err, session.ErrTimeout) {
				r.Errorf("got %+v", got)
			}
		}
		if d := time.Since(start); d != 10*time.Second {
			r.Errorf("after %v", d)
		}
		if synctest.Wait(); running != 0 {
			r.Errorf("%d fetches run", running)
		}
	})
}
