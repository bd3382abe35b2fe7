//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/client"
	"github.com/moqmesh/moqmesh/internal/drive"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/transport"
	"github.com/moqmesh/moqmesh/transport/endpoint"
)

// joined waits until a client is let in, and returns nil, or how it was closed.
func joined(t *testing.T, c *client.Client) *transport.SessionError {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := c.Announced(ctx, "")
	if err == nil {
		defer a.Close()
		_, err = a.Initial(ctx)
	}
	if err == nil {
		return nil
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
	}
	var closed *transport.SessionError
	if !errors.As(c.Err(), &closed) || !closed.Remote {
		t.Fatalf("neither in nor refused: %v, %v", err, c.Err())
	}
	return closed
}

// TestOutOfMemory: clients come until the memory of the relay is short. The next one is refused with a reason, those before
// it stay, and when they leave, others may come.
func TestOutOfMemory(t *testing.T) {
	r := drive.StartRelayWith(t, "relay", func(drive.Relay) string {
		return "[limits]\nmemory = \"40MiB\"\nlateness = \"0s\"\n[cache]\ncapacity = \"1MiB\"\n"
	})
	var in []*client.Client
	var refused *transport.SessionError
	for len(in) < 3000 && refused == nil {
		c := clientOf(t, r, endpoint.QUIC{})
		if refused = joined(t, c); refused == nil {
			in = append(in, c)
		}
	}
	if refused == nil {
		t.Fatalf("%d clients, and memory is not short", len(in))
	}
	t.Logf("refused after %d clients", len(in))
	if refused.Code != lite.CodeApplication+http.StatusServiceUnavailable || refused.Reason != "out of memory" {
		t.Errorf("refused with %v", refused)
	}
	if r.Metric(t, "moqmesh_limited_total", `limit="memory"`) == 0 || r.Metric(t, "moqmesh_memory_short") != 1 {
		t.Error("the metrics do not tell")
	}
	for i, c := range in {
		if c.Err() != nil {
			t.Fatalf("client %d, who was let in: %v", i, c.Err())
		}
	}
	for _, c := range in {
		c.Close()
	}
	drive.WaitFor(t, 60*time.Second, "room for clients again", func() bool {
		c := clientOf(t, r, endpoint.QUIC{})
		defer c.Close()
		return joined(t, c) == nil
	})
	if n := strings.Count(r.Stderr(), "memory is short"); n != 1 {
		t.Errorf("%d log lines", n)
	}
	if !strings.Contains(r.Stderr(), "there is memory again") {
		t.Error("no log line says that it is over")
	}
}
