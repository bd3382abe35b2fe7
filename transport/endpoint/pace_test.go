package endpoint_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// TestPace: a handshake waits for its turn and holds up no other, fails if it gets none, and ends with the listener.
func TestPace(t *testing.T) {
	for _, scheme := range []string{"moqt", "https"} {
		t.Run(scheme, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { pace(t, scheme) }) })
	}
}

func pace(t *testing.T, scheme string) {
	s := certificates(t)
	w := simulated(t, scheme)
	turns := make(chan func(context.Context) error, 4)
	l := w.listen(t, s, func(c *endpoint.Config) {
		c.Pace = func(ctx context.Context) error { return (<-turns)(ctx) }
	})
	d := w.dialer(t, s, nil)
	to := w.target(t, l)
	wait := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	at := func(after time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(after); return nil }
	}
	turns <- at(3 * time.Second)
	late := make(chan time.Duration)
	go func() {
		begin := time.Now()
		if _, err := d.Dial(timeout(t), to); err != nil {
			t.Errorf("a handshake that waited: %v", err)
		}
		late <- time.Since(begin)
	}()
	synctest.Wait()
	time.Sleep(time.Second)
	turns <- at(0)
	connect(t, d, l, to)
	if took := <-late; took < 3*time.Second {
		t.Errorf("the one that waited took %v", took)
	}
	turns <- func(context.Context) error { return errors.New("no turn") }
	if _, err := d.Dial(timeout(t), to); err == nil {
		t.Error("a handshake without a turn went on")
	}
	turns <- wait
	failed := make(chan error)
	go func() {
		_, err := d.Dial(timeout(t), to)
		failed <- err
	}()
	time.Sleep(time.Second)
	begin := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("the listener took %v to close", took)
	}
	if err := <-failed; err == nil {
		t.Error("a handshake without a turn went on, past the end of the listener")
	}
}
