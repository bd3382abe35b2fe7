package relay

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/auth"
)

// TestRefusalsDoNotFlood: a flood of refused sessions is a hundred lines and ten a second, and none of it goes uncounted.
func TestRefusalsDoNotFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		r := newRefusals()
		lines := func() int { return strings.Count(out.String(), "\n") }
		for _, err := range []error{auth.ErrRefused, auth.ErrUnavailable, errLate, errMemory, errNoLAN} {
			for range 200 {
				r.tell(log, "/room", err)
			}
		}
		if n := lines(); n != 100 {
			t.Errorf("%d lines", n)
		}
		time.Sleep(time.Second)
		for range 50 {
			r.tell(log, "/.cluster/0123", auth.ErrRefused)
		}
		if n := lines(); n != 110 || !strings.Contains(out.String(), " unlogged=900\n") {
			t.Errorf("%d lines, the last ones %s", n, out.String()[out.Len()-500:])
		}
		if strings.Contains(out.String(), "0123") {
			t.Error("a credential is logged")
		}
		time.Sleep(time.Minute)
		r.tell(log, "/room", errors.New("the client has left"))
		r.tell(log, "/room", auth.ErrRefused)
		if n := lines(); n != 111 || !strings.HasSuffix(out.String(), " unlogged=40\n") {
			t.Errorf("%d lines, the last ones %s", n, out.String()[out.Len()-500:])
		}
	})
}
