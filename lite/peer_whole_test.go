package lite_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/internal/peertest"
	"github.com/moqmesh/moqmesh/lite"
	"github.com/moqmesh/moqmesh/lite/message"
	"github.com/moqmesh/moqmesh/media"
)

// A frame that is cut off was not delivered: who reads the group gets the frames before it, and that one whole from
// another copy (F31).
func TestOnlyWholeFrames(t *testing.T) {
	for name, end := range map[string]func(*peertest.PeerStream){
		"FIN":   func(s *peertest.PeerStream) { s.FIN() },
		"reset": func(s *peertest.PeerStream) { s.Reset(lite.StreamOld) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, message.Lite01, message.Lite06, func(t *testing.T, v message.Version) {
				r, s := subscribed(t, v, options{})
				reader := s.track.NewReader(media.Subscription{MaxAge: media.Unlimited}, idleWaker{})
				defer reader.Close()
				stream := r.group(7, r.frame(1000, []byte("whole")))
				time.Sleep(150 * time.Millisecond) // a START may be waited for
				synctest.Wait()
				g, err := reader.Next()
				if err != nil || g == nil {
					t.Fatalf("no group: %v", err)
				}
				defer g.Close()
				next := func() (string, error) {
					w := media.NewWaiter()
					timer := time.AfterFunc(100*time.Millisecond, w.Cancel)
					defer timer.Stop()
					f, err := g.ReadFrame(w)
					return string(f.Payload), err
				}
				if got, err := next(); got != "whole" || err != nil {
					t.Errorf("the first frame is %q, %v", got, err)
				}
				frame := r.frame(33, []byte("cut off"))
				end(stream.Send(frame[:len(frame)-2]))
				stream.AnyStop()
				r.WantAlive()
				if got, err := next(); !errors.Is(err, media.ErrCancelled) {
					t.Errorf("then comes %q, %v", got, err)
				}
				other := s.track.NewCopy(nil)
				defer other.Close()
				w, err := other.Group(7, 1)
				if err != nil {
					t.Fatal(err)
				}
				if err := w.WriteFrame(1033, []byte("complete")); err != nil {
					t.Error(err)
				}
				if got, err := next(); got != "complete" || err != nil {
					t.Errorf("from the other copy comes %q, %v", got, err)
				}
			})
		})
	}
}
