//go:build drill

package drill

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/transport"
)

// viewer is one session that plays.
type viewer struct {
	c    *client.Client
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	last   time.Time
	gap    time.Duration
	frames int
}

// watch joins with a token and plays until the session ends.
func watch(ctx context.Context, d *dialer, token string) (*viewer, error) {
	c, err := client.Dial(ctx, d.url+"?jwt="+token, d.cfg)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.Background())
	v := &viewer{c: c, stop: stop, done: make(chan struct{})}
	go v.play(life)
	return v, nil
}

// dialer is what viewers share.
type dialer struct {
	url string
	cfg client.Config
}

func (v *viewer) play(ctx context.Context) {
	defer close(v.done)
	r, err := v.c.Subscribe(ctx, "room", "video", client.Subscription{MaxAge: 2 * time.Second, Latest: true})
	if err != nil {
		return
	}
	defer r.Close()
	for {
		g, err := r.NextGroup(ctx)
		if err != nil {
			return
		}
		for {
			if _, err := g.ReadFrame(ctx); err != nil {
				break
			}
			v.frame()
		}
		g.Close()
	}
}

func (v *viewer) frame() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if !v.last.IsZero() {
		v.gap = max(v.gap, now.Sub(v.last))
	}
	v.last = now
	v.frames++
}

// lap returns the longest time without a frame since the last lap, the present one included.
func (v *viewer) lap() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	gap := max(v.gap, time.Since(v.last))
	v.gap = 0
	return gap
}

func (v *viewer) plays() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.frames > 0
}

// ended is how the relay closed the session; ok is false while it lives.
func (v *viewer) ended() (code uint32, reason string, ok bool) {
	select {
	case <-v.c.Done():
	default:
		return 0, "", false
	}
	var closed *transport.SessionError
	if errors.As(v.c.Err(), &closed) && closed.Remote && closed.Transport == nil {
		return closed.Code, closed.Reason, true
	}
	return 0, v.c.Err().Error(), true
}

func (v *viewer) leave() {
	v.c.Close()
	v.stop()
	<-v.done
}

// try joins, waits for a frame or the end, and leaves: "plays", or how it was closed. took is how long that took.
func try(t *testing.T, d *dialer, token string) (what string, took time.Duration) {
	t.Helper()
	start := time.Now()
	v, err := watch(t.Context(), d, token)
	if err != nil {
		return err.Error(), time.Since(start)
	}
	defer v.leave()
	for time.Since(start) < 20*time.Second {
		if v.plays() {
			return "plays", time.Since(start)
		}
		if _, reason, ok := v.ended(); ok {
			return reason, time.Since(start)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return "nothing happens", time.Since(start)
}
