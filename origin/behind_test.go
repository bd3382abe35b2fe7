package origin_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/media"
	"github.com/moqmesh/moqmesh/origin"
)

// A publisher that starts over with its numbers under the old name disturbs nobody, and is told of in one line, not in one
// per group (F2).
func TestNumbersStartOver(t *testing.T) {
	var log bytes.Buffer
	bubble(t, origin.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(r *rig) {
		lines := func() int { return strings.Count(log.String(), "older than what viewers have") }
		old, again, viewer := r.peer("old"), r.peer("again"), r.peer("viewer")
		old.announce("room")
		v := viewer.view("room", "v")
		s := old.only()
		for seq := range uint64(3) {
			if err := s.send(50+seq, 0, 1); err != nil {
				r.Error(err)
			}
		}
		again.announce("room", 9)
		old.die()
		next := again.only()
		restart := func(first, n uint64) {
			r.Helper()
			for seq := range n {
				if err := next.send(first+seq, 0, 1); !errors.Is(err, media.ErrBelowStart) {
					r.Errorf("group %d: %v", first+seq, err)
				}
			}
			synctest.Wait()
		}
		restart(0, 2)
		if n := lines(); n != 0 {
			r.Errorf("%d lines after two old groups, which may have crossed the request", n)
		}
		restart(2, 20)
		if n := lines(); n != 1 {
			r.Errorf("%d lines:\n%s", n, log.String())
		}
		if line := log.String(); !strings.HasSuffix(line, " delivered=52\n") || !strings.Contains(line, "path=room track=v session=2 group=") {
			r.Errorf("the line is %s", line)
		}
		time.Sleep(2 * time.Minute)
		restart(22, 10)
		if n := lines(); n != 1 {
			r.Errorf("%d lines about one copy", n)
		}
		if err := next.send(53, 0, 1); err != nil {
			r.Errorf("group 53, which viewers lack: %v", err)
		}
		if err := v.ended(); err != nil {
			r.Errorf("the viewer ended with %v", err)
		}
		v.close()
	})
}
