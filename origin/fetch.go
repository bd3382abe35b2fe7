package origin

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/session"
)

// fetchRun is one upstream FETCH of one group, with the requests that wait for a source to accept it (F41). It belongs
// to the goroutine of the track.
type fetchRun struct {
	fetch    *media.Fetch
	first    uint64 // frame
	priority uint8
	cancel   context.CancelCauseFunc // of the attempt under way; nil = none is
	accepted bool
	waiting  map[*request]*media.GroupReader
}

// fetchGroup asks for a group.
type fetchGroup struct{ req *request }

func (m fetchGroup) handle(t *track) {
	if t.park(m.req, m) {
		return
	}
	want := m.req.fetch
	g, fetch := t.core.track.Fetch(want.Group, want.Frame)
	if want.End != nil {
		g.Limit(*want.End)
	}
	var run *fetchRun
	if fetch != nil {
		run = &fetchRun{fetch: fetch, first: want.Frame, waiting: make(map[*request]*media.GroupReader)}
		t.runs[run] = struct{}{}
	} else if run = t.runOf(want.Group, want.Frame); run == nil {
		m.req.reply <- reply{group: g}
		return
	}
	run.priority = max(run.priority, want.Priority)
	run.waiting[m.req] = g
	t.sync()
	t.startFetches()
}

// runOf finds the fetch that a request has joined, if its source has not accepted it yet.
func (t *track) runOf(group, frame uint64) *fetchRun {
	for run := range t.runs {
		if !run.accepted && run.fetch.Group() == group && run.first <= frame {
			return run
		}
	}
	return nil
}

// leaveFetch gives up the place of a request in a fetch, and the fetch if it was the only one.
func (t *track) leaveFetch(req *request) {
	for run := range t.runs {
		if g := run.waiting[req]; g != nil {
			delete(run.waiting, req)
			g.Close()
		}
	}
}

// startFetches asks the best source for the groups that nobody is being asked for.
func (t *track) startFetches() {
	for run := range t.runs {
		if run.cancel != nil || t.core.gone {
			continue
		}
		switch src, ok, err := t.core.fetchFrom(); {
		case err != nil:
			t.endFetch(run, err)
		case ok && !src.caps.Fetch:
			t.endFetch(run, session.ErrNotFound)
		case ok:
			t.startFetch(run, src)
		}
	}
}

func (t *track) startFetch(run *fetchRun, src source) {
	ctx, cancel := context.WithCancelCause(src.via.life)
	run.cancel = cancel
	t.running++
	t.o.counters.fetches.Add(1)
	req := session.FetchRequest{
		Path: src.path, Track: t.name, Priority: run.priority, Group: run.fetch.Group(),
	}
	if src.caps.FrameBounds {
		req.Frame = run.fetch.Frame()
	}
	go func() {
		err := t.fetch(ctx, cancel, run, src, req)
		t.events <- report{last: true, then: func(t *track) { t.fetched(run, src, err) }}
	}()
}

// fetch makes one attempt. It is given up when nobody wants the group any more, and when the source does not accept it
// in time.
func (t *track) fetch(
	ctx context.Context, cancel context.CancelCauseFunc, run *fetchRun, src source, req session.FetchRequest,
) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		select {
		case <-run.fetch.Unwanted():
			cancel(media.ErrCancelled)
		case <-ctx.Done():
		}
	})
	late := time.AfterFunc(t.o.cfg.RequestTimeout, func() { cancel(session.ErrTimeout) })
	defer late.Stop()
	w := run.fetch.Writer(req.Frame)
	err := src.via.up.Fetch(ctx, req, w, func() {
		late.Stop()
		t.events <- report{then: func(t *track) { t.fetchAccepted(run) }}
	})
	if err == nil {
		w.Finish()
		return nil
	}
	w.Abort(err)
	return causeOf(ctx, err)
}

func (t *track) fetchAccepted(run *fetchRun) {
	run.accepted = true
	for req, g := range run.waiting {
		req.reply <- reply{group: g}
	}
	clear(run.waiting)
}

// fetched handles the end of an attempt. If the session of the source has ended, the next source is asked for the rest;
// what a live one says is the answer (F41).
func (t *track) fetched(run *fetchRun, src source, err error) {
	if _, live := t.runs[run]; !live {
		return
	}
	run.cancel = nil
	if errors.Is(err, net.ErrClosed) || errors.Is(err, session.ErrGoingAway) {
		t.apply(sourceLost{src, err})
		return
	}
	t.endFetch(run, err)
}

// endFetch is the end of a fetch: nil if the source has sent it all.
func (t *track) endFetch(run *fetchRun, err error) {
	delete(t.runs, run)
	run.end(err)
	t.sync()
}

func (run *fetchRun) end(err error) {
	if run.cancel != nil {
		run.cancel(media.ErrCancelled)
	}
	run.fetch.Close(err)
	for req, g := range run.waiting {
		if err != nil {
			g.Close()
			req.reply <- reply{err: err}
		} else {
			req.reply <- reply{group: g}
		}
	}
	clear(run.waiting)
}
