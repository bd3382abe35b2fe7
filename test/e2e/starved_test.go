//go:build e2e

package e2e

import (
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// TestStarved: a relay whose core others take away, which stopping it most of the time stands for, knows that it is late: it
// refuses clients, keeps those it has, and recovers.
func TestStarved(t *testing.T) {
	r := drive.StartRelay(t, "relay")
	there := clientOf(t, r, endpoint.QUIC{})
	if refused := joined(t, there); refused != nil {
		t.Fatalf("refused with %v", refused)
	}
	full, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		for {
			err := r.Cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(500 * time.Millisecond)
			if err = errors.Join(err, r.Cmd.Process.Signal(syscall.SIGCONT)); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-full:
				return
			case <-t.Context().Done():
				return
			case <-time.After(30 * time.Millisecond):
			}
		}
	}()
	drive.WaitFor(t, 60*time.Second, "the relay to find itself overloaded", func() bool {
		return r.Metric(t, "moqmesh_overloaded") == 1
	})
	close(full)
	<-ended
	refused := joined(t, clientOf(t, r, endpoint.QUIC{})) // it takes 5 s of calm to end
	if refused == nil || refused.Code != lite.CodeApplication+http.StatusServiceUnavailable || refused.Reason != "overloaded" {
		t.Errorf("a client got %v", refused)
	}
	if there.Err() != nil {
		t.Errorf("who was there: %v", there.Err())
	}
	drive.WaitFor(t, 60*time.Second, "the end of that", func() bool { return r.Metric(t, "moqmesh_overloaded") == 0 })
	if refused := joined(t, clientOf(t, r, endpoint.QUIC{})); refused != nil {
		t.Errorf("after it, a client got %v", refused)
	}
}
